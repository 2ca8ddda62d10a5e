//! A connection but for its bytes: its phase, and the operations that are under way.
//!
//! ```text
//!  connector: Connecting -> Greeting -> [Pairing] -> Open    acceptor: AwaitHello -> AwaitProof -> [Pairing] -> Open
//! ```
//! What only one fabric keeps per connection is in its driver's `Connection`, beside the session,
//! so that a driver can work on both at once. Every operation that was admitted is retired exactly
//! once, by what ends it or by the connection's end.

use super::bounds::Bounds;
use super::counters::Counters;
use super::exposure::{ByKey, Exposures};
use super::frames::{AckEntry, MAX_ACKS, REFUSED};
use super::greeting::Handshake;
use super::outbound::{Ends, Frame, Outbound};
use super::strangers::Strangers;
use crate::{ConnectionId, EndpointId, Event, FabricKind, Identity, Outcome, OwnIdentity};
use faro_pool::Lease;
use faro_secure::{Keys, Protection};
use faro_wire::kind;
use std::time::Instant;
use zerocopy::IntoBytes;

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Ours; the socket is not connected yet.
    Connecting,
    /// Ours; HELLO is on its way.
    Greeting,
    /// Theirs; its HELLO has not come.
    AwaitHello,
    /// Theirs; WELCOME is on its way, and its proof has not come.
    AwaitProof,
    /// Both endpoints are known; the driver exchanges frames of its own before the connection opens.
    Pairing,
    /// Usable.
    Open,
}

/// A read of ours.
pub(crate) struct PendingRead {
    pub(crate) token: u64,
    pub(crate) length: usize,
    pub(crate) target: Lease,
}

/// One connection, but for its socket and its framing.
pub(crate) struct Session {
    pub(crate) phase: Phase,
    /// The endpoint that a connector expects, and its location; `None` for accepted connections.
    pub(crate) expected: Option<(Identity, String)>,
    /// The peer's endpoint; 0 before it has proven which one it is.
    pub(crate) remote: EndpointId,
    pub(crate) handshake: Handshake,
    /// What the peer sends is in records.
    pub(crate) is_sealed: bool,
    /// Of the records, until the connection has taken them over.
    pub(crate) keys: Option<Keys>,
    /// Bytes at the front of `outbound` that go before the records, in the clear.
    pub(crate) in_clear: usize,
    /// `Open` must be reached by then.
    pub(crate) deadline: Instant,
    pub(crate) outbound: Outbound,
    /// Operations of ours that have not ended.
    pub(crate) operations: usize,
    /// Their bytes.
    pub(crate) operation_bytes: u64,
    /// An operation was rejected since there was room last.
    pub(crate) wants_room: bool,
    /// Last sequence number given to a one-sided operation.
    pub(crate) sequence: u64,
    /// Reads of ours, by sequence number.
    pub(crate) reads: ByKey<PendingRead>,
    /// Reads of theirs whose reply is not sent yet.
    pub(crate) reads_served: usize,
    /// Exposures granted to this peer.
    pub(crate) exposures: usize,
    /// Verdicts to tell in the next WRITE_ACK.
    pub(crate) verdicts: Vec<AckEntry>,
    /// On the reactor's list of connections to flush.
    pub(crate) dirty: bool,
}

impl Session {
    pub(crate) fn new(
        phase: Phase,
        expected: Option<(Identity, String)>,
        deadline: Instant,
    ) -> Self {
        Self {
            phase,
            expected,
            remote: 0,
            handshake: Handshake::None,
            is_sealed: false,
            keys: None,
            in_clear: 0,
            deadline,
            outbound: Outbound::default(),
            operations: 0,
            operation_bytes: 0,
            wants_room: false,
            sequence: 0,
            reads: ByKey::default(),
            reads_served: 0,
            exposures: 0,
            verdicts: Vec::new(),
            dirty: false,
        }
    }
}

/// What all connections of one fabric share.
pub(crate) struct Shared {
    pub(crate) fabric: FabricKind,
    /// This endpoint's.
    pub(crate) identity: OwnIdentity,
    pub(crate) protection: Protection,
    pub(crate) bounds: Bounds,
    /// Accepted connections that have not proven who they are.
    pub(crate) strangers: Strangers,
    pub(crate) exposures: Exposures,
    pub(crate) events: Vec<Event>,
    pub(crate) counters: Counters,
    /// Bytes that frames of this turn made us copy outside the stream.
    pub(crate) work: usize,
    /// A queue that was full has room again: the next `poll` returns at once, so that the caller tries again.
    pub(crate) room: bool,
    /// Connections with something to send.
    pub(crate) dirty: Vec<ConnectionId>,
}

