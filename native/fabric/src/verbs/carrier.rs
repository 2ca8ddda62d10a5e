//! What verbs add to the stream: pairing, announcements, revocation.

use super::frames::{Answer, Ask, Expose, Key, PairBody};
use super::pair::{Pair, Posted, SEGMENT_BYTES};
use super::rig::Rig;
use super::{device, setup};
use crate::stream::exposure::ByKey;
use crate::stream::hub::{Hub, CARRIER};
use crate::stream::inbound::Shape;
use crate::stream::outbound::{Ends, Frame, Work};
use crate::stream::session::{Carrier, Context, Phase, Shared};
use crate::{
    CloseReason, ConnectionId, Event, Exposure, FabricError, FabricKind, Outcome, Rejected,
    RemoteRange, Revoked, Write,
};
use faro_pool::{Lease, Pool};
use faro_wire::{kind, FrameHeader, WireError};
use mio::net::{TcpListener, TcpStream};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// How long a device that went away is left alone before it is looked for again.
const REOPEN_REST: Duration = Duration::from_secs(5);

/// An exposure that the peer was asked to let go of.
pub(super) struct Revoking {
    pub(super) connection: ConnectionId,
    pub(super) since: Instant,
    pub(super) exposure: Exposure,
}

/// What the RDMA fabric adds to the stream.
pub(crate) struct Verbs {
    pub(super) pool: Arc<Pool>,
    pub(super) wishes: device::VerbsOptions,
    /// The address whose port is the best.
    near: IpAddr,
    /// `None`: the device went away.
    pub(super) rig: Option<Rig>,
    /// When it did, or was looked for last.
    lost_at: Instant,
    registry: Option<mio::Registry>,
    pub(super) revoking: ByKey<Revoking>,
    /// Set by the device's descriptors: completions, events.
    pub(super) signalled: [bool; 2],
    pub(super) tally: Tally,
}

/// What the datapath costs, for the counters.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) posts: u64,
    pub(super) work_requests: u64,
    pub(super) completions: u64,
    pub(super) wakeups: u64,
    pub(super) asked: u64,
    pub(super) credit_updates: u64,
}

/// One connection's.
#[derive(Default)]
pub(crate) struct Peer {
    /// `None` before pairing, and for a moment while it is worked on.
    pub(super) pair: Option<Box<Pair>>,
}

/// A queue pair whose connection is over, while its last words may be on their way.
pub(crate) struct Remains {
    pair: Box<Pair>,
}

impl Verbs {
    pub(super) fn new(
        rig: Rig,
        wishes: device::VerbsOptions,
        near: IpAddr,
        pool: Arc<Pool>,
    ) -> Self {
        Self {
            pool,
            wishes,
            near,
            rig: Some(rig),
            lost_at: Instant::now(),
            registry: None,
            revoking: ByKey::default(),
            signalled: [false; 2],
            tally: Tally::default(),
        }
    }

    /// The device, looked for again if it went away a while ago.
    pub(super) fn rig(&mut self) -> Result<&mut Rig, String> {
        if self.rig.is_none() {
            if self.lost_at.elapsed() < REOPEN_REST {
                return Err("the RDMA device is gone".to_owned());
            }
            self.lost_at = Instant::now();
            let rig = Rig::open(&self.wishes, self.near, &self.pool)
                .map_err(|error| format!("the RDMA device is gone: {error}"))?;
            if let Some(registry) = &self.registry {
                rig.watch(registry)
                    .map_err(|error| format!("cannot watch the RDMA device: {error}"))?;
            }
            log::info!("verbs fabric is back: {}", rig.device.describe());
            self.rig = Some(rig);
        }
        self.rig
            .as_mut()
            .ok_or_else(|| "the RDMA device is gone".to_owned())
    }

    /// Lets the device go; all connections were closed.
    pub(super) fn lose_rig(&mut self) {
        self.lost_at = Instant::now();
        if let (Some(rig), Some(registry)) = (self.rig.take(), &self.registry) {
            rig.unwatch(registry);
        }
    }

    /// Ends what was posted; the sources stay with the pair.
    fn report_posted(cx: &mut Context<'_, Self>, pair: &Pair) {
        let connection = cx.connection;
        for posted in &pair.posted {
            if let Posted::Write { token, bytes, .. } = posted {
                cx.retire(*bytes);
                cx.event(Event::WriteEnded {
                    connection,
                    token: *token,
                    outcome: Outcome::Flushed,
                });
            }
        }
    }

