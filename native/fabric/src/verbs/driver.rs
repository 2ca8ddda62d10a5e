//! The verbs driver: the RDMA context, and what its connections keep.

use super::frames::{AccessQuery, AccessReply, Expose, Key, QpInfo, SEGMENT_BYTES};
use super::queue_pair::{Posted, QueuePairConnection};
use super::rdma_context::RdmaContext;
use super::{device, path};
use crate::stream::driver::{Transport, TransportDriver};
use crate::stream::exposure::ByKey;
use crate::stream::inbound::Shape;
use crate::stream::kinds::{frame_kinds, TransportKind};
use crate::stream::payload::PayloadKind;
use crate::stream::session::{Context, Phase, Shared};
use crate::{ConnectionId, Event, Exposure, FabricKind, Outcome};
use faro_pool::Pool;
use faro_secure::Protection;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After the device was lost, how long until we look for it again.
const REOPEN_PAUSE: Duration = Duration::from_secs(5);

/// An exposure that the peer was asked to let go of.
pub(super) struct Revoking {
    pub(super) connection: ConnectionId,
    pub(super) since: Instant,
    pub(super) exposure: Exposure,
}

/// What the RDMA fabric adds to the stream.
pub(crate) struct Verbs {
    pub(super) pool: Arc<Pool>,
    pub(super) protection: Protection,
    pub(super) options: device::VerbsOptions,
    /// Our address; of several devices, the one that has it is taken.
    near: IpAddr,
    /// `None`: the device was lost.
    pub(super) context: Option<RdmaContext>,
    /// When the device was lost, or looked for last.
    lost_at: Instant,
    pub(super) registry: Option<mio::Registry>,
    pub(super) revoking: ByKey<Revoking>,
    /// Which of the device's descriptors are ready: completions, events.
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

/// `None` before the queue pair is made.
pub(crate) type Link = Option<Box<QueuePairConnection>>;

/// The queue pair of a closed connection, while our GOODBYE may be on its way.
pub(crate) struct Remains {
    pub(super) queue_pair: Box<QueuePairConnection>,
}

pub(super) fn device_is_lost() -> String {
    "the RDMA device is lost".to_owned()
}

impl Verbs {
    pub(super) fn new(
        context: RdmaContext,
        options: device::VerbsOptions,
        near: IpAddr,
        pool: Arc<Pool>,
        protection: Protection,
    ) -> Self {
        Self {
            pool,
            protection,
            options,
            near,
            context: Some(context),
            lost_at: Instant::now(),
            registry: None,
            revoking: ByKey::default(),
            signalled: [false; 2],
            tally: Tally::default(),
        }
    }

    /// The open device; opens it again if it was lost a while ago.
    ///
    /// # Errors
    /// In words: the device is lost, and why it cannot be opened.
    pub(super) fn context(&mut self) -> Result<&mut RdmaContext, String> {
        if self.context.is_none() {
            if self.lost_at.elapsed() < REOPEN_PAUSE {
                return Err(device_is_lost());
            }
            self.lost_at = Instant::now();
            let context = RdmaContext::open(&self.options, self.near, &self.pool, self.protection)
                .map_err(|error| format!("{}: {error}", device_is_lost()))?;
            if let Some(registry) = &self.registry {
                context
                    .watch(registry)
                    .map_err(|error| format!("cannot watch the RDMA device: {error}"))?;
            }
            log::info!("verbs fabric is back: {}", context.device.describe());
            self.context = Some(context);
        }
        self.context.as_mut().ok_or_else(device_is_lost)
    }

    /// Closes the device; its connections were closed before.
    pub(super) fn close_context(&mut self) {
        self.lost_at = Instant::now();
        if let (Some(context), Some(registry)) = (self.context.take(), &self.registry) {
            context.unwatch(registry);
        }
    }

    /// Ends the writes that were posted; their sources stay with the queue pair.
    pub(super) fn report_posted(cx: &mut Context<'_>, queue_pair: &QueuePairConnection) {
        let connection = cx.connection;
        for posted in &queue_pair.posted {
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

    /// The queue pair is gone, so no device reaches what its peer was asked to let go of.
    pub(super) fn report_revoked(&mut self, shared: &mut Shared, connection: ConnectionId) {
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

    pub(super) fn destroy(&mut self, queue_pair: Box<QueuePairConnection>) {
        let at = queue_pair.completions;
        drop(queue_pair);
        if let Some(context) = &mut self.context {
            context.give_back(at);
        }
    }
}

frame_kinds! {
    /// The frames of RDMA: those that introduce queue pairs; in the clear, those around one-sided operations of the
    /// device; sealed, the operations themselves.
    VerbsKind {
        Write = WRITE,
        Read = READ,
        ReadReply = READ_REPLY,
        WriteAck = WRITE_ACK,
        QpInfo = QP_INFO,
        QpReady = QP_READY,
        Expose = EXPOSE,
        Revoke = REVOKE,
        Revoked = REVOKED,
        AccessQuery = ACCESS_QUERY,
        AccessReply = ACCESS_REPLY,
    }
}

impl TransportKind for VerbsKind {
    fn decode(byte: u8) -> Option<Self> {
        Self::from_byte(byte)
    }

    fn byte(self) -> u8 {
        self.to_byte()
    }

    fn phase(self) -> Phase {
        match self {
            Self::QpInfo | Self::QpReady => Phase::Pairing,
            Self::Write | Self::Read | Self::ReadReply | Self::WriteAck => Phase::Open,
            Self::Expose | Self::Revoke | Self::Revoked | Self::AccessQuery | Self::AccessReply => {
                Phase::Open
            }
        }
    }

    fn shape(self) -> (Shape, u32) {
        let bytes = match self {
            Self::Write => return PayloadKind::Write.shape(),
            Self::Read => return PayloadKind::Read.shape(),
            Self::ReadReply => return PayloadKind::ReadReply.shape(),
            Self::WriteAck => return PayloadKind::WriteAck.shape(),
            Self::QpInfo => size_of::<QpInfo>(),
            Self::QpReady => 0,
            Self::Expose => size_of::<Expose>(),
            Self::Revoke | Self::Revoked => size_of::<Key>(),
            Self::AccessQuery => size_of::<AccessQuery>(),
            Self::AccessReply => size_of::<AccessReply>(),
        };
        (Shape::Whole, bytes as u32)
    }
}

impl VerbsKind {
    /// The same frame as one of those that TCP has.
    pub(super) fn payload(self) -> Option<PayloadKind> {
        match self {
            Self::Write => Some(PayloadKind::Write),
            Self::Read => Some(PayloadKind::Read),
            Self::ReadReply => Some(PayloadKind::ReadReply),
            Self::WriteAck => Some(PayloadKind::WriteAck),
            Self::QpInfo
            | Self::QpReady
            | Self::Expose
            | Self::Revoke
            | Self::Revoked
            | Self::AccessQuery
            | Self::AccessReply => None,
        }
    }
}

impl Transport for Verbs {
    const KIND: FabricKind = FabricKind::Verbs;
    type Connection = Link;

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
}

impl TransportDriver for Verbs {
    type Path = path::OverQueuePair;
}
