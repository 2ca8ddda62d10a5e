//! The kinds of this fabric's own frames.

use super::frames::{AccessQuery, AccessReply, Expose, Key, QpInfo};
use crate::frame::inbound::BodyShape;
use crate::frame::kinds::{frame_kinds, TransportKind};
use crate::frame::payload::PayloadKind;

frame_kinds! {
    /// The frames of RDMA: those that introduce queue pairs; in the clear, those around one-sided
    /// operations of the device; sealed, the operations themselves.
    VerbsKind {
        Write = WRITE,
        Read = READ,
        ReadReply = READ_REPLY,
        WriteAck = WRITE_ACK,
        QpInfo = QP_INFO,
        QpReady = QP_READY,
        Expose = EXPOSE,
        Revoke = REVOKE,
        Revoked = REVOKED,
        AccessQuery = ACCESS_QUERY,
        AccessReply = ACCESS_REPLY,
    }
}

impl TransportKind for VerbsKind {
    fn decode(byte: u8) -> Option<Self> {
        Self::from_byte(byte)
    }

    fn byte(self) -> u8 {
        self.to_byte()
    }

    fn pairs(self) -> bool {
        match self {
            Self::QpInfo | Self::QpReady => true,
            Self::Write | Self::Read | Self::ReadReply | Self::WriteAck => false,
            Self::Expose | Self::Revoke | Self::Revoked | Self::AccessQuery | Self::AccessReply => {
                false
            }
        }
    }

    fn shape(self) -> (BodyShape, u32) {
        let bytes = match self {
            Self::Write => return PayloadKind::Write.shape(),
            Self::Read => return PayloadKind::Read.shape(),
            Self::ReadReply => return PayloadKind::ReadReply.shape(),
            Self::WriteAck => return PayloadKind::WriteAck.shape(),
            Self::QpInfo => size_of::<QpInfo>(),
            Self::QpReady => 0,
            Self::Expose => size_of::<Expose>(),
            Self::Revoke | Self::Revoked => size_of::<Key>(),
            Self::AccessQuery => size_of::<AccessQuery>(),
            Self::AccessReply => size_of::<AccessReply>(),
        };
        (BodyShape::Whole, bytes as u32)
    }
}

impl VerbsKind {
    /// Returns the frame of TCP with the same meaning, if there is one.
    pub(super) fn payload(self) -> Option<PayloadKind> {
        match self {
            Self::Write => Some(PayloadKind::Write),
            Self::Read => Some(PayloadKind::Read),
            Self::ReadReply => Some(PayloadKind::ReadReply),
            Self::WriteAck => Some(PayloadKind::WriteAck),
            Self::QpInfo
            | Self::QpReady
            | Self::Expose
            | Self::Revoke
            | Self::Revoked
            | Self::AccessQuery
            | Self::AccessReply => None,
        }
    }
}