    /// No device can reach what this peer was asked to let go of.
    fn report_revoked(&mut self, shared: &mut Shared, connection: ConnectionId) {
        let keys: Vec<u64> = self
            .revoking
            .iter()
            .filter(|(_, revoking)| revoking.connection == connection)
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            if let Some(Revoking { exposure, .. }) = self.revoking.remove(&key) {
                shared.events.push(Event::Revoked { key, exposure });
            }
        }
    }

    fn destroy(&mut self, pair: Box<Pair>) {
        let at = pair.completions;
        drop(pair);
        if let Some(rig) = &mut self.rig {
            rig.give_back(at);
        }
    }
}

impl Carrier for Verbs {
    const KIND: FabricKind = FabricKind::Verbs;
    type Socket = TcpStream;
    type Listener = TcpListener;
    type Peer = Peer;
    type Remains = Remains;
    const STAGING: usize = SEGMENT_BYTES;
    const SHORT_MEANS_DRAINED: bool = true;
    const OWN_DATAPATH: bool = true;

    fn shape(kind: u8) -> Option<(Shape, u32)> {
        let bytes = match kind {
            kind::EXPOSE => size_of::<Expose>(),
            kind::REVOKE | kind::REVOKED => size_of::<Key>(),
            kind::ACCESS_QUERY => size_of::<Ask>(),
            kind::ACCESS_REPLY => size_of::<Answer>(),
            _ => return None,
        };
        Some((Shape::Whole, bytes as u32))
    }

    fn pairing(kind: u8) -> Option<u32> {
        match kind {
            kind::QP_INFO => Some(size_of::<PairBody>() as u32),
            kind::QP_READY => Some(0),
            _ => None,
        }
    }

    fn said_hello(&mut self, cx: &mut Context<'_, Self>) -> Result<(), CloseReason> {
        cx.session.carrier.pair = Some(self.make_pair(cx)?);
        Ok(())
    }

    fn greeted(&mut self, _cx: &mut Context<'_, Self>) -> bool {
        false
    }

    fn on_frame(
        &mut self,
        cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let id = header.id.get();
        match header.kind {
            kind::QP_INFO => self.on_pair(cx, body),
            kind::QP_READY
                if cx.session.expected.is_none() && cx.session.carrier.pair.is_some() =>
            {
                cx.opened();
                Ok(())
            }
            kind::EXPOSE => self.on_expose(cx, body),
            kind::REVOKE => self.on_revoke(cx, body),
            kind::REVOKED => self.on_revoked(cx, body),
            kind::ACCESS_QUERY => self.on_ask(cx, id, body),
            kind::ACCESS_REPLY => self.on_answer(cx, id, body),
            got => Err(WireError::UnknownKind { got }.into()),
        }
    }

    /// The device must not write a read's target that was handed back, so a pair with reads on
    /// their way is destroyed at once, last words or not; any other lingers until they are
    /// through, and memory that its peer may still write stays revoking until then.
    fn on_closed(&mut self, cx: &mut Context<'_, Self>, told: bool) -> Option<Remains> {
        let pair = cx.session.carrier.pair.take()?;
        Self::report_posted(cx, &pair);
        let reads = pair
            .posted
            .iter()
            .any(|posted| matches!(posted, Posted::Read { .. }));
        if told && !reads && cx.session.phase == Phase::Open {
            return Some(Remains { pair });
        }
        self.destroy(pair);
        self.report_revoked(cx.shared, cx.connection);
        None
    }

    fn on_gone(&mut self, shared: &mut Shared, connection: ConnectionId, remains: Remains) {
        self.destroy(remains.pair);
        self.report_revoked(shared, connection);
    }

    fn watch(&mut self, registry: &mio::Registry) -> io::Result<()> {
        self.registry = Some(registry.try_clone()?);
        match &self.rig {
            Some(rig) => rig.watch(registry),
            None => Ok(()),
        }
    }

    fn signalled(&mut self, token: mio::Token) {
        for (at, known) in CARRIER.iter().enumerate() {
            self.signalled[at] |= *known == token;
        }
    }

