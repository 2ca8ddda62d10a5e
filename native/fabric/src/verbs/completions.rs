//! Completions: what the device has done, and what follows for connections.

use super::device::{Completion, CompletionKind, Status};
use super::driver::Verbs;
use super::frames::{open_sealed_segment, open_segment, Immediate};
use super::queue_pair::{completed_by, parse_id, Id, Posted, QueuePairConnection, MAX_CREDITS};
use crate::stream::dispatch::Receiver;
use crate::stream::reactor::Reactor;
use crate::stream::session::{Context, Phase};
use crate::{CloseReason, ConnectionId, Event, Outcome};
use faro_wire::WireError;

/// Completions taken in one turn, so that sockets and deadlines are served too.
const TURN_COMPLETIONS: usize = 4_096;
/// Receive requests posted again in one call.
const REPOST: usize = 8;

impl Reactor<Verbs> {
    /// Takes what the completion queues hold, up to a turn's number from each.
    pub(super) fn take_completions(&mut self) {
        let Some(context) = &self.driver.context else {
            return;
        };
        let queues: Vec<_> = context.queues().collect();
        let mut completions = Vec::new();
        for queue in queues {
            for _ in 0..TURN_COMPLETIONS / 32 {
                match queue.poll(&mut completions) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => return self.lose_device(&error.to_string()),
                }
                self.driver.tally.completions += completions.len() as u64;
                for completion in completions.drain(..) {
                    self.completed(&completion);
                }
            }
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let (connection, id) = parse_id(completion.id);
        let connection = ConnectionId(connection);
        // Without an entry the connection has ended; its `Remains` keep the memory.
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return;
        };
        let Some(queue_pair) = &mut conn.state else {
            return;
        };
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let result = match &completion.status {
            Status::Done => match (id, completion.kind) {
                (Id::Send { number }, _) => queue_pair.sent(&mut cx, number),
                (Id::Receive { segment }, CompletionKind::ReceivedImmediate(bits)) => {
                    queue_pair.written(&mut cx, segment, bits, completion.bytes)
                }
                (Id::Receive { segment }, _) => {
                    self.received(connection, segment, completion.bytes)
                }
            },
            Status::Flushed => Err(CloseReason::Lost {
                detail: "the queue pair went into error".to_owned(),
            }),
            Status::Failed { what, vendor, .. } => Err(CloseReason::Lost {
                detail: format!("{what}, vendor code {vendor:#x}"),
            }),
        };
        match result {
            Ok(()) => self.send_more(connection),
            Err(reason) => self.close(connection, reason),
        }
    }

    /// A completion made room: sends what waited for it.
    fn send_more(&mut self, connection: ConnectionId) {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return;
        };
        let has_to_send = |queue_pair: &QueuePairConnection| {
            !queue_pair.urgent.is_empty() || queue_pair.owes_much()
        };
        let waits = conn.state.as_deref().is_some_and(has_to_send);
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        if cx.session.phase == Phase::Open && (waits || !cx.session.outbound.is_empty()) {
            cx.touch();
        }
    }

    /// A segment of the peer's stream came.
    fn received(
        &mut self,
        connection: ConnectionId,
        segment: u32,
        bytes: u32,
    ) -> Result<(), CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let Some(queue_pair) = &mut conn.state else {
            return Ok(());
        };
        let Some(came) = queue_pair.received(segment).get(..bytes as usize) else {
            return Err(WireError::BadValue {
                what: "bytes of a segment",
                got: u64::from(bytes),
            }
            .into());
        };
        let length = came.len();
        // Copied, so that the segment can be posted again before the frames are handled.
        let staged = &mut self.staging[..length];
        staged.copy_from_slice(came);
        let (credits, came, counted) = match &mut conn.sealed {
            // Credits too are believed only when the record has opened.
            Some(sealed) => {
                let (credits, came) = open_sealed_segment(sealed.open(staged)?)?;
                (credits, came, length)
            }
            None => {
                let (credits, came) = open_segment(staged)?;
                (credits, came, came.len())
            }
        };
        queue_pair.credits = queue_pair.credits.saturating_add(credits);
        if queue_pair.credits > MAX_CREDITS {
            return Err(WireError::BadValue {
                what: "credits of a segment",
                got: u64::from(credits),
            }
            .into());
        }
        queue_pair.spend(segment);
        if !came.is_empty() {
            self.shared.counters.bytes_in += counted as u64;
        }
        let mut receiver = Receiver {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            driver: &mut self.driver,
            state: &mut conn.state,
            opened: conn.sealed.is_some(),
        };
        // A segment without bytes has credits only.
        if !came.is_empty() {
            conn.inbound.feed(came, &mut receiver)?;
        }
        conn.writable |= conn.session.phase == Phase::Open;
        match &mut conn.state {
            Some(queue_pair) => queue_pair.repost(connection),
            None => Ok(()),
        }
    }
}

impl QueuePairConnection {
    /// Our work requests are complete, up to `number`.
    fn sent(&mut self, cx: &mut Context<'_>, number: u32) -> Result<(), CloseReason> {
        let connection = cx.connection;
        let count = completed_by(self.first, number).min(self.posted.len());
        for _ in 0..count {
            let Some(posted) = self.posted.pop_front() else {
                break;
            };
            self.first = self.first.wrapping_add(1);
            match posted {
                Posted::Segment(segment) => self.give_send(segment),
                Posted::Write {
                    token, key, bytes, ..
                } => {
                    cx.shared.counters.bytes_out += bytes as u64;
                    cx.retire(bytes);
                    cx.event(Event::WriteEnded {
                        connection,
                        token,
                        outcome: Outcome::Done,
                    });
                    self.completed_on(cx, key)?;
                }
                Posted::Read { sequence, key } => {
                    if let Some(read) = cx.session.reads.remove(&sequence) {
                        cx.shared.counters.bytes_in += read.length as u64;
                        cx.read_ended(read, Outcome::Done);
                    }
                    self.completed_on(cx, key)?;
                }
            }
        }
        Ok(())
    }

    /// An operation on the peer's exposure `key` completed.
    fn completed_on(&mut self, cx: &mut Context<'_>, key: u64) -> Result<(), CloseReason> {
        if self.access.completed(key) {
            self.send_revoked(cx, key)?;
        }
        Ok(())
    }

    /// A write of the peer's is in memory.
    fn written(
        &mut self,
        cx: &mut Context<'_>,
        segment: u32,
        bits: u32,
        bytes: u32,
    ) -> Result<(), CloseReason> {
        let immediate = Immediate::decode(bits);
        self.spend(segment);
        let Some(key) = self.exposed.written(immediate.slot, immediate.last) else {
            return Err(WireError::BadValue {
                what: "slot of a write",
                got: u64::from(immediate.slot),
            }
            .into());
        };
        cx.shared.counters.bytes_in += u64::from(bytes);
        cx.write_came(key, immediate.word, Some(bytes as usize));
        self.repost(cx.connection)
    }

    /// Posts spent receive requests again, several in one call. Fewer are posted with what is sent
    /// next, or with the credits for them.
    fn repost(&mut self, connection: ConnectionId) -> Result<(), CloseReason> {
        if self.spent() < REPOST {
            return Ok(());
        }
        self.post_receives(connection.0)
            .map_err(|error| CloseReason::Lost {
                detail: format!("cannot post receive requests: {error}"),
            })
    }
}
