//! Sending: frames into segments, operations into work requests, many in one call.
//!
//! A queue pair sends from two queues. The session's is a FIFO of messages and operations, because
//! a message promises that the writes before it have landed. Frames that the peer waits for
//! (announcements, answers) go before it, at frame boundaries. Without that, an operation that
//! waits for an answer could hold up the answer that the other side waits for.

use super::device::{WorkOperation, WorkRequest};
use super::driver::{device_is_lost, Verbs};
use super::frames::{
    AccessQuery, Immediate, SegmentHead, SEALED_HEAD, SEGMENT_BYTES, SEGMENT_HEAD, SEGMENT_ROOM,
};
use super::queue_pair::{send_id, AccessQuestion, Posted, QueuePairConnection};
use super::ring_share::RESERVE;
use super::segment::Segment;
use crate::frame::bodies::DONE;
use crate::frame::outbound::{Frame, Work};
use crate::frame::records::Records;
use crate::session::context::Context;
use crate::{Event, Outcome, RemoteRange};
use faro_secure::{HEADER_BYTES, OVERHEAD_BYTES, TAG_BYTES};
use faro_wire::kind;
use std::io;
use zerocopy::IntoBytes;

/// Work requests handed over in one call.
const BATCH: usize = 32;

/// Result for the operation at the head of the queue.
enum TransmitStep {
    /// It was posted, or it ended.
    Went,
    /// It waits for an answer.
    Waits,
}

/// Sends a connection's queue as far as credits and the device allow. Returns whether all was sent.
pub(super) fn transmit(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    mut records: Option<&mut Records>,
) -> io::Result<bool> {
    if let Some(context) = &mut driver.context {
        queue_pair.grow(context);
    }
    queue_pair.post_receives(cx.connection.0)?;
    let mut batch: Vec<WorkRequest> = Vec::with_capacity(BATCH);
    loop {
        while batch.len() < BATCH && queue_pair.room() > 0 {
            let urgent = !queue_pair.urgent.is_empty() && !cx.session.outbound.in_mid_frame();
            let work = !urgent && cx.session.outbound.next_work().is_some();
            let idle = !urgent && cx.session.outbound.is_empty();
            if idle || queue_pair.credits <= RESERVE {
                break;
            }
            if work {
                match post_work(driver, cx, queue_pair, &mut batch)? {
                    TransmitStep::Went => {}
                    TransmitStep::Waits if queue_pair.urgent.is_empty() => break,
                    TransmitStep::Waits => {}
                }
            } else {
                let Some(segment) = take_send(driver, queue_pair)? else {
                    break;
                };
                match &mut records {
                    Some(records) => {
                        fill_sealed(cx, queue_pair, records, segment, &mut batch)?;
                    }
                    None => fill_segment(cx, queue_pair, segment, urgent, &mut batch),
                }
            }
        }
        let can_send = queue_pair.credits > 0 && queue_pair.room() > 0;
        if queue_pair.owes_much() && can_send {
            if let Some(segment) = take_send(driver, queue_pair)? {
                driver.tally.credit_updates += 1;
                let connection = cx.connection.0;
                match &mut records {
                    Some(records) => {
                        let nothing = |_: &mut [u8]| 0;
                        send_record(
                            connection, queue_pair, records, segment, nothing, &mut batch,
                        )?;
                    }
                    None => send_segment(connection, queue_pair, segment, 0, &mut batch),
                }
            }
        }
        let Some(last) = batch.last_mut() else {
            return Ok(cx.session.outbound.is_empty() && queue_pair.urgent.is_empty());
        };
        last.signaled = true;
        driver.tally.posts += 1;
        driver.tally.work_requests += batch.len() as u64;
        cx.shared.counters.send_calls += 1;
        queue_pair
            .queue
            .post_send(&batch)
            .map_err(|error| error.source)?;
        batch.clear();
    }
}

/// Takes a segment to send; `None` if one must complete first.
fn take_send(
    driver: &mut Verbs,
    queue_pair: &mut QueuePairConnection,
) -> io::Result<Option<Segment>> {
    match &mut driver.context {
        Some(context) => Ok(queue_pair.take_send(context)),
        None => Err(io::Error::other(device_is_lost())),
    }
}

