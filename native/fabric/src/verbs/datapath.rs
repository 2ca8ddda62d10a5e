//! Operations and exposures of an open connection, and its close state.

use super::control::{introduce, make_queue_pair, on_qp_info};
use super::driver::{device_is_lost, CloseState, PendingRevocation, QueuePairLink, Verbs};
use super::exposed_buffers::RevokeNeeds;
use super::frames::{Expose, Key, SEGMENT_BYTES};
use super::kinds::VerbsKind;
use super::protocol;
use super::queue_pair::PendingWork;
use crate::frame::inbound::Sink;
use crate::frame::kinds::TransportKind as _;
use crate::frame::outgoing::{DeviceOperation, Frame, SendCompletion};
use crate::session::context::Context;
use crate::session::payload;
use crate::session::state::{ConnectionPhase, FabricShared};
use crate::session::transport::{Datapath, ExposeError, HandshakeStep, Holder, Transport};
use crate::{
    CloseReason, ConnectionId, Exposure, FabricError, FabricKind, Outcome, RemoteRange,
    RevokeStatus, Write, WriteSources,
};
use faro_pool::Lease;
use faro_secure::Protection;
use faro_wire::{kind, WireError};
use mio::net::TcpStream;
use std::time::Instant;
use zerocopy::IntoBytes;

impl Transport for Verbs {
    const KIND: FabricKind = FabricKind::Verbs;
    type Socket = TcpStream;
    type State = QueuePairLink;

    fn connection_bytes(&self) -> u64 {
        let segments = self.context.as_ref().map_or(0, |open| open.share.used());
        u64::from(segments) * SEGMENT_BYTES as u64
    }

    fn wants_fewer_connections(&self) -> bool {
        let context = self.context.as_ref();
        context.is_some_and(|open| open.share.is_crowded())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let tally = &self.tally;
        let (registrations, nanoseconds) = self
            .context
            .as_ref()
            .map_or((0, 0), |context| context.registrations.tally());
        vec![
            ("posts", tally.posts),
            ("work_requests", tally.work_requests),
            ("completions", tally.completions),
            ("wakeups", tally.wakeups),
            ("asked", tally.asked),
            ("credit_updates", tally.credit_updates),
            ("regions", registrations),
            ("registration_ns", nanoseconds),
            ("revoking", self.revoking.len() as u64),
        ]
    }

    /// Makes the connector's queue pair, before the acceptor's.
    fn on_authenticated(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut QueuePairLink,
    ) -> Result<HandshakeStep, CloseReason> {
        if cx.session.expected.is_some() {
            let made = make_queue_pair(self, cx)?;
            introduce(cx, &made);
            *link = Some(made);
        }
        Ok(HandshakeStep::Pairing)
    }
}

impl Datapath for Verbs {
    type Kind = VerbsKind;
    type CloseState = CloseState;
    const STAGING_BYTES: usize = SEGMENT_BYTES;

