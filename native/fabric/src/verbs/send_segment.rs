//! Fills segments with frames and credits, in clear or as sealed records, and turns them into SENDs.

use super::device::{MemoryPieces, WorkOperation, WorkRequest};
use super::frames::{SegmentHead, SEALED_HEAD, SEGMENT_BYTES, SEGMENT_HEAD, SEGMENT_ROOM};
use super::queue_pair::{PendingWork, QueuePairConnection};
use super::segment::Segment;
use super::work_id::send_id;
use crate::frame::records::Records;
use crate::session::context::Context;
use faro_secure::{HEADER_BYTES, OVERHEAD_BYTES, TAG_BYTES};
use std::io;
use zerocopy::IntoBytes;

/// Fills a segment with the next bytes and puts it into the batch.
pub(super) fn fill_segment(
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
pub(super) fn fill_sealed(
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

/// Puts one record into the batch: all credits to return, and the bytes that `fill` writes. It is sealed
/// before it is copied to memory that the device can read. Returns the bytes that `fill` wrote.
pub(super) fn send_record(
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
    head.copy_from_slice(&queue_pair.credits_to_return.to_le_bytes());
    let bytes = fill(room);
    let record = &mut record[..OVERHEAD_BYTES + SEALED_HEAD + bytes];
    records.seal(record).map_err(io::Error::other)?;
    segment.bytes_mut()[..record.len()].copy_from_slice(record);
    queue_pair.credits_to_return = 0;
    post_segment(connection, queue_pair, segment, record.len(), batch);
    Ok(bytes)
}

/// Puts a segment into the batch, with `bytes` of the stream and all credits to return.
pub(super) fn send_segment(
    connection: u64,
    queue_pair: &mut QueuePairConnection,
    mut segment: Segment,
    bytes: usize,
    batch: &mut Vec<WorkRequest>,
) {
    let head = SegmentHead {
        credits: std::mem::take(&mut queue_pair.credits_to_return).into(),
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
    debug_assert!(
        queue_pair.credits > 0,
        "each SEND needs a posted receive request"
    );
    debug_assert!(queue_pair.room() > 0, "the send queue is full");
    debug_assert!(length as usize <= SEGMENT_BYTES, "a segment is one SEND");
    queue_pair.credits -= 1;
    batch.push(WorkRequest {
        id: send_id(connection, number),
        operation: WorkOperation::Send,
        memory: MemoryPieces::one(segment.address, length, segment.lkey),
        signaled: false,
        inline: length <= queue_pair.queue.inline_bytes(),
    });
    queue_pair.posted.push_back(PendingWork::Segment(segment));
}
