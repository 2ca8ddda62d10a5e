//! The frames between two connected queue pairs announce memory, revoke it, and ask about it.

use super::driver::Verbs;
use super::frames::{AccessQuery, AccessReply, Expose, Key};
use super::queue_pair::{AccessQuestion, QueuePairConnection};
use crate::frame::bodies::{Layout, DONE, REFUSED};
use crate::frame::outgoing::Frame;
use crate::session::context::Context;
use crate::{CloseReason, Event};
use faro_wire::{kind, WireError};
use std::collections::hash_map::Entry;
use zerocopy::IntoBytes;

/// Handles the peer's confirmation that it no longer uses an exposure.
pub(super) fn on_revoked(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
    queue_pair: &mut QueuePairConnection,
    body: &[u8],
) -> Result<(), CloseReason> {
    let key = Key::decode(body)?.key.get();
    match driver.revoking.entry(key) {
        Entry::Occupied(entry)
            if entry.get().connection == cx.connection && queue_pair.exposed.revoked(key) =>
        {
            let exposure = entry.remove().exposure;
            cx.event(Event::Revoked { key, exposure });
            Ok(())
        }
        Entry::Occupied(_) | Entry::Vacant(_) => Err(WireError::BadValue {
            what: "key of REVOKED",
            got: key,
        }
        .into()),
    }
}

/// Handles memory that the peer has exposed.
pub(super) fn on_expose(
    queue_pair: &mut QueuePairConnection,
    body: &[u8],
) -> Result<(), CloseReason> {
    Ok(queue_pair.access.announced(&Expose::decode(body)?)?)
}

/// Handles the peer's revocation of its memory.
pub(super) fn on_revoke(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    body: &[u8],
) -> Result<(), CloseReason> {
    let key = Key::decode(body)?.key.get();
    if queue_pair.access.revoke(key) {
        send_revoked(queue_pair, cx, key)?;
    }
    Ok(())
}

/// Answers the peer's question whether an operation is allowed that this side's announcements do
/// not cover.
pub(super) fn on_access_query(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    id: u64,
    body: &[u8],
) -> Result<(), CloseReason> {
    let query = AccessQuery::decode(body)?;
    let (key, offset) = (query.key.get(), query.offset.get());
    let (length, writes) = (query.length.get() as usize, query.writes.get() != 0);
    let connection = cx.connection;
    let exposures = &cx.shared.exposures;
    let allowed = if writes {
        exposures.may_write(connection, key, offset, length)
    } else {
        exposures
            .readable(connection, key, offset, length)
            .is_some()
    };
    if !allowed && writes {
        cx.write_came(key, None, None);
    } else if !allowed {
        cx.shared.counters.reads_refused += 1;
    }
    let reply = AccessReply {
        verdict: if allowed { DONE } else { REFUSED }.into(),
        reserved: 0.into(),
    };
    push_urgent(
        queue_pair,
        cx,
        Frame::small(kind::ACCESS_REPLY, id, reply.as_bytes()),
    )
}

/// Handles the answer to this side's ACCESS_QUERY.
pub(super) fn on_access_reply(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    id: u64,
    body: &[u8],
) -> Result<(), CloseReason> {
    let verdict = AccessReply::decode(body)?.verdict.get();
    match queue_pair.question {
        AccessQuestion::Asked { sequence, again } if sequence == id => {
            queue_pair.question = AccessQuestion::Answered {
                sequence,
                again,
                verdict,
            };
            cx.touch();
            Ok(())
        }
        AccessQuestion::None | AccessQuestion::Asked { .. } | AccessQuestion::Answered { .. } => {
            Err(WireError::BadValue {
                what: "id of ACCESS_REPLY",
                got: id,
            }
            .into())
        }
    }
}

/// Sends REVOKED: no operation of this side is on its way to that memory.
pub(super) fn send_revoked(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    key: u64,
) -> Result<(), CloseReason> {
    let body = Key { key: key.into() };
    push_urgent(
        queue_pair,
        cx,
        Frame::small(kind::REVOKED, 0, body.as_bytes()),
    )
}

/// Queues a frame that the peer waits for.
fn push_urgent(
    queue_pair: &mut QueuePairConnection,
    cx: &mut Context<'_>,
    frame: Frame,
) -> Result<(), CloseReason> {
    let limit = 4 * cx.shared.bounds.exposures;
    if queue_pair.urgent.len() >= limit {
        return Err(CloseReason::Bound {
            what: "answers that the peer does not receive",
            limit: limit as u64,
        });
    }
    queue_pair.urgent.push(frame);
    cx.touch();
    Ok(())
}
