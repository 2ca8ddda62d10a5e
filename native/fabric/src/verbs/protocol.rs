//! What the frames between two queue pairs mean: pairing, announcements, revocation, questions.

use super::carrier::Verbs;
use super::device;
use super::frames::{Answer, Ask, Expose, Key, PairBody};
use super::pair::{Pair, SEGMENT_BYTES};
use crate::stream::exposure::random;
use crate::stream::frames::{Layout, DONE, REFUSED};
use crate::stream::outbound::Frame;
use crate::stream::session::Context;
use crate::{CloseReason, Event};
use faro_wire::{kind, WireError};
use std::sync::Arc;
use zerocopy::IntoBytes;

/// A packet sequence number has that many bits.
const PSN_MASK: u32 = 0x00ff_ffff;

impl Verbs {
    pub(super) fn make_pair(
        &mut self,
        cx: &mut Context<'_, Self>,
    ) -> Result<Box<Pair>, CloseReason> {
        let unable = |detail| CloseReason::Unable { detail };
        let psn = random()
            .map(u32::from_le_bytes)
            .map_err(|error| unable(error.to_string()))?;
        let pool = Arc::clone(&self.pool);
        let rig = self.rig().map_err(unable)?;
        let pair = Pair::new(rig, &pool, cx.connection.0, psn & PSN_MASK).map_err(unable)?;
        let address = rig.device.address();
        let body = PairBody {
            queue_pair: pair.queue.number().into(),
            psn: pair.psn.into(),
            gid: address.gid,
            lid: address.lid.into(),
            mtu: address.mtu,
            reads: pair.queue.depth().reads,
            receives: pair.queue.depth().receive.into(),
            segment_bytes: (SEGMENT_BYTES as u32).into(),
            reserved: 0.into(),
        };
        cx.push(Frame::small(kind::QP_INFO, 0, body.as_bytes()));
        Ok(Box::new(pair))
    }

    /// The peer's queue pair became known.
    pub(super) fn on_pair(
        &mut self,
        cx: &mut Context<'_, Self>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let body = PairBody::decode(body)?;
        let wrong = |what, got: u32| {
            let got = u64::from(got);
            Err(WireError::BadValue { what, got }.into())
        };
        let segment_bytes = body.segment_bytes.get();
        if segment_bytes as usize != SEGMENT_BYTES {
            return wrong("QP_INFO's bytes of a segment", segment_bytes);
        }
        let receives = body.receives.get();
        if receives == 0 || receives > 1 << 16 {
            return wrong("QP_INFO's receive requests", receives);
        }
        let connector = cx.session.expected.is_some();
        let mut pair = match cx.session.carrier.pair.take() {
            Some(pair) if connector => pair,
            None if !connector => self.make_pair(cx)?,
            _ => {
                return wrong(
                    "second QP_INFO of a connection, queue pair",
                    body.queue_pair.get(),
                )
            }
        };
        let remote = device::Remote {
            gid: body.gid,
            lid: body.lid.get(),
            qp: body.queue_pair.get(),
            psn: body.psn.get() & PSN_MASK,
            mtu: body.mtu,
            reads: body.reads,
        };
        let psn = pair.psn;
        pair.queue
            .connect(psn, &remote, &self.wishes)
            .map_err(|error| CloseReason::Lost {
                detail: error.to_string(),
            })?;
        pair.credits = receives;
        cx.session.carrier.pair = Some(pair);
        if connector {
            // The acceptor is ready to receive: it was before it answered.
            cx.opened();
            cx.push(Frame::small(kind::QP_READY, 0, &[]));
        }
        Ok(())
    }

    pub(super) fn on_expose(
        &mut self,
        cx: &mut Context<'_, Self>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let expose = Expose::decode(body)?;
        let pair = open_pair(cx)?;
        Ok(pair.grants.insert(&expose)?)
    }

    pub(super) fn on_revoke(
        &mut self,
        cx: &mut Context<'_, Self>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let key = Key::decode(body)?.key.get();
        if open_pair(cx)?.grants.revoke(key) {
            say_revoked(cx, key)?;
        }
        Ok(())
    }

    pub(super) fn on_revoked(
        &mut self,
        cx: &mut Context<'_, Self>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let key = Key::decode(body)?.key.get();
        match self.revoking.remove(&key) {
            Some(revoking) if revoking.connection == cx.connection => {
                open_pair(cx)?.slots.give_back(key);
                let exposure = revoking.exposure;
                cx.event(Event::Revoked { key, exposure });
                Ok(())
            }
            other => {
                self.revoking.extend(other.map(|other| (key, other)));
                Err(WireError::BadValue {
                    what: "key of REVOKED",
                    got: key,
                }
                .into())
            }
        }
    }

    pub(super) fn on_ask(
        &mut self,
        cx: &mut Context<'_, Self>,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let ask = Ask::decode(body)?;
        let (key, offset) = (ask.key.get(), ask.offset.get());
        let (length, writes) = (ask.length.get() as usize, ask.writes.get() != 0);
        let connection = cx.connection;
        let exposures = &mut cx.shared.exposures;
        let may = if writes {
            exposures
                .writable(connection, key, offset, length)
                .is_some()
        } else {
            exposures
                .readable(connection, key, offset, length)
                .is_some()
        };
        if !may && writes {
            cx.write_came(key, None, None);
        } else if !may {
            cx.shared.counters.reads_refused += 1;
        }
        let answer = Answer {
            verdict: if may { DONE } else { REFUSED }.into(),
            reserved: 0.into(),
        };
        urgent(cx, Frame::small(kind::ACCESS_REPLY, id, answer.as_bytes()))
    }

    pub(super) fn on_answer(
        &mut self,
        cx: &mut Context<'_, Self>,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let verdict = Answer::decode(body)?.verdict.get();
        match &mut open_pair(cx)?.asked {
            Some((asked, answer @ None)) if *asked == id => *answer = Some(verdict),
            _ => {
                return Err(WireError::BadValue {
                    what: "id of ACCESS_REPLY",
                    got: id,
                }
                .into())
            }
        }
        cx.touch();
        Ok(())
    }
}

/// The pair of a connection that has one.
fn open_pair<'c>(cx: &'c mut Context<'_, Verbs>) -> Result<&'c mut Pair, CloseReason> {
    match &mut cx.session.carrier.pair {
        Some(pair) => Ok(pair),
        None => Err(CloseReason::Lost {
            detail: "no queue pair".to_owned(),
        }),
    }
}

/// Queues a frame that others wait for.
fn urgent(cx: &mut Context<'_, Verbs>, frame: Frame) -> Result<(), CloseReason> {
    let limit = 4 * cx.shared.bounds.exposures;
    let pair = open_pair(cx)?;
    if pair.urgent.len() >= limit {
        return Err(CloseReason::Bound {
            what: "answers that a peer does not fetch",
            limit: limit as u64,
        });
    }
    pair.urgent.push(frame);
    cx.touch();
    Ok(())
}

/// Tells the peer that nothing is on its way there.
pub(super) fn say_revoked(cx: &mut Context<'_, Verbs>, key: u64) -> Result<(), CloseReason> {
    let body = Key { key: key.into() };
    urgent(cx, Frame::small(kind::REVOKED, 0, body.as_bytes()))
}