/// Posts the operation at the head of the session's queue, if the peer allows it.
fn post_work(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    batch: &mut Vec<WorkRequest>,
) -> io::Result<TransmitStep> {
    let Some(work) = cx.session.outbound.next_work() else {
        return Ok(TransmitStep::Went);
    };
    let (sequence, range, writes) = match work {
        Work::Write(sequence, write) => {
            // The bytes that are written, not those that may be.
            let length = write.length as u32;
            let range = RemoteRange {
                length,
                ..write.target
            };
            (*sequence, range, true)
        }
        Work::Read(sequence, range) => (*sequence, *range, false),
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
        Work::Write(_, write) => Some(context.keys(&write.source)),
        Work::Read(sequence, _) if range.length > 0 => cx
            .session
            .reads
            .get(sequence)
            .map(|read| context.keys(&read.target)),
        // Nothing for a device to do.
        Work::Read(..) => None,
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
        Work::Write(_, write) => {
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
            let posted = Posted::Write {
                token: write.token,
                key: range.key,
                bytes: write.length,
                _source: write.source,
            };
            (operation, write.offset, posted)
        }
        Work::Read(..) => {
            queue_pair.access.posted(range.key, false);
            let posted = Posted::Read {
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
        Some((Work::Read(sequence, _), _)) => {
            if let Some(read) = cx.session.reads.remove(&sequence) {
                cx.read_ended(read, Outcome::Refused);
            }
        }
        Some((Work::Write(_, write), _)) => {
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

/// Fills a segment with the next bytes and puts it into the batch.
fn fill_segment(
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    mut segment: Segment,
    urgent: bool,
    batch: &mut Vec<WorkRequest>,
) {
    let room = &mut segment.bytes_mut()[SEGMENT_HEAD..];
    let mut bytes = 0;
    if urgent {
        bytes = queue_pair.urgent.copy_into(room);
        queue_pair.urgent.advance(bytes);
        // An urgent frame ends no operation.
        while queue_pair.urgent.pop_sent().is_some() {
            cx.shared.counters.frames_out += 1;
        }
    }
    if !queue_pair.urgent.in_mid_frame() && bytes < SEGMENT_ROOM {
        let more = cx.session.outbound.copy_into(&mut room[bytes..]);
        bytes += more;
        if more > 0 {
            cx.sent(more);
        }
    }
    cx.shared.counters.bytes_out += bytes as u64;
    send_segment(cx.connection.0, queue_pair, segment, bytes, batch);
}

/// Fills a segment with a record of the next bytes, and puts it into the batch. A sealed connection
/// has no urgent frames.
fn fill_sealed(
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    records: &mut Records,
    segment: Segment,
    batch: &mut Vec<WorkRequest>,
) -> io::Result<()> {
    let outbound = &cx.session.outbound;
    let copy = |room: &mut [u8]| outbound.copy_into(room);
    let bytes = send_record(cx.connection.0, queue_pair, records, segment, copy, batch)?;
    cx.shared.counters.bytes_out += (bytes + SEALED_HEAD + OVERHEAD_BYTES) as u64;
    cx.sent(bytes);
    Ok(())
}

/// Puts a segment into the batch that is one record: all credits owed, and the bytes that `fill`
/// writes. The record is sealed before it comes into memory that the device can reach. Returns how
/// many bytes `fill` wrote.
fn send_record(
    connection: u64,
    queue_pair: &mut QueuePairConnection,
    records: &mut Records,
    mut segment: Segment,
    fill: impl FnOnce(&mut [u8]) -> usize,
    batch: &mut Vec<WorkRequest>,
) -> io::Result<usize> {
    let mut record = [0; SEGMENT_BYTES];
    let room = &mut record[HEADER_BYTES..SEGMENT_BYTES - TAG_BYTES];
    let (head, room) = room.split_at_mut(SEALED_HEAD);
    head.copy_from_slice(&queue_pair.owed.to_le_bytes());
    let bytes = fill(room);
    let record = &mut record[..OVERHEAD_BYTES + SEALED_HEAD + bytes];
    records.seal(record).map_err(io::Error::other)?;
    segment.bytes_mut()[..record.len()].copy_from_slice(record);
    queue_pair.owed = 0;
    post_segment(connection, queue_pair, segment, record.len(), batch);
    Ok(bytes)
}

/// Puts a segment into the batch, with `bytes` of the stream and all credits owed.
fn send_segment(
    connection: u64,
    queue_pair: &mut QueuePairConnection,
    mut segment: Segment,
    bytes: usize,
    batch: &mut Vec<WorkRequest>,
) {
    let head = SegmentHead {
        credits: std::mem::take(&mut queue_pair.owed).into(),
        bytes: (bytes as u32).into(),
    };
    segment.bytes_mut()[..SEGMENT_HEAD].copy_from_slice(head.as_bytes());
    post_segment(connection, queue_pair, segment, SEGMENT_HEAD + bytes, batch);
}

/// Puts a segment into the batch; its first `length` bytes are sent.
fn post_segment(
    connection: u64,
    queue_pair: &mut QueuePairConnection,
    segment: Segment,
    length: usize,
    batch: &mut Vec<WorkRequest>,
) {
    let number = queue_pair.next_number();
    let length = length as u32;
    queue_pair.credits -= 1;
    batch.push(WorkRequest {
        id: send_id(connection, number),
        operation: WorkOperation::Send,
        address: segment.address,
        length,
        lkey: segment.lkey,
        signaled: false,
        inline: length <= queue_pair.queue.inline_bytes(),
    });
    queue_pair.posted.push_back(Posted::Segment(segment));
}