/// One connection while something is done with it.
pub(crate) struct Context<'a> {
    pub(crate) connection: ConnectionId,
    pub(crate) session: &'a mut Session,
    pub(crate) shared: &'a mut Shared,
}

impl Context<'_> {
    /// Queues a frame; it leaves with the next flush.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.session.outbound.push(frame);
        self.touch();
    }

    /// Puts the connection on the list of those to flush.
    pub(crate) fn touch(&mut self) {
        if !std::mem::replace(&mut self.session.dirty, true) {
            self.shared.dirty.push(self.connection);
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.shared.events.push(event);
    }

    /// Room for one more operation of `bytes`? Counts it in if so.
    pub(crate) fn admit(&mut self, bytes: usize) -> bool {
        let bounds = &self.shared.bounds;
        let bytes = bytes as u64;
        let fits = self.session.operations < bounds.operations
            && (self.session.operation_bytes == 0
                || self.session.operation_bytes + bytes <= bounds.queued_bytes);
        if fits {
            self.session.operations += 1;
            self.session.operation_bytes += bytes;
        } else {
            self.session.wants_room = true;
            self.shared.counters.rejected_full += 1;
        }
        fits
    }

    /// An operation that was admitted is over.
    pub(crate) fn retire(&mut self, bytes: usize) {
        self.session.operations -= 1;
        self.session.operation_bytes -= bytes as u64;
        self.shared.room |= std::mem::take(&mut self.session.wants_room);
    }

    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.session.sequence += 1;
        self.session.sequence
    }

    /// Queues a verdict (`DONE` or `REFUSED`) for the next WRITE_ACK.
    pub(crate) fn verdict(&mut self, sequence: u64, verdict: u32) {
        self.session.verdicts.push(AckEntry {
            sequence: sequence.into(),
            verdict: verdict.into(),
            reserved: 0.into(),
        });
        if self.session.verdicts.len() >= MAX_ACKS {
            self.push_verdicts();
        } else {
            self.touch();
        }
    }

    /// Turns the collected verdicts into a frame.
    pub(crate) fn push_verdicts(&mut self) {
        if self.session.verdicts.is_empty() {
            return;
        }
        let body = self.session.verdicts.as_bytes().to_vec();
        self.session.verdicts.clear();
        self.push(Frame::owned(kind::WRITE_ACK, 0, body, Ends::Nothing));
    }

    /// The next `bytes` of the queue were sent: reports the operations that this ends.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.session.outbound.advance(bytes);
        while let Some(ends) = self.session.outbound.pop_sent() {
            self.shared.counters.frames_out += 1;
            self.ended(ends, false);
        }
    }

    /// A frame was sent, or (`flushed`) its connection ended: reports the operation that it carried.
    pub(crate) fn ended(&mut self, ends: Ends, flushed: bool) {
        let connection = self.connection;
        match ends {
            Ends::Nothing => {}
            Ends::Message { bytes } => self.retire(bytes),
            Ends::ReadServed => self.session.reads_served -= 1,
            Ends::Write {
                token,
                bytes,
                outcome,
                ..
            } => {
                self.retire(bytes);
                let outcome = if flushed { Outcome::Flushed } else { outcome };
                self.event(Event::WriteEnded {
                    connection,
                    token,
                    outcome,
                });
            }
        }
    }

    /// A read of ours is over.
    pub(crate) fn read_ended(&mut self, read: PendingRead, outcome: Outcome) {
        self.retire(0);
        let connection = self.connection;
        self.event(Event::ReadEnded {
            connection,
            token: read.token,
            target: read.target,
            outcome,
        });
    }

    /// A peer's write ended: taken with that many bytes, or refused.
    pub(crate) fn write_came(&mut self, key: u64, immediate: Option<u16>, taken: Option<usize>) {
        let connection = self.connection;
        let Some(bytes) = taken else {
            self.shared.counters.writes_refused += 1;
            return;
        };
        self.shared.counters.writes_in += 1;
        self.shared.counters.write_bytes_in += bytes as u64;
        if let Some(immediate) = immediate {
            self.event(Event::Written {
                connection,
                key,
                immediate,
                length: bytes as u32,
            });
        }
    }

    /// Tells the writer of a refusal, unless too much is queued for it already: a peer that sends bad
    /// writes and does not receive cannot make our queue grow.
    pub(crate) fn refuse_if_room(&mut self, sequence: u64) {
        if self.session.outbound.len() <= 2 * self.shared.bounds.operations {
            self.verdict(sequence, REFUSED);
        }
    }
}