    fn on_head(
        &mut self,
        cx: &mut Context<'_>,
        kind: VerbsKind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        match (self.protection, kind.payload()) {
            (Protection::Sealed, Some(kind)) => payload::on_head(cx, kind, id, head, length),
            (Protection::Sealed, None) | (Protection::Clear, _) => {
                Err(WireError::UnknownKind { got: kind.byte() }.into())
            }
        }
    }

    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut QueuePairLink,
        kind: VerbsKind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let introduces = matches!(kind, VerbsKind::QpInfo | VerbsKind::QpReady);
        if self.protection == Protection::Sealed && !introduces {
            return match kind.payload() {
                Some(kind) => payload::on_frame(cx, kind, id, body),
                None => Err(WireError::UnknownKind { got: kind.byte() }.into()),
            };
        }
        match (kind, link) {
            (VerbsKind::QpInfo, link) => on_qp_info(self, cx, link, body),
            (VerbsKind::QpReady, Some(_)) if cx.session.expected.is_none() => {
                cx.opened();
                Ok(())
            }
            (VerbsKind::Expose, Some(queue_pair)) => protocol::on_expose(queue_pair, body),
            (VerbsKind::Revoke, Some(queue_pair)) => protocol::on_revoke(queue_pair, cx, body),
            (VerbsKind::Revoked, Some(queue_pair)) => {
                protocol::on_revoked(self, cx, queue_pair, body)
            }
            (VerbsKind::AccessQuery, Some(queue_pair)) => {
                protocol::on_access_query(queue_pair, cx, id, body)
            }
            (VerbsKind::AccessReply, Some(queue_pair)) => {
                protocol::on_access_reply(queue_pair, cx, id, body)
            }
            // Before the queue pair is made, from the side that does not send it, or of sealed
            // connections.
            (
                VerbsKind::QpReady
                | VerbsKind::Write
                | VerbsKind::Read
                | VerbsKind::ReadReply
                | VerbsKind::WriteAck,
                _,
            )
            | (
                VerbsKind::Expose
                | VerbsKind::Revoke
                | VerbsKind::Revoked
                | VerbsKind::AccessQuery
                | VerbsKind::AccessReply,
                None,
            ) => Err(WireError::UnknownKind { got: kind.byte() }.into()),
        }
    }

    fn write_sources(&self, link: &QueuePairLink) -> WriteSources {
        let pieces = link.as_ref().map_or(1, |made| made.queue.pieces());
        WriteSources {
            parts: pieces,
            pipes: false,
            by_device: true,
        }
    }

    fn post_write(&mut self, cx: &mut Context<'_>, _link: &mut QueuePairLink, write: Write) {
        if self.protection == Protection::Sealed {
            return payload::post_write(cx, write);
        }
        let sequence = cx.next_sequence();
        let ends = SendCompletion::Write {
            token: write.token,
            sequence,
            bytes: write.source.length(),
            outcome: Outcome::Done,
        };
        let work = DeviceOperation::Write(sequence, write);
        cx.push(Frame::work(work, ends));
    }

    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        _link: &mut QueuePairLink,
        sequence: u64,
        source: RemoteRange,
    ) {
        if self.protection == Protection::Sealed {
            return payload::post_read(cx, sequence, source);
        }
        cx.push(Frame::work(
            DeviceOperation::Read(sequence, source),
            SendCompletion::Nothing,
        ));
    }

    fn register(&mut self, lease: &Lease) -> Result<(), FabricError> {
        if self.protection == Protection::Sealed {
            return Ok(());
        }
        let context = self.context().map_err(|reason| FabricError::Unavailable {
            fabric: "verbs",
            reason,
            absent: false,
        })?;
        context.keys(lease)?;
        Ok(())
    }

    fn expose(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut QueuePairLink,
        key: u64,
        exposure: &Exposure,
    ) -> Result<u64, ExposeError> {
        // The table of exposures is asked for each payload that comes, as on TCP.
        if self.protection == Protection::Sealed {
            return Ok(0);
        }
        let broken = |detail| ExposeError::Broken(CloseReason::Lost { detail });
        let (Some(queue_pair), Some(context)) = (link, &mut self.context) else {
            return Err(broken(device_is_lost()));
        };
        let lease = exposure.lease();
        let keys = context
            .keys(lease)
            .map_err(|error| broken(error.to_string()))?;
        let slot = queue_pair.exposed.take(key).ok_or(ExposeError::Full)?;
        let body = Expose {
            key: key.into(),
            address: keys.address.into(),
            rkey: keys.rkey.into(),
            length: (lease.capacity() as u32).into(),
            slot: slot.into(),
            writable: u8::from(matches!(exposure, Exposure::Writable(_))),
            reserved: 0,
            reserved2: 0.into(),
        };
        queue_pair
            .urgent
            .push(Frame::small(kind::EXPOSE, 0, body.as_bytes()));
        cx.touch();
        Ok(0)
    }

    fn revoke(
        &mut self,
        holder: Holder<'_, QueuePairLink>,
        connection: ConnectionId,
        key: u64,
        exposure: Exposure,
    ) -> RevokeStatus {
        if self.protection == Protection::Sealed {
            return RevokeStatus::Now(exposure);
        }
        let needs = match holder {
            Holder::OpenConnection(mut cx, Some(queue_pair)) => {
                let needs = queue_pair.exposed.revoke(key);
                if needs == RevokeNeeds::Answer {
                    let body = Key { key: key.into() };
                    queue_pair
                        .urgent
                        .push(Frame::small(kind::REVOKE, 0, body.as_bytes()));
                    cx.touch();
                }
                needs
            }
            // Until the queue pair is destroyed, which ends the revocation.
            Holder::Closing => RevokeNeeds::Answer,
            Holder::OpenConnection(_, None) | Holder::Closed => RevokeNeeds::Nothing,
        };
        match needs {
            RevokeNeeds::Nothing => RevokeStatus::Now(exposure),
            RevokeNeeds::Answer => {
                let revoking = PendingRevocation {
                    connection,
                    since: Instant::now(),
                    exposure,
                };
                self.revoking.insert(key, revoking);
                RevokeStatus::Later
            }
        }
    }

    /// The device must not write a read's target after the target was returned to the caller. So a
    /// queue pair with posted reads is destroyed at once, even if that loses GOODBYE. Any other is
    /// kept until GOODBYE is through, and so is memory that its peer may still write.
    fn on_closed(
        &mut self,
        cx: &mut Context<'_>,
        link: QueuePairLink,
        goodbye_sent: bool,
    ) -> Option<CloseState> {
        let Some(queue_pair) = link else {
            self.stop_pairing(cx.connection);
            return None;
        };
        Self::report_posted(cx, &queue_pair);
        let reads = queue_pair
            .posted
            .iter()
            .any(|posted| matches!(posted, PendingWork::Read { .. }));
        if goodbye_sent && !reads && cx.session.phase == ConnectionPhase::OpenConnection {
            return Some(CloseState { queue_pair });
        }
        self.destroy(queue_pair);
        self.report_revoked(cx.shared, cx.connection);
        None
    }

    fn on_peer_closed(
        &mut self,
        shared: &mut FabricShared,
        connection: ConnectionId,
        close_state: CloseState,
    ) {
        self.destroy(close_state.queue_pair);
        self.report_revoked(shared, connection);
    }
}
