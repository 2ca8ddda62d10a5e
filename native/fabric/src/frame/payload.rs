//! The kinds of WRITE, READ and READ_REPLY: one-sided operations as frames with their payload.

use super::bodies::{AckEntry, ReadReplyHead, ReadRequest, WriteHead, MAX_ACKS};
use super::inbound::Shape;
use super::kinds::{frame_kinds, TransportKind};
use faro_wire::header::MAX_PAYLOAD_BYTES;

const WRITE_HEAD: usize = size_of::<WriteHead>();
const REPLY_HEAD: usize = size_of::<ReadReplyHead>();

frame_kinds! {
    /// The frames of one-sided operations.
    PayloadKind { Write = WRITE, Read = READ, ReadReply = READ_REPLY, WriteAck = WRITE_ACK, }
}

impl TransportKind for PayloadKind {
    fn decode(byte: u8) -> Option<Self> {
        Self::from_byte(byte)
    }

    fn byte(self) -> u8 {
        self.to_byte()
    }

    fn shape(self) -> (Shape, u32) {
        match self {
            Self::Write => (
                Shape::Headed(WRITE_HEAD),
                MAX_PAYLOAD_BYTES + WRITE_HEAD as u32,
            ),
            Self::ReadReply => (
                Shape::Headed(REPLY_HEAD),
                MAX_PAYLOAD_BYTES + REPLY_HEAD as u32,
            ),
            Self::Read => (Shape::Whole, size_of::<ReadRequest>() as u32),
            Self::WriteAck => (Shape::Whole, (MAX_ACKS * size_of::<AckEntry>()) as u32),
        }
    }
}
