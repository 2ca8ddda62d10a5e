//! Turns the write or read at the head of a session's queue into a work request, once the peer's
//! announcements cover it.

use super::device::{WorkOperation, WorkRequest};
use super::driver::{device_is_lost, Verbs};
use super::frames::{AccessQuery, Immediate};
use super::queue_pair::{AccessQuestion, PendingWork, QueuePairConnection};
use super::work_id::send_id;
use crate::frame::bodies::DONE;
use crate::frame::outgoing::{DeviceOperation, Frame};
use crate::session::context::Context;
use crate::{Event, Outcome, RemoteRange};
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
            let length = write.length as u32;
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
    let local = match work {
        DeviceOperation::Write(_, write) => Some(context.keys(&write.source)),
        DeviceOperation::Read(sequence, _) if range.length > 0 => cx
            .session
            .reads
            .get(sequence)
            .map(|read| context.keys(&read.target)),
        // Nothing for a device to do.
        DeviceOperation::Read(..) => None,
    };
    let local = local.transpose().map_err(io::Error::other)?;
    let Some((work, _)) = cx.session.outbound.take_work() else {
        return Ok(TransmitStep::Went);
    };
    let Some(local) = local else {
        if let Some(read) = cx.session.reads.remove(&sequence) {
            cx.read_ended(read, Outcome::Done);
        }
        return Ok(TransmitStep::Went);
    };
    let id = send_id(cx.connection.0, queue_pair.next_number());
    let (address, rkey) = (buffer.address + range.offset, buffer.rkey);
    let (operation, offset, posted) = match work {
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
                bytes: write.length,
                _source: write.source,
            };
            (operation, write.offset, posted)
        }
        DeviceOperation::Read(..) => {
            queue_pair.access.posted(range.key, false);
            let posted = PendingWork::Read {
                sequence,
                key: range.key,
            };
            (WorkOperation::Read { address, rkey }, 0, posted)
        }
    };
    queue_pair.posted.push_back(posted);
    batch.push(WorkRequest {
        id,
        operation,
        address: local.address + offset as u64,
        length: range.length,
        lkey: local.lkey,
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
            cx.retire(write.length);
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
