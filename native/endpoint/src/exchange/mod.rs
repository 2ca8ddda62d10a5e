//! The exchange in the data path: which peers this endpoint reads from and serves first, and how many
//! at once.
//!
//! ```text
//!   cards ──▶ Roster ──▶ Plan (a schedule of faro-exchange, as this endpoint sees it)
//!                         │ reads                           │ serves
//!   Router ─ requests ──▶ Admission ─▶ progress threads     Admission ◀─ turns ─ Owner, one per fabric
//! ```
//! No message is spent on it: everybody computes the same schedule of the same members, and keeps to
//! it as far as that costs nothing. See [`Admission`] for what that means. Both sides have rounds of
//! their own, because each moves on when it has nothing left to do.
//!
//! The **members** are this endpoint and the peers that it has met: those whose cards it has, as long
//! as they have not gone. In an all-to-all exchange everybody meets everybody within a moment, so
//! that all agree, and nobody has to be asked. A change is taken up a moment later, because peers come
//! in crowds; until then newcomers come after all others.

mod admission;
#[cfg(test)]
mod model;
mod order;
mod places;
mod roster;
mod serving;
mod usage;

pub(crate) use roster::host_of;
pub(crate) use serving::Serving;

use crate::reader::Request;
use admission::Admission;
use faro_fabric::EndpointId;
use order::Plan;
use roster::Roster;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use usage::{Side, Usage};

/// Fewest peers at once, however small the cluster: below, the round trips of a single peer leave the
/// link idle. Not measured: `faro sim` loses with the three of 16 endpoints (docs/scaling.md).
const MIN_PLACES: usize = 4;

/// How long the members stay as they are, at least: peers come in crowds, and each plan is made anew.
const MEMBERS_PAUSE: Duration = Duration::from_millis(50);

/// In which order peers are read from and served, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExchangePolicy {
    /// By small groups, about the root of the number of endpoints at a time.
    Grouped,
    /// Around a ring, as many at a time as with `Grouped`.
    Rotated,
    /// All at once, in the order in which requests come.
    #[default]
    Random,
}

impl ExchangePolicy {
    /// All, with their names in the configuration.
    pub const ALL: [(&'static str, Self); 3] = [
        ("grouped", Self::Grouped),
        ("rotated", Self::Rotated),
        ("random", Self::Random),
    ];
}

/// What an endpoint is told of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeConfig {
    /// Order and bound.
    pub policy: ExchangePolicy,
    /// How long a round is preferred while others wait.
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

/// Of one endpoint; see the module's comment.
pub(crate) struct Exchange {
    config: ExchangeConfig,
    /// How long work waits before it goes beyond the limit.
    patience: Duration,
    roster: Mutex<Roster>,
    /// The members have changed since the plan was made.
    stale: AtomicBool,
    plan: Mutex<Arc<Plan>>,
    /// Counts plans; the first is nobody's.
    generation: AtomicU64,
    reading: Mutex<Reading>,
    /// Something waits in `reading`.
    waits: AtomicBool,
    /// The round that this endpoint serves, on the fabric that said so last.
    serving_round: AtomicU32,
    usage: Usage,
}

struct Reading {
    admission: Admission<Request>,
    /// Of the plan that it follows.
    generation: u64,
    /// Nothing waits any more, everything goes.
    closed: bool,
}

impl Exchange {
    /// `patience`: how long a request may go without progress; half of it is how long it waits here
    /// at most.
    pub(crate) fn new(
        own: EndpointId,
        host: String,
        config: ExchangeConfig,
        patience: Duration,
    ) -> Self {
        let (nobody, patience) = (Plan::nobody(), patience / 2);
        let reads = nobody.reads.clone();
        Self {
            config,
            patience,
            roster: Mutex::new(Roster::new(own, host)),
            stale: AtomicBool::new(true),
            plan: Mutex::new(Arc::new(nobody)),
            generation: AtomicU64::new(0),
            reading: Mutex::new(Reading {
                admission: Admission::new(reads, config.slice, patience, Instant::now()),
                generation: 0,
                closed: false,
            }),
            waits: AtomicBool::new(false),
            serving_round: AtomicU32::new(0),
            usage: Usage::default(),
        }
    }

    /// A peer is known, and on which host.
    pub(crate) fn join(&self, peer: EndpointId, host: String) {
        if lock(&self.roster).join(peer, host) {
            self.stale.store(true, Ordering::Release);
        }
    }

    /// A peer has gone. When it is asked for something again, it is back.
    pub(crate) fn leave(&self, peer: EndpointId) {
        if lock(&self.roster).leave(peer) {
            self.stale.store(true, Ordering::Release);
        }
    }

