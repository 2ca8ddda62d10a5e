//! What leaves: frames into segments, operations into work requests, one call for many.
//!
//! Two queues feed a pair. The session's is a FIFO of messages and operations, because a message
//! promises that the writes before it have landed. What peers wait for (announcements, answers)
//! goes before it, at frame boundaries, so that an operation that waits for an answer never
//! holds up the answer that the other side waits for.

use super::carrier::Verbs;
use super::device::{Operation, WorkRequest};
use super::frames::{Ask, Immediate, SegmentHead, SEGMENT_HEAD};
use super::pair::{send_id, Pair, Posted, RESERVE, SEGMENT_ROOM};
use crate::stream::frames::DONE;
use crate::stream::outbound::{Ends, Frame, Work};
use crate::stream::session::Context;
use crate::{Event, Outcome, RemoteRange};
use faro_wire::kind;
use std::io;
use zerocopy::IntoBytes;

/// Work requests handed over in one call.
const BATCH: usize = 32;

/// What became of the operation at the head of the queue.
enum Step {
    /// It was posted, or ended without: go on.
    Went,
    /// It waits for an answer.
    Waits,
}

impl Verbs {
    /// Sends what a connection has queued, as far as credits and the device allow. True: all.
    pub(super) fn transmit_all(&mut self, cx: &mut Context<'_, Self>) -> io::Result<bool> {
        // Out for the while, so that session and pair can be worked on side by side.
        let Some(mut pair) = cx.session.carrier.pair.take() else {
            return Ok(false);
        };
        let result = self.transmit_pair(cx, &mut pair);
        let empty = cx.session.outbound.is_empty() && pair.urgent.is_empty();
        cx.session.carrier.pair = Some(pair);
        result.map(|()| empty)
    }

    fn transmit_pair(&mut self, cx: &mut Context<'_, Self>, pair: &mut Pair) -> io::Result<()> {
        pair.post_receives()?;
        let mut batch: Vec<WorkRequest> = Vec::with_capacity(BATCH);
        loop {
            while batch.len() < BATCH && pair.room() > 0 {
                let urgent = !pair.urgent.is_empty() && !cx.session.outbound.in_mid_frame();
                let work = !urgent && cx.session.outbound.next_work().is_some();
                let idle = !urgent && cx.session.outbound.is_empty();
                if idle || pair.credits <= RESERVE {
                    break;
                }
                if work {
                    match self.post_work(cx, pair, &mut batch)? {
                        Step::Went => {}
                        Step::Waits if pair.urgent.is_empty() => break,
                        Step::Waits => {}
                    }
                } else if pair.free_sends == 0 {
                    break;
                } else {
                    fill_segment(cx, pair, urgent, &mut batch);
                }
            }
            if pair.owes_much() && pair.credits > 0 && pair.free_sends > 0 && pair.room() > 0 {
                self.tally.credit_updates += 1;
                seal_segment(cx.connection.0, pair, 0, &mut batch);
            }
            let Some(last) = batch.last_mut() else {
                return Ok(());
            };
            last.signaled = true;
            self.tally.posts += 1;
            self.tally.work_requests += batch.len() as u64;
            cx.shared.counters.send_calls += 1;
            pair.queue.post_send(&batch).map_err(|error| error.source)?;
            batch.clear();
        }
    }

