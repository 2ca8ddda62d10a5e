//! A connection but for its bytes: its phase, and the operations that are under way.
//!
//! ```text
//!  connector: Connecting -> Greeting -> [Pairing] -> Open        acceptor: AwaitHello -> [Pairing] -> Open
//! ```
//! What only one fabric has (one-sided frames) is its [`Carrier`]'s. Every operation that was
//! admitted is retired exactly once, by what ends it or by the connection's end.

use super::bounds::Bounds;
use super::counters::Counters;
use super::exposure::{ByKey, Exposures};
use super::frames::{AckEntry, MAX_ACKS};
use super::hub::Hub;
use super::inbound::{Shape, Sink};
use super::outbound::{Ends, Frame, Outbound};
use super::socket::{Listener, Socket};
use crate::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, FabricError, FabricKind, Outcome,
    Rejected, RemoteRange, Revoked, Write,
};
use faro_pool::Lease;
use faro_wire::{kind, FrameHeader, WireError};
use std::io;
use std::time::Instant;
use zerocopy::IntoBytes;

/// What one fabric adds to the shared stream.
pub(crate) trait Carrier: Send + Sized {
    /// Which one it is.
    const KIND: FabricKind;
    /// Its sockets.
    type Socket: Socket;
    /// Where they come from.
    type Listener: Listener<Socket = Self::Socket>;
    /// What it keeps per connection.
    type Peer: Default + Send;
    /// What a closed connection leaves behind that must live until the peer is gone.
    type Remains: Send;
    /// Bytes of staged frames per system call: what one call may bring of a peer's work.
    const STAGING: usize;
    /// Does a receive that returns less than offered mean that nothing is left? (Not where
    /// descriptors cut a receive short.)
    const SHORT_MEANS_DRAINED: bool;
    /// Once open, frames travel by `transmit`; the socket then only tells that the peer is gone.
    const OWN_DATAPATH: bool = false;