    /// A new request: gives what is to be sent now.
    pub(crate) fn submit(&self, request: Request) -> Vec<Request> {
        let (peer, now) = (request.endpoint, Instant::now());
        if lock(&self.roster).back(peer) {
            self.stale.store(true, Ordering::Release);
        }
        self.with(now, |reading, out| match reading.closed {
            true => out.push(request),
            false => reading.admission.submit(peer, request, now, out),
        })
    }

    /// A request that was sent has ended: gives what is to be sent now.
    pub(crate) fn ended(&self, peer: EndpointId) -> Vec<Request> {
        let now = Instant::now();
        self.with(now, |reading, out| {
            reading.admission.ended(peer, 1, now, out)
        })
    }

    /// Something came from a peer that is read from.
    pub(crate) fn sign(&self, peer: EndpointId) {
        // Who never waits need not know who is slow.
        if self.config.policy != ExchangePolicy::Random {
            lock(&self.reading).admission.sign(peer, Instant::now());
        }
    }

    /// Time has passed: gives what is to be sent now.
    pub(crate) fn tick(&self, now: Instant) -> Vec<Request> {
        self.with(now, |reading, out| reading.admission.tick(now, out))
    }

    /// Requests wait here, so that `tick` is needed.
    pub(crate) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// Takes a request back that waits.
    pub(crate) fn withdraw(&self, request: u64) -> Option<Request> {
        if !self.waits() {
            return None;
        }
        let mut reading = lock(&self.reading);
        let found = reading.admission.withdraw(|waiting| waiting.id == request);
        self.took_note(&mut reading);
        found
    }

    /// Gives all that wait; from now on nothing does.
    pub(crate) fn close(&self) -> Vec<Request> {
        let mut reading = lock(&self.reading);
        reading.closed = true;
        let all = reading.admission.clear();
        self.took_note(&mut reading);
        all
    }

    /// The peers that are served in the next round, in the order in which they are expected: what is
    /// staged for them now can be in frames when they come. Empty without a schedule.
    pub(crate) fn upcoming(&self) -> Vec<EndpointId> {
        let next = self.serving_round.load(Ordering::Relaxed).wrapping_add(1);
        lock(&self.plan).serves.of_round(next).to_vec()
    }

    pub(crate) fn counters(&self) -> [(&'static str, u64); 9] {
        self.usage.list()
    }

    /// An admission that follows no plan yet.
    fn admission<T>(&self) -> Admission<T> {
        let order = Plan::nobody().serves;
        Admission::new(order, self.config.slice, self.patience, Instant::now())
    }

    /// Lets `work` change what waits.
    fn with(
        &self,
        now: Instant,
        work: impl FnOnce(&mut Reading, &mut Vec<Request>),
    ) -> Vec<Request> {
        let mut out = Vec::new();
        let mut reading = lock(&self.reading);
        if let Some((generation, plan)) = self.newer_than(reading.generation, now) {
            reading.generation = generation;
            reading.admission.adopt(plan.reads.clone(), now, &mut out);
        }
        work(&mut reading, &mut out);
        self.took_note(&mut reading);
        out
    }

    fn took_note(&self, reading: &mut Reading) {
        self.usage.note(&mut reading.admission, Side::Reads);
        self.waits
            .store(reading.admission.waits(), Ordering::Relaxed);
    }

    fn note(&self, serving: &mut Admission<u64>, side: Side) {
        self.usage.note(serving, side);
        self.serving_round.store(serving.round(), Ordering::Relaxed);
    }

    /// The current plan, if it is another than the one of that generation. Made here when members
    /// have changed.
    fn newer_than(&self, generation: u64, now: Instant) -> Option<(u64, Arc<Plan>)> {
        if self.stale.load(Ordering::Acquire) {
            self.make_plan(now);
        }
        let current = self.generation.load(Ordering::Acquire);
        (current != generation).then(|| (current, Arc::clone(&lock(&self.plan))))
    }

    fn make_plan(&self, now: Instant) {
        let mut roster = lock(&self.roster);
        let own = roster.own();
        let Some(members) = roster.due(now, MEMBERS_PAUSE) else {
            return;
        };
        self.stale.store(false, Ordering::Release);
        self.usage.members.set(members.len() as u64);
        match Plan::new(own, members, self.config.policy) {
            Ok(plan) => {
                log::debug!(
                    "exchange: epoch {:016x}, {} members",
                    plan.epoch,
                    members.len()
                );
                *lock(&self.plan) = Arc::new(plan);
                self.generation.fetch_add(1, Ordering::AcqRel);
            }
            // The last plan stays: newcomers come after all others.
            Err(error) => log::warn!("no schedule for {} members: {error}", members.len()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves what it changes whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
