//! What the frames between two connected queue pairs do: announce memory, revoke it, ask about it.

use super::driver::Verbs;
use super::frames::{AccessQuery, AccessReply, Expose, Key};
use super::queue_pair::{AccessQuestion, QueuePairConnection};
use crate::stream::frames::{Layout, DONE, REFUSED};
use crate::stream::outbound::Frame;
use crate::stream::session::Context;
use crate::{CloseReason, Event};
use faro_wire::{kind, WireError};
use std::collections::hash_map::Entry;
use zerocopy::IntoBytes;

impl Verbs {
    /// The peer let go of an exposure.
    pub(super) fn on_revoked(
        &mut self,
        cx: &mut Context<'_>,
        queue_pair: &mut QueuePairConnection,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let key = Key::decode(body)?.key.get();
        match self.revoking.entry(key) {
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
}

impl QueuePairConnection {
    /// The peer exposed memory to us.
    pub(super) fn on_expose(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        Ok(self.access.announced(&Expose::decode(body)?)?)
    }

    /// The peer wants its memory back.
    pub(super) fn on_revoke(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let key = Key::decode(body)?.key.get();
        if self.access.revoke(key) {
            self.send_revoked(cx, key)?;
        }
        Ok(())
    }

    /// The peer asks whether an operation is allowed that our announcements do not cover.
    pub(super) fn on_access_query(
        &mut self,
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
        self.push_urgent(cx, Frame::small(kind::ACCESS_REPLY, id, reply.as_bytes()))
    }

    /// The answer to our ACCESS_QUERY.
    pub(super) fn on_access_reply(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let verdict = AccessReply::decode(body)?.verdict.get();
        match self.question {
            AccessQuestion::Asked { sequence, again } if sequence == id => {
                self.question = AccessQuestion::Answered {
                    sequence,
                    again,
                    verdict,
                };
                cx.touch();
                Ok(())
            }
            AccessQuestion::None
            | AccessQuestion::Asked { .. }
            | AccessQuestion::Answered { .. } => Err(WireError::BadValue {
                what: "id of ACCESS_REPLY",
                got: id,
            }
            .into()),
        }
    }

    /// Sends REVOKED: no operation of ours is on its way to that memory.
    pub(super) fn send_revoked(
        &mut self,
        cx: &mut Context<'_>,
        key: u64,
    ) -> Result<(), CloseReason> {
        let body = Key { key: key.into() };
        self.push_urgent(cx, Frame::small(kind::REVOKED, 0, body.as_bytes()))
    }

    /// Queues a frame that the peer waits for.
    fn push_urgent(&mut self, cx: &mut Context<'_>, frame: Frame) -> Result<(), CloseReason> {
        let limit = 4 * cx.shared.bounds.exposures;
        if self.urgent.len() >= limit {
            return Err(CloseReason::Bound {
                what: "answers that the peer does not receive",
                limit: limit as u64,
            });
        }
        self.urgent.push(frame);
        cx.touch();
        Ok(())
    }
}