    /// The shape of a one-sided kind and the longest body it may have; `None`: not of this fabric.
    fn shape(kind: u8) -> Option<(Shape, u32)>;
    /// Called after each receive: takes over what came beside the bytes (descriptors).
    fn collect(_socket: &mut Self::Socket, _peer: &mut Self::Peer) -> Result<(), CloseReason> {
        Ok(())
    }
    /// The longest body of a kind that may come while `Pairing`; `None`: it may not.
    fn pairing(_kind: u8) -> Option<u32> {
        None
    }
    /// HELLO is queued: whatever is to follow it at once.
    fn said_hello(&mut self, _cx: &mut Context<'_, Self>) -> Result<(), CloseReason> {
        Ok(())
    }
    /// Both sides know each other. True: open now; false: `Pairing`, and `Context::opened` later.
    fn greeted(&mut self, _cx: &mut Context<'_, Self>) -> bool {
        true
    }
    /// A head of payload came (not where `shape` lets no payload in).
    fn on_head(
        &mut self,
        _cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        _head: &[u8],
        _length: usize,
    ) -> Result<Sink, CloseReason> {
        Err(WireError::UnknownKind { got: header.kind }.into())
    }
    /// A whole one-sided frame came.
    fn on_frame(
        &mut self,
        cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(), CloseReason>;
    /// A connection ended: report what only the carrier knows to be pending, oldest first.
    /// `told`: the peer was sent a GOODBYE that may still be on its way.
    fn on_closed(&mut self, cx: &mut Context<'_, Self>, told: bool) -> Option<Self::Remains>;

    /// What a closed connection had left behind is not needed any more.
    fn on_gone(&mut self, _shared: &mut Shared, _peer: ConnectionId, _remains: Self::Remains) {}

    /// Told once how to register what else wakes the hub, under the tokens `hub::CARRIER`.
    fn watch(&mut self, _registry: &mio::Registry) -> io::Result<()> {
        Ok(())
    }
    /// What was registered under that token is ready.
    fn signalled(&mut self, _token: mio::Token) {}
    /// About to wait. True: better not, there is something to do.
    fn before_wait(_hub: &mut Hub<Self>) -> Result<bool, FabricError> {
        Ok(false)
    }
    /// After each wait, before the sockets' turn.
    fn turn(_hub: &mut Hub<Self>) -> Result<(), FabricError> {
        Ok(())
    }
    /// Counters of its own, besides those of all.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Sends what an open connection has queued (only with `OWN_DATAPATH`). True: all of it.
    fn transmit(&mut self, _cx: &mut Context<'_, Self>) -> io::Result<bool> {
        Ok(true)
    }

    /// Starts to connect; an error of the call if it is no location.
    fn start(&mut self, location: &str) -> Result<io::Result<Self::Socket>, FabricError>;
    /// Queues a write that was admitted.
    fn post_write(&mut self, cx: &mut Context<'_, Self>, write: Write);
    /// Queues a read that was admitted and is listed among the session's.
    fn post_read(&mut self, cx: &mut Context<'_, Self>, sequence: u64, source: RemoteRange);
    /// See [`crate::Fabric::register`].
    fn register(_hub: &mut Hub<Self>, _lease: &Lease) -> Result<(), FabricError> {
        Ok(())
    }
    /// See [`crate::Fabric::expose`].
    fn expose(
        hub: &mut Hub<Self>,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        hub.expose(connection, exposure)
    }
    /// See [`crate::Fabric::revoke`].
    fn revoke(hub: &mut Hub<Self>, key: u64) -> Revoked {
        match hub.revoke(key) {
            Some(exposure) => Revoked::Now(exposure),
            None => Revoked::Unknown,
        }
    }
}

/// Where a connection is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Ours, not through yet.
    Connecting,
    /// Ours, HELLO is on its way.
    Greeting,
    /// Theirs, has not said who it is.
    AwaitHello,
    /// Who they are is known; the carrier sets up its own way to them.
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
pub(crate) struct Session<P> {
    pub(crate) phase: Phase,
    /// Whom a connector expects, and where; `None` for accepted connections.
    pub(crate) expected: Option<(EndpointId, String)>,
    /// Who the peer is; 0 before `Open`.
    pub(crate) remote: EndpointId,
    /// Until when `Open` must be reached.
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
    /// On the hub's list of connections to flush.
    pub(crate) dirty: bool,
    /// The carrier's own.
    pub(crate) carrier: P,
}

impl<P: Default> Session<P> {
    pub(crate) fn new(
        phase: Phase,
        expected: Option<(EndpointId, String)>,
        deadline: Instant,
    ) -> Self {
        Self {
            phase,
            expected,
            remote: 0,
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
            carrier: P::default(),
        }
    }
}

/// What all connections of one fabric share.
pub(crate) struct Shared {
    pub(crate) endpoint: EndpointId,
    pub(crate) bounds: Bounds,
    pub(crate) exposures: Exposures,
    pub(crate) events: Vec<Event>,
    pub(crate) counters: Counters,
    /// Bytes that frames of this turn had us move beside the stream.
    pub(crate) work: usize,
    /// There is room again where there was none: the caller wants to know, without an event.
    pub(crate) room: bool,
    /// Connections with something to send.
    pub(crate) dirty: Vec<ConnectionId>,
}

/// One connection while something is done with it.
pub(crate) struct Context<'a, C: Carrier> {
    pub(crate) connection: ConnectionId,
    pub(crate) session: &'a mut Session<C::Peer>,
    pub(crate) shared: &'a mut Shared,
}

impl<C: Carrier> Context<'_, C> {
    /// Queues a frame; it leaves with the next flush.
    pub(crate) fn push(&mut self, frame: Frame) {
        self.session.outbound.push(frame);
        self.touch();
    }

    /// Has the connection flushed.
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

    /// Queues a verdict for the next WRITE_ACK.
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

    /// A frame (or the connection) ended: tell whose operation that was.
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

    /// Tells the writer of a refusal. A courtesy, so it is bounded: a peer that writes nothing
    /// but nonsense and does not listen gets no queue of ours to grow.
    pub(crate) fn refuse_if_room(&mut self, sequence: u64) {
        if self.session.outbound.len() <= 2 * self.shared.bounds.operations {
            self.verdict(sequence, super::frames::REFUSED);
        }
    }
}
