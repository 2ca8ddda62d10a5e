//! Sending: frames into segments, operations into work requests, many in one call.
//!
//! A queue pair sends from two queues. The session's is a FIFO of messages and operations, because
//! a message promises that the writes before it have landed. Frames that the peer waits for
//! (announcements, answers) go before it, at frame boundaries. Without that, an operation that
//! waits for an answer could hold up the answer that the other side waits for.

use super::device::WorkRequest;
use super::driver::{device_is_lost, Verbs};
use super::post_operation::{post_work, TransmitStep};
use super::queue_pair::QueuePairConnection;
use super::ring_share::RESERVE;
use super::segment::Segment;
use super::send_segment::{fill_sealed, fill_segment, send_record, send_segment};
use crate::frame::records::Records;
use crate::session::context::Context;
use std::io;

/// Work requests handed over in one call.
const BATCH: usize = 32;

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
