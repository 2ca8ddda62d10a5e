//! Every decoder of this crate, and what must hold of whatever it accepts. Shared by the smoke test
//! and the fuzz targets.

use faro_wire::card::MAX_CARD_BYTES;
use faro_wire::header::HEADER_BYTES;
use faro_wire::message::{
    Abort, ClearToSend, DataReady, DataWritten, Failed, Fetch, FetchResponse, Incoming, Join,
    MoreBuffers, ReadOffer,
};
use faro_wire::{BootstrapId, Card, FrameHeader, WireError};

/// A decoder: whether it accepted the bytes.
pub type Decoder = fn(&[u8]) -> bool;

/// All of them, by name.
pub const ALL: [(&str, Decoder); 14] = [
    ("frame", frame),
    ("incoming", incoming),
    ("fetch", fetch),
    ("layout", layout),
    ("located", located),
    ("credit", credit),
    ("pushed", pushed),
    ("failed", failed),
    ("card", card),
    ("knock", knock),
    ("grant", grant),
    ("landed", landed),
    ("farewell", farewell),
    ("invitation", invitation),
];

/// Errors are written into logs: their text must be bounded, whatever the input was.
fn refused(error: &WireError) -> bool {
    assert!(error.to_string().len() < 256, "{error:?}");
    false
}

/// What was accepted says the same again: nothing was skipped, nothing was guessed.
fn canonical<T>(
    bytes: &[u8],
    decoded: Result<T, WireError>,
    encode: impl FnOnce(&T) -> Vec<u8>,
) -> bool {
    match decoded {
        Ok(message) => {
            assert_eq!(encode(&message), bytes);
            true
        }
        Err(error) => refused(&error),
    }
}

pub fn frame(bytes: &[u8]) -> bool {
    match FrameHeader::parse(bytes) {
        Ok(header) => {
            let again = FrameHeader::sealed(
                header.kind,
                header.flags.get(),
                header.id.get(),
                header.length.get(),
                header.body_crc.get(),
            );
            assert_eq!(again, header);
            let _ = header.check_body(&bytes[HEADER_BYTES..]);
            true
        }
        Err(error) => refused(&error),
    }
}

/// The first byte is the kind, the rest is the body.
pub fn incoming(bytes: &[u8]) -> bool {
    let Some((kind, body)) = bytes.split_first() else {
        return false;
    };
    match Incoming::decode(*kind, body) {
        Ok(message) => {
            assert_eq!(message.kind(), *kind);
            assert_eq!(message.encode(), body);
            true
        }
        Err(error) => refused(&error),
    }
}

pub fn fetch(bytes: &[u8]) -> bool {
    canonical(bytes, Fetch::decode(bytes), Fetch::encode)
}

pub fn layout(bytes: &[u8]) -> bool {
    canonical(bytes, FetchResponse::decode(bytes), FetchResponse::encode)
}

pub fn located(bytes: &[u8]) -> bool {
    canonical(bytes, ReadOffer::decode(bytes), ReadOffer::encode)
}

pub fn credit(bytes: &[u8]) -> bool {
    canonical(bytes, MoreBuffers::decode(bytes), MoreBuffers::encode)
}

pub fn pushed(bytes: &[u8]) -> bool {
    canonical(bytes, DataWritten::decode(bytes), DataWritten::encode)
}

pub fn failed(bytes: &[u8]) -> bool {
    canonical(bytes, Failed::decode(bytes), Failed::encode)
}

pub fn knock(bytes: &[u8]) -> bool {
    canonical(bytes, Join::decode(bytes), Join::encode)
}

pub fn grant(bytes: &[u8]) -> bool {
    canonical(bytes, ClearToSend::decode(bytes), ClearToSend::encode)
}

pub fn landed(bytes: &[u8]) -> bool {
    canonical(bytes, DataReady::decode(bytes), DataReady::encode)
}

pub fn farewell(bytes: &[u8]) -> bool {
    canonical(bytes, Abort::decode(bytes), Abort::encode)
}

/// Like a card, which it ends in.
pub fn invitation(bytes: &[u8]) -> bool {
    match BootstrapId::decode(bytes) {
        Ok(invitation) => {
            let again = invitation.encode();
            if invitation.card.encode().len() <= MAX_CARD_BYTES {
                assert_eq!(BootstrapId::decode(&again), Ok(invitation));
            }
            true
        }
        Err(error) => refused(&error),
    }
}

/// A card may hold keys this build skips and order its lines as it likes; what was understood must
/// survive another trip.
pub fn card(bytes: &[u8]) -> bool {
    match Card::decode(bytes) {
        Ok(card) => {
            let again = card.encode();
            if again.len() <= MAX_CARD_BYTES {
                assert_eq!(Card::decode(&again), Ok(card));
            }
            true
        }
        Err(error) => refused(&error),
    }
}
