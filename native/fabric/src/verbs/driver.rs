//! The verbs driver: the RDMA context and the state of its connections.

use super::connect_threads::{ConnectResult, ConnectThreads};
use super::device;
use super::queue_pair::{PendingWork, QueuePairConnection};
use super::rdma_context::RdmaContext;
use crate::session::context::Context;
use crate::session::exposure::ByKey;
use crate::session::state::FabricShared;
use crate::{ConnectionId, Event, Exposure, Outcome};
use faro_pool::Pool;
use faro_secure::Protection;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time after the loss of the device until it is looked for again.
const REOPEN_PAUSE: Duration = Duration::from_secs(5);

/// An exposure whose revocation the peer has yet to confirm.
pub(super) struct PendingRevocation {
    pub(super) connection: ConnectionId,
    pub(super) since: Instant,
    pub(super) exposure: Exposure,
}

/// The driver of RDMA.
pub struct Verbs {
    pub(super) pool: Arc<Pool>,
    pub(super) protection: Protection,
    pub(super) options: device::VerbsOptions,
    /// This host's address; of several devices, the one that has it is taken.
    near: IpAddr,
    /// Dropped before the device.
    pub(super) connecting: ConnectThreads,
    /// Connections whose queue pair those threads have.
    pub(super) pairing: HashSet<ConnectionId>,
    /// Queue pairs that came back, for connections that still are.
    pub(super) connected: Vec<ConnectResult>,
    /// The device; `None` after it was lost.
    pub(super) context: Option<RdmaContext>,
    /// The time at which the device was lost, or last looked for.
    lost_at: Instant,
    pub(super) registry: Option<mio::Registry>,
    pub(super) revoking: ByKey<PendingRevocation>,
    /// Connections by the numbers of their queue pairs, for events of the device.
    pub(super) numbers: HashMap<u32, ConnectionId>,
    /// Completions of one batch, before they have their connections.
    pub(super) batch: Vec<device::WorkCompletion>,
    /// The device's descriptors that are ready: completions, events.
    pub(super) signalled: [bool; 3],
    pub(super) tally: DatapathCosts,
}

/// Costs of the datapath, for the counters.
#[derive(Default)]
pub(super) struct DatapathCosts {
    pub(super) posts: u64,
    pub(super) work_requests: u64,
    pub(super) completions: u64,
    pub(super) wakeups: u64,
    pub(super) asked: u64,
    pub(super) credit_updates: u64,
}

/// `None` before the queue pair is made.
pub(crate) type QueuePairLink = Option<Box<QueuePairConnection>>;

/// The queue pair of a closed connection, while this side's GOODBYE may be on its way.
pub(crate) struct CloseState {
    pub(super) queue_pair: Box<QueuePairConnection>,
}

pub(super) fn device_is_lost() -> String {
    "the RDMA device is lost".to_owned()
}

impl Verbs {
    /// # Errors
    /// There is no descriptor left.
    pub(super) fn new(
        context: RdmaContext,
        options: device::VerbsOptions,
        near: IpAddr,
        pool: Arc<Pool>,
        protection: Protection,
    ) -> io::Result<Self> {
        Ok(Self {
            pool,
            protection,
            options,
            near,
            connecting: ConnectThreads::new()?,
            pairing: HashSet::new(),
            connected: Vec::new(),
            context: Some(context),
            lost_at: Instant::now(),
            registry: None,
            revoking: ByKey::default(),
            numbers: HashMap::new(),
            batch: Vec::new(),
            signalled: [false; 3],
            tally: DatapathCosts::default(),
        })
    }

    /// Takes back the queue pairs that are connected.
    pub(super) fn take_connected(&mut self) {
        while let Some(result) = self.connecting.take_result() {
            if self.pairing.remove(&result.connection) {
                self.connected.push(result);
            } else {
                self.destroy(result.queue_pair);
            }
        }
    }

    /// Forgets a connection that ended before its queue pair was connected.
    pub(super) fn stop_pairing(&mut self, connection: ConnectionId) {
        self.pairing.remove(&connection);
        let of = |result: &ConnectResult| result.connection == connection;
        if let Some(at) = self.connected.iter().position(of) {
            let result = self.connected.swap_remove(at);
            self.destroy(result.queue_pair);
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
        self.numbers.clear();
        if let (Some(context), Some(registry)) = (self.context.take(), &self.registry) {
            context.unwatch(registry);
        }
    }

    /// Ends the writes that were posted; their sources stay with the queue pair.
    pub(super) fn report_posted(cx: &mut Context<'_>, queue_pair: &QueuePairConnection) {
        let connection = cx.connection;
        for posted in &queue_pair.posted {
            if let PendingWork::Write { token, bytes, .. } = posted {
                cx.retire(*bytes);
                cx.event(Event::WriteEnded {
                    connection,
                    token: *token,
                    outcome: Outcome::Flushed,
                });
            }
        }
    }

    /// Reports the exposures that wait for the peer's confirmation: the queue pair is destroyed, so
    /// no device reaches them.
    pub(super) fn report_revoked(&mut self, shared: &mut FabricShared, connection: ConnectionId) {
        let keys: Vec<u64> = self
            .revoking
            .iter()
            .filter(|(_, revoking)| revoking.connection == connection)
            .map(|(key, _)| *key)
            .collect();
        for key in keys {
            if let Some(PendingRevocation { exposure, .. }) = self.revoking.remove(&key) {
                shared.events.push(Event::Revoked { key, exposure });
            }
        }
    }

    pub(super) fn destroy(&mut self, queue_pair: Box<QueuePairConnection>) {
        let at = queue_pair.completions;
        // A queue pair may come back when the device was lost and opened again.
        let of_another = |context: &RdmaContext| !queue_pair.queue.is_of(&context.device);
        if self.context.as_ref().is_some_and(of_another) {
            return;
        }
        self.numbers.remove(&queue_pair.queue.number());
        drop(queue_pair);
        if let Some(context) = &mut self.context {
            context.give_back(at);
        }
    }
}
