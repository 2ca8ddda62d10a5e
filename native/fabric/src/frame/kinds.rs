//! The kinds of frames, decoded once from the header's byte.
//!
//! The handshake and the messages are the same on every stream fabric; each fabric adds the frames
//! of its own, as an enum that [`frame_kinds`] defines. A frame of another fabric does not decode,
//! so that no code below the decoder needs a branch for it.

use super::inbound::BodyShape;
use faro_wire::kind;

/// Kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind<K> {
    /// HELLO, from the connector.
    Hello,
    /// WELCOME, from the acceptor.
    Welcome,
    /// PROOF, from the connector.
    Proof,
    /// GOODBYE, from either side.
    Goodbye,
    /// A frame that only this fabric has.
    Transport(K),
    /// A message of the endpoint layer; its kind byte.
    Message(u8),
}

/// The frames that only one fabric has.
pub(crate) trait TransportKind: Copy + Send + std::fmt::Debug {
    /// Returns the kind of this byte; `None` if the fabric has no such frame.
    fn decode(byte: u8) -> Option<Self>;
    fn byte(self) -> u8;
    /// Returns whether the frame belongs to the pairing, which some fabrics need before a
    /// connection is open. All others come on open connections only.
    fn pairs(self) -> bool {
        false
    }
    /// Returns the structure of the bytes after the header, and the maximum length of the body in
    /// bytes.
    fn shape(self) -> (BodyShape, u32);
}

impl<K: TransportKind> FrameKind<K> {
    /// Returns the kind of this byte; `None` if the fabric has no such frame.
    pub(crate) fn decode(byte: u8) -> Option<Self> {
        match byte {
            kind::HELLO => Some(Self::Hello),
            kind::WELCOME => Some(Self::Welcome),
            kind::PROOF => Some(Self::Proof),
            kind::GOODBYE => Some(Self::Goodbye),
            message if message >= kind::FIRST_MESSAGE => Some(Self::Message(message)),
            other => K::decode(other).map(Self::Transport),
        }
    }
}

/// Defines the frames of one fabric: an enum with `decode` and `byte`.
macro_rules! frame_kinds {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $byte:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($variant,)* }
        impl $name {
            /// Returns the kind of this byte; `None` if there is no such frame.
            pub(crate) fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $(faro_wire::kind::$byte => Some(Self::$variant),)*
                    _ => None,
                }
            }
            pub(crate) fn to_byte(self) -> u8 {
                match self { $(Self::$variant => faro_wire::kind::$byte,)* }
            }
        }
    };
}
pub(crate) use frame_kinds;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::payload::PayloadKind;
    use crate::{shm::ShmKind, verbs::VerbsKind};

    /// Checks that each byte below `FIRST_MESSAGE` decodes to one kind, and that the kind has this
    /// byte.
    fn decodes<K: TransportKind>() -> Vec<u8> {
        (0..kind::FIRST_MESSAGE)
            .filter(|byte| match FrameKind::<K>::decode(*byte) {
                Some(FrameKind::Hello) => *byte == kind::HELLO,
                Some(FrameKind::Welcome) => *byte == kind::WELCOME,
                Some(FrameKind::Proof) => *byte == kind::PROOF,
                Some(FrameKind::Goodbye) => *byte == kind::GOODBYE,
                Some(FrameKind::Transport(own)) => {
                    assert_eq!(own.byte(), *byte);
                    true
                }
                Some(FrameKind::Message(_)) => panic!("{byte:#x} is no message"),
                None => false,
            })
            .collect()
    }

    #[test]
    fn every_fabric_decodes_its_own_frames_only() {
        assert_eq!(decodes::<PayloadKind>(), [1, 2, 3, 4, 5, 6, 8, 18]);
        assert_eq!(decodes::<ShmKind>(), [1, 2, 3, 7, 8, 9, 10, 18]);
        let verbs = [1, 2, 3, 4, 5, 6, 8, 11, 12, 13, 14, 15, 16, 17, 18];
        assert_eq!(decodes::<VerbsKind>(), verbs);
    }

    #[test]
    fn every_byte_from_the_first_message_on_is_a_message() {
        for byte in kind::FIRST_MESSAGE..=u8::MAX {
            let got = FrameKind::<PayloadKind>::decode(byte);
            assert_eq!(got, Some(FrameKind::Message(byte)));
        }
    }
}
