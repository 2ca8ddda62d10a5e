//! Turns the write or read at the head of a session's queue into a work request, once the peer's
//! announcements cover it.

use super::device::{MemoryPieces, WorkOperation, WorkRequest};
use super::driver::{device_is_lost, Verbs};
use super::frames::{AccessQuery, Immediate};
use super::queue_pair::{AccessQuestion, PendingWork, QueuePairConnection};
use super::work_id::send_id;
use crate::frame::bodies::DONE;
use crate::frame::outgoing::{DeviceOperation, Frame};
use crate::session::context::Context;
use crate::{Event, Outcome, RemoteRange};
use faro_pool::Lease;
use faro_wire::kind;
use std::io;
use zerocopy::IntoBytes;

/// Result for the operation at the head of the queue.
pub(super) enum TransmitStep {
    /// It was posted, or it ended.
    Went,
    /// It waits for an answer.
    Waits,
}

/// Posts the operation at the head of the session's queue, if the peer allows it.
pub(super) fn post_work(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    batch: &mut Vec<WorkRequest>,
) -> io::Result<TransmitStep> {
    let Some(work) = cx.session.outbound.next_work() else {
        return Ok(TransmitStep::Went);
    };
    let (sequence, range, writes) = match work {
        DeviceOperation::Write(sequence, write) => {
            // The bytes that are written, not those that may be.
            let length = write.source.length() as u32;
            let range = RemoteRange {
                length,
                ..write.target
            };
            (*sequence, range, true)
        }
        DeviceOperation::Read(sequence, range) => (*sequence, *range, false),
    };
    let covered = queue_pair.access.covers(&range, writes);
    let answer = match queue_pair.question {
        AccessQuestion::Asked { sequence: of, .. } if of == sequence => {
            return Ok(TransmitStep::Waits)
        }
        AccessQuestion::Answered {
            sequence: of,
            again,
            verdict,
        } if of == sequence => {
            queue_pair.question = AccessQuestion::None;
            Some((verdict, again))
        }
        AccessQuestion::None | AccessQuestion::Asked { .. } | AccessQuestion::Answered { .. } => {
            None
        }
    };
    let decided = match (covered, answer) {
        (Some(buffer), None | Some((DONE, _))) => Ok(buffer),
        // EXPOSE may be on its way, or there is none.
        (None, None) => Err(false),
        // It was revoked after the answer: asked again, so that the peer counts the refusal.
        (None, Some((DONE, false))) => Err(true),
        (_, Some((verdict, _))) => {
            log::debug!(
                "connection {}: the peer refused an operation, verdict {verdict}",
                cx.connection.0
            );
            refused(cx);
            return Ok(TransmitStep::Went);
        }
    };
    let buffer = match decided {
        Ok(buffer) => buffer,
        Err(again) => {
            let query = AccessQuery {
                key: range.key.into(),
                offset: range.offset.into(),
                length: range.length.into(),
                writes: u32::from(writes).into(),
            };
            queue_pair
                .urgent
                .push(Frame::small(kind::ACCESS_QUERY, sequence, query.as_bytes()));
            queue_pair.question = AccessQuestion::Asked { sequence, again };
            driver.tally.asked += 1;
            return Ok(TransmitStep::Waits);
        }
    };
    // Before the operation leaves the queue: if this fails, the connection's end finds it there.
    let Some(context) = &mut driver.context else {
        return Err(io::Error::other(device_is_lost()));
    };
    let mut memory = MemoryPieces::default();
    let mut add = |lease: &Lease, offset: usize, length: u32| {
        let keys = context.keys(lease).map_err(io::Error::other)?;
        memory.add(keys.address + offset as u64, length, keys.lkey);
        Ok::<(), io::Error>(())
    };
    match work {
        DeviceOperation::Write(_, write) => {
            for part in write.source.parts() {
                add(part.memory.lease(), part.offset, part.length as u32)?;
            }
        }
        DeviceOperation::Read(sequence, _) => {
            if let Some(read) = cx.session.reads.get(sequence) {
                add(&read.target, 0, range.length)?;
            }
        }
    }
    let Some((work, _)) = cx.session.outbound.take_work() else {
        return Ok(TransmitStep::Went);
    };
    // Nothing for a device to do.
    if !writes && range.length == 0 {
        if let Some(read) = cx.session.reads.remove(&sequence) {
            cx.read_ended(read, Outcome::Done);
        }
        return Ok(TransmitStep::Went);
    }
    let id = send_id(cx.connection.0, queue_pair.next_number());
    let (address, rkey) = (buffer.address + range.offset, buffer.rkey);
    let (operation, posted) = match work {
        DeviceOperation::Write(_, write) => {
            let immediate = Immediate {
                slot: buffer.slot,
                word: write.immediate,
                last: write.last,
            };
            let operation = WorkOperation::Write {
                address,
                rkey,
                immediate: Some(immediate.encode()),
            };
            queue_pair.access.posted(range.key, write.last);
            queue_pair.credits -= 1;
            let posted = PendingWork::Write {
                token: write.token,
                key: range.key,
                bytes: write.source.length(),
                _source: write.source,
            };
            (operation, posted)
        }
        DeviceOperation::Read(..) => {
            queue_pair.access.posted(range.key, false);
            let posted = PendingWork::Read {
                sequence,
                key: range.key,
            };
            (WorkOperation::Read { address, rkey }, posted)
        }
    };
    queue_pair.posted.push_back(posted);
    batch.push(WorkRequest {
        id,
        operation,
        memory,
        signaled: false,
        inline: false,
    });
    Ok(TransmitStep::Went)
}

/// Ends the operation at the head of the queue, which the peer does not allow.
fn refused(cx: &mut Context<'_>) {
    match cx.session.outbound.take_work() {
        Some((DeviceOperation::Read(sequence, _), _)) => {
            if let Some(read) = cx.session.reads.remove(&sequence) {
                cx.read_ended(read, Outcome::Refused);
            }
        }
        Some((DeviceOperation::Write(_, write), _)) => {
            cx.shared.counters.writes_refused_by_peer += 1;
            cx.retire(write.source.length());
            let connection = cx.connection;
            cx.event(Event::WriteEnded {
                connection,
                token: write.token,
                outcome: Outcome::Refused,
            });
        }
        None => {}
    }
}
