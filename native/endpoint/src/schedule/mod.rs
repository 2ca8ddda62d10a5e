//! The grouped exchange in the data path: which peers this endpoint reads from and serves first, and
//! how many at once.
//!
//! ```text
//!   cards ──▶ Members ──▶ Plan (a schedule of faro-exchange, as this endpoint sees it)
//!                          │ reads                            │ serves
//!   fetch ─ requests ──▶ ClientQueue: one of the endpoint   ServerQueue: one of each thread ◀─ turns ─ serve
//!                              └────────── both are an Admission ─────────┘
//! ```
//! It costs no message: all endpoints compute the same schedule of the same members, and keep to it
//! as far as that costs nothing. See [`PeerAdmission`] for what that means. The two directions have
//! rounds of their own, because each moves on when it has nothing left to do.
//!
//! The **members** are this endpoint and the peers that it has met: those whose cards it has, while a
//! connection to them exists. In an all-to-all exchange every endpoint meets every other within a
//! moment, so that all agree without asking. A change is applied a moment later, because peers come
//! in crowds; until then newcomers come after all others.

mod admission;
mod client_queue;
mod members;
#[cfg(test)]
mod model;
mod order;
mod permits;
mod server_queue;
mod usage;

pub(crate) use client_queue::ClientQueue;
pub(crate) use members::host_of;
pub(crate) use server_queue::ServerQueue;

use admission::PeerAdmission;
use faro_exchange::Policy;
use faro_fabric::EndpointId;
use faro_sync::{clock, lock};
use members::Members;
use order::{ExchangePlan, PeerOrder};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use usage::Usage;

/// Fewest peers at once, however small the cluster: below, the round trips of a single peer leave the
/// link idle. Not measured: `faro sim` loses with the three of 16 endpoints (docs/design/scaling.md).
const MIN_PERMITS: usize = 4;

/// Maximum number of peers at once with policy `Auto`: as many windows of 64 KiB as a switch port of 1 MiB
/// keeps. Whatever is in flight, no port has to keep more (docs/decisions/061).
const AUTO_PEERS: usize = 16;

/// Minimum time for which the members stay as they are: peers come in crowds, and each change makes
/// a new plan.
const MEMBERS_PAUSE: Duration = Duration::from_millis(50);

/// Decides the order in which peers are read from and served, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExchangePolicy {
    /// `Random` where each has at most 16 peers, `Rotated` with 16 at a time beyond.
    #[default]
    Auto,
    /// Peers are served in small groups: about the root of the number of endpoints at a time.
    Grouped,
    /// Peers are served around a ring, as many at a time as with `Grouped`.
    Rotated,
    /// All at once, in the order in which requests come.
    Random,
}

impl ExchangePolicy {
    /// All, with their names in the configuration.
    pub const ALL: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("grouped", Self::Grouped),
        ("rotated", Self::Rotated),
        ("random", Self::Random),
    ];
}

/// The settings of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeConfig {
    /// Order and bound.
    pub policy: ExchangePolicy,
    /// Time for which a round is preferred while others wait.
    pub slice: Duration,
}

impl Default for ExchangeConfig {
    fn default() -> Self {
        Self {
            policy: ExchangePolicy::default(),
            slice: Duration::from_millis(20),
        }
    }
}

/// Returns the value of the counter `exchange.policy`.
fn code_of(policy: Policy) -> u64 {
    match policy {
        Policy::Random => 1,
        Policy::Rotated => 2,
        Policy::Grouped => 3,
    }
}

/// The members and the plan of one endpoint, which its queues follow.
pub(crate) struct Exchange {
    config: ExchangeConfig,
    /// Time for which work waits before it goes beyond the limit.
    max_wait: Duration,
    members: Mutex<Members>,
    /// The members have changed since the plan was made.
    stale: AtomicBool,
    plan: Mutex<Arc<ExchangePlan>>,
    /// Counts plans; the first has no members.
    generation: AtomicU64,
    usage: Usage,
}

impl Exchange {
    /// Returns the schedule. `idle_timeout` is the maximum time of a request without progress; it
    /// waits here for at most half of that.
    pub(crate) fn new(
        own: EndpointId,
        host: String,
        config: ExchangeConfig,
        idle_timeout: Duration,
    ) -> Self {
        Self {
            config,
            max_wait: idle_timeout / 2,
            members: Mutex::new(Members::new(own, host)),
            stale: AtomicBool::new(true),
            plan: Mutex::new(Arc::new(ExchangePlan::empty())),
            generation: AtomicU64::new(0),
            usage: Usage::default(),
        }
    }

    /// Adds a peer, and the host that it is on.
    pub(crate) fn join(&self, peer: EndpointId, host: String) {
        if lock(&self.members).join(peer, host) {
            self.stale.store(true, Ordering::Release);
        }
    }

    /// Notes that a peer has left. The next request to it adds it again.
    pub(crate) fn leave(&self, peer: EndpointId) {
        if lock(&self.members).leave(peer) {
            self.stale.store(true, Ordering::Release);
        }
    }

    /// Forgets a peer that has left.
    pub(crate) fn forget(&self, peer: EndpointId) {
        lock(&self.members).forget(peer);
    }

    /// Notes that a peer gets a request.
    fn wanted(&self, peer: EndpointId) {
        if lock(&self.members).back(peer) {
            self.stale.store(true, Ordering::Release);
        }
    }

    pub(crate) fn counters(&self) -> [(&'static str, u64); 10] {
        self.usage.list()
    }

    /// Returns an admission that follows no plan yet.
    fn admission<T>(&self) -> PeerAdmission<T> {
        let order = match self.config.policy {
            ExchangePolicy::Auto | ExchangePolicy::Random => PeerOrder::none(),
            ExchangePolicy::Grouped | ExchangePolicy::Rotated => {
                PeerOrder::new(MIN_PERMITS, Vec::new())
            }
        };
        PeerAdmission::new(order, self.config.slice, self.max_wait, clock::now())
    }

    /// Returns the current plan, if it is newer than that generation. Makes it here if the members
    /// have changed.
    fn newer_than(&self, generation: u64, now: Instant) -> Option<(u64, Arc<ExchangePlan>)> {
        if self.stale.load(Ordering::Acquire) {
            self.make_plan(now);
        }
        let current = self.generation.load(Ordering::Acquire);
        (current != generation).then(|| (current, Arc::clone(&lock(&self.plan))))
    }

    fn make_plan(&self, now: Instant) {
        let mut members = lock(&self.members);
        let own = members.own();
        let Some(members) = members.due(now, MEMBERS_PAUSE) else {
            return;
        };
        self.usage.members.set(members.len() as u64);
        match ExchangePlan::new(own, members, self.config.policy) {
            Ok(plan) => {
                self.usage.policy.set(code_of(plan.policy));
                let (epoch, count) = (plan.epoch, members.len());
                log::debug!("exchange: epoch {epoch:016x}, {count} members");
                *lock(&self.plan) = Arc::new(plan);
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
            // The last plan stays: newcomers come after all others.
            Err(error) => log::warn!("no schedule for {} members: {error}", members.len()),
        }
        // Last, with the members still locked: other threads wait for the plan and do not go without.
        self.stale.store(false, Ordering::Release);
    }
}