    fn before_wait(hub: &mut Hub<Self>) -> Result<bool, FabricError> {
        hub.arm_device()
    }

    fn turn(hub: &mut Hub<Self>) -> Result<(), FabricError> {
        hub.device_turn();
        Ok(())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let tally = &self.tally;
        let (registrations, nanoseconds) = self
            .rig
            .as_ref()
            .map_or((0, 0), |rig| rig.registrations.tally());
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

    fn transmit(&mut self, cx: &mut Context<'_, Self>) -> io::Result<bool> {
        self.transmit_all(cx)
    }

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        let address = setup::parse(location)?;
        Ok(match self.rig() {
            Ok(_) => setup::connect(address),
            Err(detail) => Err(io::Error::other(detail)),
        })
    }

    fn post_write(&mut self, cx: &mut Context<'_, Self>, write: Write) {
        let sequence = cx.next_sequence();
        let ends = Ends::Write {
            token: write.token,
            sequence,
            bytes: write.length,
            outcome: Outcome::Done,
        };
        let work = Work::Write(sequence, write);
        cx.push(Frame::work(work, ends));
    }

    fn post_read(&mut self, cx: &mut Context<'_, Self>, sequence: u64, source: RemoteRange) {
        cx.push(Frame::work(Work::Read(sequence, source), Ends::Nothing));
    }

    fn register(hub: &mut Hub<Self>, lease: &Lease) -> Result<(), FabricError> {
        let rig = hub
            .carrier
            .rig()
            .map_err(|reason| FabricError::Unavailable {
                fabric: "verbs",
                reason,
                absent: false,
            })?;
        rig.keys(lease)?;
        Ok(())
    }

    fn expose(
        hub: &mut Hub<Self>,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        let lease: &Lease = exposure.lease();
        let writable = matches!(exposure, Exposure::Writable(_));
        let keys = match hub.open(connection) {
            None => return Err(Rejected::NotConnected(exposure, connection)),
            Some((cx, verbs)) => {
                let room = |pair: &Pair| pair.slots.has_room();
                if !cx.session.carrier.pair.as_deref().is_some_and(room) {
                    return Err(Rejected::Full(exposure));
                }
                let Some(rig) = &mut verbs.rig else {
                    return Err(Rejected::NotConnected(exposure, connection));
                };
                rig.keys(lease)
            }
        };
        let keys = match keys {
            Ok(keys) => keys,
            Err(error) => {
                let detail = error.to_string();
                hub.close(connection, CloseReason::Lost { detail });
                return Err(Rejected::NotConnected(exposure, connection));
            }
        };
        let range = hub.expose(connection, exposure)?;
        if let Some((mut cx, _)) = hub.open(connection) {
            if let Some(pair) = &mut cx.session.carrier.pair {
                if let Some(slot) = pair.slots.take(range.key) {
                    let body = Expose {
                        key: range.key.into(),
                        address: keys.address.into(),
                        rkey: keys.rkey.into(),
                        length: range.length.into(),
                        slot: slot.into(),
                        writable: u8::from(writable),
                        reserved: 0,
                        reserved2: 0.into(),
                    };
                    pair.urgent
                        .push(Frame::small(kind::EXPOSE, 0, body.as_bytes()));
                    cx.touch();
                }
            }
        }
        Ok(range)
    }

    fn revoke(hub: &mut Hub<Self>, key: u64) -> Revoked {
        let Some(connection) = hub.shared.exposures.owner(key) else {
            return Revoked::Unknown;
        };
        let mut now = !hub.lingering.contains_key(&connection.0);
        if let Some((mut cx, _)) = hub.open(connection) {
            if let Some(pair) = &mut cx.session.carrier.pair {
                now = pair.slots.was_let_go(key);
                if now {
                    pair.slots.give_back(key);
                } else {
                    let body = Key { key: key.into() };
                    pair.urgent
                        .push(Frame::small(kind::REVOKE, 0, body.as_bytes()));
                    cx.touch();
                }
            }
        }
        let Some(exposure) = hub.revoke(key) else {
            return Revoked::Unknown;
        };
        if now {
            return Revoked::Now(exposure);
        }
        let revoking = Revoking {
            connection,
            since: Instant::now(),
            exposure,
        };
        hub.carrier.revoking.insert(key, revoking);
        Revoked::Later
    }
}
