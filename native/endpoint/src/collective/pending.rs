//! Messages of a member on their way to a progress thread.

use faro_fabric::{ConnectionId, EndpointId, RemoteRange};
use faro_pool::Lease;
use faro_wire::message::{ClearToSendHead, DataReady, Join};
use std::sync::Arc;

/// Another member, as its partner here addresses it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address {
    pub(super) endpoint: EndpointId,
    /// Its number at that endpoint.
    pub(super) member: u64,
    pub(super) rank: u32,
}

/// A lease, and the number of bytes to be written to it.
pub(super) type ReceiveBuffer = (Lease, u32);

/// A message to a partner, by whatever connection its endpoint has.
pub(crate) struct PendingSend {
    /// The member here that sends it.
    pub(super) member: u64,
    pub(super) to: Address,
    pub(super) what: PendingKind,
}

impl PendingSend {
    /// Returns whether it must be sent even after its member has finished its rounds: it holds no
    /// memory, and its partner waits for it.
    pub(super) fn outlives_its_member(&self) -> bool {
        matches!(&self.what, PendingKind::ClearToSend { leases, .. } if leases.is_empty())
    }
}

pub(super) enum PendingKind {
    Join {
        join: Join,
        tries: u8,
    },
    ClearToSend {
        head: Box<ClearToSendHead>,
        leases: Vec<ReceiveBuffer>,
    },
}

/// A part's chunk, to be written to the partner that is ready for it.
pub(crate) struct PostedWrite {
    pub(super) member: u64,
    pub(super) connection: ConnectionId,
    pub(super) source: Arc<Lease>,
    pub(super) target: RemoteRange,
    /// The partner's number at its endpoint.
    pub(super) to: u64,
    pub(super) ready: DataReady,
}
