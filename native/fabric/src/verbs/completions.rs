//! Handles the device's completions.

use super::device::{CompletionKind, CompletionStatus, WorkCompletion};
use super::driver::Verbs;
use super::frames::{open_sealed_segment, open_segment, Immediate};
use super::protocol::send_revoked;
use super::queue_pair::{PendingWork, QueuePairConnection, MAX_CREDITS};
use super::work_id::{completed_by, WorkId};
use crate::session::connection::{Common, FabricConnection};
use crate::session::context::Context;
use crate::session::dispatch::Receiver;
use crate::session::state::ConnectionPhase;
use crate::{CloseReason, ConnectionId, Event, Outcome};
use faro_wire::WireError;

/// Receive requests posted again in one call.
const REPOST: usize = 8;

/// Handles a completion of this connection; `id` names the work request.
pub(super) fn completed(
    connection: &mut FabricConnection<Verbs>,
    common: &mut Common<Verbs>,
    id: WorkId,
    completion: &WorkCompletion,
) -> Result<(), CloseReason> {
    let Some(queue_pair) = &mut connection.state else {
        return Ok(());
    };
    let cx = &mut Context::new(&mut connection.session, &mut common.shared);
    match &completion.status {
        CompletionStatus::Done => match (id, completion.kind) {
            (WorkId::Send { number }, _) => sent(queue_pair, cx, number)?,
            (WorkId::Receive { segment }, CompletionKind::ReceivedImmediate(bits)) => {
                written(queue_pair, cx, segment, bits, completion.bytes)?;
            }
            (WorkId::Receive { segment }, _) => {
                received(connection, common, segment, completion.bytes)?;
            }
        },
        CompletionStatus::Flushed => {
            return Err(CloseReason::Lost {
                detail: "the queue pair went into error".to_owned(),
            });
        }
        CompletionStatus::Failed { what, vendor, .. } => {
            return Err(CloseReason::Lost {
                detail: format!("{what}, vendor code {vendor:#x}"),
            });
        }
    }
    send_more(connection, common);
    Ok(())
}

/// Sends waiting bytes, because a completion made room.
fn send_more(connection: &mut FabricConnection<Verbs>, common: &mut Common<Verbs>) {
    let has_to_send =
        |queue_pair: &QueuePairConnection| !queue_pair.urgent.is_empty() || queue_pair.owes_much();
    let waits = connection.state.as_deref().is_some_and(has_to_send);
    let mut cx = connection.context(&mut common.shared);
    if cx.session.phase == ConnectionPhase::OpenConnection
        && (waits || !cx.session.outbound.is_empty())
    {
        cx.touch();
    }
}

/// Handles a segment of the peer's stream.
fn received(
    connection: &mut FabricConnection<Verbs>,
    common: &mut Common<Verbs>,
    segment: u32,
    bytes: u32,
) -> Result<(), CloseReason> {
    let Some(queue_pair) = &mut connection.state else {
        return Ok(());
    };
    let Some(received) = queue_pair.received(segment).get(..bytes as usize) else {
        return Err(WireError::BadValue {
            what: "bytes of a segment",
            got: u64::from(bytes),
        }
        .into());
    };
    let length = received.len();
    // Copied, so that the segment can be posted again before the frames are handled.
    let staged = &mut common.staging[..length];
    staged.copy_from_slice(received);
    let from_records = connection.records.is_some();
    let (credits, came, counted) = match &mut connection.records {
        // The credits are valid only if the record opens.
        Some(records) => {
            let (credits, came) = open_sealed_segment(records.open(staged)?)?;
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
    // A segment without bytes has credits only.
    if !came.is_empty() {
        common.shared.counters.bytes_in += counted as u64;
        let cx = Context::new(&mut connection.session, &mut common.shared);
        let mut receiver =
            Receiver::new(cx, &mut common.driver, &mut connection.state, from_records);
        connection.inbound.feed(came, &mut receiver)?;
    }
    connection.writable |= connection.is_open();
    let id = connection.id();
    match &mut connection.state {
        Some(queue_pair) => repost(queue_pair, id),
        None => Ok(()),
    }
}

/// Handles the completion of this side's work requests up to `number`.
fn sent(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    number: u32,
) -> Result<(), CloseReason> {
    let connection = cx.connection;
    let count = completed_by(queue_pair.first, number).min(queue_pair.posted.len());
    for _ in 0..count {
        let Some(posted) = queue_pair.posted.pop_front() else {
            break;
        };
        queue_pair.first = queue_pair.first.wrapping_add(1);
        match posted {
            PendingWork::Segment(segment) => queue_pair.give_send(segment),
            PendingWork::Write {
                token, key, bytes, ..
            } => {
                cx.shared.counters.bytes_out += bytes as u64;
                cx.retire(bytes);
                cx.event(Event::WriteEnded {
                    connection,
                    token,
                    outcome: Outcome::Done,
                });
                completed_on(queue_pair, cx, key)?;
            }
            PendingWork::Read { sequence, key } => {
                if let Some(read) = cx.session.reads.remove(&sequence) {
                    cx.shared.counters.bytes_in += read.length as u64;
                    cx.read_ended(read, Outcome::Done);
                }
                completed_on(queue_pair, cx, key)?;
            }
        }
    }
    Ok(())
}

/// Handles the completion of an operation on the peer's exposure `key`.
fn completed_on(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    key: u64,
) -> Result<(), CloseReason> {
    if queue_pair.access.completed(key) {
        send_revoked(queue_pair, cx, key)?;
    }
    Ok(())
}

/// Handles a write that the peer posted and that is in memory.
fn written(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    segment: u32,
    bits: u32,
    bytes: u32,
) -> Result<(), CloseReason> {
    let immediate = Immediate::decode(bits);
    queue_pair.spend(segment);
    let Some(key) = queue_pair.exposed.written(immediate.slot, immediate.last) else {
        return Err(WireError::BadValue {
            what: "slot of a write",
            got: u64::from(immediate.slot),
        }
        .into());
    };
    cx.shared.counters.bytes_in += u64::from(bytes);
    cx.write_came(key, immediate.word, Some(bytes as usize));
    repost(queue_pair, cx.connection)
}

/// Posts spent receive requests again if there are enough for one call. Others are posted with the
/// next send or credit update.
fn repost(
    queue_pair: &mut QueuePairConnection,
    connection: ConnectionId,
) -> Result<(), CloseReason> {
    if queue_pair.spent() < REPOST {
        return Ok(());
    }
    queue_pair
        .post_receives(connection.0)
        .map_err(|error| CloseReason::Lost {
            detail: format!("cannot post receive requests: {error}"),
        })
}
