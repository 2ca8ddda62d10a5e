//! One connection at work: its queue, and the events of its operations. Every
//! operation that was admitted is retired exactly once: when it ends, or when the connection ends.

use super::state::{ConnectionPhase, FabricShared, PendingRead, Session};
use crate::frame::bodies::{AckEntry, MAX_ACKS, REFUSED};
use crate::frame::outgoing::{Frame, SendCompletion};
use crate::{ConnectionId, Event, Outcome};
use faro_wire::kind;
use zerocopy::IntoBytes;

/// One connection, borrowed with the shared state for one event or operation.
pub(crate) struct Context<'a> {
    pub(crate) connection: ConnectionId,
    pub(crate) session: &'a mut Session,
    pub(crate) shared: &'a mut FabricShared,
}

impl<'a> Context<'a> {
    pub(crate) fn new(session: &'a mut Session, shared: &'a mut FabricShared) -> Self {
        Self {
            connection: session.connection,
            session,
            shared,
        }
    }

    /// Queues a frame; it leaves with the next flush.
    pub(crate) fn push(&mut self, mut frame: Frame) {
        frame.set_version(self.session.version);
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

    /// Returns whether there is room for one more operation of `bytes`, and counts it if so.
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

    /// Uncounts an operation that was admitted.
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
        self.push(Frame::owned(
            kind::WRITE_ACK,
            0,
            body,
            SendCompletion::Nothing,
        ));
    }

    /// Notes that the next `bytes` of the queue were sent, and reports the operations that this
    /// ends.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.session.outbound.advance(bytes);
        while let Some(ends) = self.session.outbound.pop_sent() {
            self.shared.counters.frames_out += 1;
            self.ended(ends, false);
        }
    }

    /// Reports the operation that a frame carried, because the frame was sent or (`flushed`) its
    /// connection ended.
    pub(crate) fn ended(&mut self, ends: SendCompletion, flushed: bool) {
        let connection = self.connection;
        match ends {
            SendCompletion::Nothing => {}
            SendCompletion::Message { bytes } => self.retire(bytes),
            SendCompletion::ReadServed => self.session.reads_served -= 1,
            SendCompletion::Write {
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

    /// Reports the end of a read that this side posted.
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

    /// Reports the end of a peer's write: taken with that many bytes, or refused.
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

    /// Queues a refusal for the writer, unless too much is queued already, so that a peer that sends
    /// bad writes and does not receive cannot make this queue grow.
    pub(crate) fn refuse_if_room(&mut self, sequence: u64) {
        if self.session.outbound.len() <= 2 * self.shared.bounds.operations {
            self.verdict(sequence, REFUSED);
        }
    }

    /// Marks the connection as open.
    pub(crate) fn opened(&mut self) {
        let (connection, endpoint) = (self.connection, self.session.remote);
        self.session.phase = ConnectionPhase::OpenConnection;
        if self.session.expected.is_some() {
            self.shared.counters.connected += 1;
            self.event(Event::Connected {
                connection,
                endpoint,
            });
        } else {
            self.shared.counters.accepted += 1;
            self.event(Event::Accepted {
                connection,
                endpoint,
            });
        }
    }
}