    /// The operation at the head of the session's queue.
    fn post_work(
        &mut self,
        cx: &mut Context<'_, Self>,
        pair: &mut Pair,
        batch: &mut Vec<WorkRequest>,
    ) -> io::Result<Step> {
        let (sequence, range, writes) = match cx.session.outbound.next_work() {
            Some(Work::Write(sequence, write)) => {
                // What is written, not what may be.
                let length = write.length as u32;
                let range = RemoteRange {
                    length,
                    ..write.target
                };
                (*sequence, range, true)
            }
            Some(Work::Read(sequence, range)) => (*sequence, *range, false),
            None => return Ok(Step::Went),
        };
        let covered = pair.grants.covers(&range, writes);
        let verdict = match pair.asked {
            Some((asked, verdict)) if asked == sequence => match verdict {
                None => return Ok(Step::Waits),
                verdict => {
                    pair.asked = None;
                    verdict
                }
            },
            _ => None,
        };
        let (grant, verdict) = match (covered, verdict) {
            (Some(grant), None | Some(DONE)) => (Some(grant), DONE),
            (None, None) => {
                // The announcement may be on its way, or there is none.
                let ask = Ask {
                    key: range.key.into(),
                    offset: range.offset.into(),
                    length: range.length.into(),
                    writes: u32::from(writes).into(),
                };
                pair.urgent
                    .push(Frame::small(kind::ACCESS_QUERY, sequence, ask.as_bytes()));
                pair.asked = Some((sequence, None));
                self.tally.asked += 1;
                return Ok(Step::Waits);
            }
            (_, verdict) => (None, verdict.unwrap_or(DONE)),
        };
        let Some((work, ends)) = cx.session.outbound.take_work() else {
            return Ok(Step::Went);
        };
        let Some(grant) = grant else {
            log::debug!(
                "an operation of peer {} was refused: {verdict}",
                cx.connection.0
            );
            refused(cx, work, ends);
            return Ok(Step::Went);
        };
        let Some(rig) = &mut self.rig else {
            return Err(io::Error::other("the RDMA device is gone"));
        };
        let number = pair.first.wrapping_add(pair.posted.len() as u32);
        let id = send_id(cx.connection.0, number);
        let remote = grant.address + range.offset;
        let (operation, lease, offset, posted) = match work {
            Work::Write(_, write) => {
                let immediate = Immediate {
                    slot: grant.slot,
                    word: write.immediate,
                    last: write.last,
                };
                let operation = Operation::Write {
                    address: remote,
                    rkey: grant.rkey,
                    immediate: Some(immediate.encode()),
                };
                let keys = rig.keys(&write.source).map_err(io::Error::other)?;
                pair.grants.posted(range.key, write.last);
                pair.credits -= 1;
                let posted = Posted::Write {
                    token: write.token,
                    key: range.key,
                    bytes: write.length,
                    _source: write.source,
                };
                (operation, keys, write.offset, posted)
            }
            Work::Read(sequence, _) => {
                let Some(read) = cx.session.reads.get(&sequence) else {
                    return Ok(Step::Went);
                };
                if range.length == 0 {
                    // Nothing for a device to do.
                    if let Some(read) = cx.session.reads.remove(&sequence) {
                        cx.read_ended(read, Outcome::Done);
                    }
                    return Ok(Step::Went);
                }
                let operation = Operation::Read {
                    address: remote,
                    rkey: grant.rkey,
                };
                let keys = rig.keys(&read.target).map_err(io::Error::other)?;
                pair.grants.posted(range.key, false);
                let posted = Posted::Read {
                    sequence,
                    key: range.key,
                };
                (operation, keys, 0, posted)
            }
        };
        pair.posted.push_back(posted);
        batch.push(WorkRequest {
            id,
            operation,
            address: lease.address + offset as u64,
            length: range.length,
            lkey: lease.lkey,
            signaled: false,
            inline: false,
        });
        Ok(Step::Went)
    }
}

/// An operation that the peer does not allow is over.
fn refused(cx: &mut Context<'_, Verbs>, work: Work, ends: Ends) {
    match (work, ends) {
        (Work::Read(sequence, _), _) => {
            if let Some(read) = cx.session.reads.remove(&sequence) {
                cx.read_ended(read, Outcome::Refused);
            }
        }
        (_, Ends::Write { token, bytes, .. }) => {
            cx.shared.counters.writes_refused_by_peer += 1;
            cx.retire(bytes);
            let connection = cx.connection;
            cx.event(Event::WriteEnded {
                connection,
                token,
                outcome: Outcome::Refused,
            });
        }
        _ => {}
    }
}

/// As many of the next bytes as a segment takes.
fn fill_segment(
    cx: &mut Context<'_, Verbs>,
    pair: &mut Pair,
    urgent: bool,
    batch: &mut Vec<WorkRequest>,
) {
    let segment = pair.next_send;
    let room = &mut pair.sends.bytes_mut(segment)[SEGMENT_HEAD..];
    let mut bytes = 0;
    if urgent {
        bytes = pair.urgent.copy_into(room);
        // An urgent frame ends nobody's operation.
        pair.urgent
            .advance(bytes, |_| cx.shared.counters.frames_out += 1);
    }
    if !pair.urgent.in_mid_frame() && bytes < SEGMENT_ROOM {
        let more = cx.session.outbound.copy_into(&mut room[bytes..]);
        bytes += more;
        let mut outbound = std::mem::take(&mut cx.session.outbound);
        if more > 0 {
            outbound.advance(more, |ends| {
                cx.shared.counters.frames_out += 1;
                cx.ended(ends, false);
            });
        }
        cx.session.outbound = outbound;
    }
    cx.shared.counters.bytes_out += bytes as u64;
    seal_segment(cx.connection.0, pair, bytes, batch);
}

/// Puts the next segment into the batch, with `bytes` of the stream and all credits owed.
fn seal_segment(connection: u64, pair: &mut Pair, bytes: usize, batch: &mut Vec<WorkRequest>) {
    let segment = pair.take_send();
    let head = SegmentHead {
        credits: std::mem::take(&mut pair.owed).into(),
        bytes: (bytes as u32).into(),
    };
    pair.sends.bytes_mut(segment)[..SEGMENT_HEAD].copy_from_slice(head.as_bytes());
    let number = pair.first.wrapping_add(pair.posted.len() as u32);
    let length = (SEGMENT_HEAD + bytes) as u32;
    pair.posted.push_back(Posted::Segment);
    pair.credits -= 1;
    batch.push(WorkRequest {
        id: send_id(connection, number),
        operation: Operation::Send,
        address: pair.sends.address(segment),
        length,
        lkey: pair.sends.lkey,
        signaled: false,
        inline: length <= pair.queue.inline_bytes(),
    });
}
