//! An oracle for admission, with a clock of its own: it knows what was submitted and what started,
//! and checks after each step what must hold.

use super::admission::PeerAdmission;
use super::order::{ExchangePlan, PeerOrder};
use super::ExchangePolicy;
use faro_exchange::SplitMix64;
use faro_fabric::EndpointId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

pub(super) const SLICE: Duration = Duration::from_millis(10);
pub(super) const MAX_WAIT: Duration = Duration::from_secs(10);
const OWN: EndpointId = 0;

pub(super) fn order(policy: ExchangePolicy, peers: &HashSet<EndpointId>) -> PeerOrder {
    let mut members = BTreeMap::from([(OWN, "10.0.0.0".to_owned())]);
    members.extend(peers.iter().map(|id| (*id, format!("10.0.0.{id}"))));
    ExchangePlan::new(OWN, &members, policy).unwrap().reads
}

pub(super) fn peers(n: u128) -> HashSet<EndpointId> {
    (1..n).collect()
}

pub(super) struct ScheduleModel {
    pub(super) admission: PeerAdmission<u64>,
    pub(super) now: Instant,
    pub(super) rng: SplitMix64,
    policy: ExchangePolicy,
    members: HashSet<EndpointId>,
    pub(super) limit: usize,
    /// Submitted work, with the peer that it is for.
    pub(super) work: HashMap<u64, EndpointId>,
    pub(super) waiting: HashSet<u64>,
    pub(super) under_way: HashSet<u64>,
    gone: HashSet<u64>,
    /// Work that went, in this order.
    pub(super) course: Vec<u64>,
}

impl ScheduleModel {
    pub(super) fn new(policy: ExchangePolicy, members: HashSet<EndpointId>, seed: u64) -> Self {
        let (now, order) = (Instant::now(), order(policy, &members));
        Self {
            limit: order.permits,
            admission: PeerAdmission::new(order, SLICE, MAX_WAIT, now),
            now,
            rng: SplitMix64::new(seed),
            policy,
            members,
            work: HashMap::new(),
            waiting: HashSet::new(),
            under_way: HashSet::new(),
            gone: HashSet::new(),
            course: Vec::new(),
        }
    }

    pub(super) fn submit(&mut self, peer: EndpointId) -> u64 {
        let id = self.work.len() as u64;
        self.work.insert(id, peer);
        self.waiting.insert(id);
        let mut out = Vec::new();
        self.admission.submit(peer, id, self.now, &mut out);
        self.went(out);
        id
    }

    pub(super) fn end(&mut self, id: u64) {
        assert!(self.under_way.remove(&id));
        self.gone.insert(id);
        let mut out = Vec::new();
        self.admission.ended(self.work[&id], 1, self.now, &mut out);
        self.went(out);
    }

    pub(super) fn tick(&mut self, later: Duration) {
        self.now += later;
        let mut out = Vec::new();
        self.admission.tick(self.now, &mut out);
        self.went(out);
    }

    pub(super) fn adopt(&mut self, members: HashSet<EndpointId>) {
        let (mut out, order) = (Vec::new(), order(self.policy, &members));
        (self.members, self.limit) = (members, order.permits);
        self.admission.adopt(order, self.now, &mut out);
        self.went(out);
    }

    pub(super) fn withdraw(&mut self, id: u64) {
        let found = self.admission.withdraw(|waiting| *waiting == id);
        assert_eq!(found.is_some(), self.waiting.remove(&id), "{id}");
        if found.is_some() {
            self.gone.insert(id);
        }
    }

    fn went(&mut self, out: Vec<u64>) {
        for id in out {
            assert!(self.waiting.remove(&id), "{id} went twice, or never came");
            self.under_way.insert(id);
            self.course.push(id);
        }
    }

    pub(super) fn active(&self) -> HashSet<EndpointId> {
        self.under_way.iter().map(|id| self.work[id]).collect()
    }

    pub(super) fn check(&mut self) {
        let active = self.active().len();
        assert_eq!(
            self.admission.active(),
            active,
            "one permit for each peer with work under way"
        );
        assert_eq!(self.admission.waits(), !self.waiting.is_empty());
        if !self.waiting.is_empty() {
            assert!(
                active >= self.limit,
                "{active} of {} permits, and work waits",
                self.limit
            );
        }
        let mut held = HashMap::new();
        for (peer, held_now) in self.admission.moves() {
            *held.entry(peer).or_insert(0) += if held_now { 1 } else { -1 };
        }
        assert!(held.values().all(|change| (-1..=1).contains(change)));
    }

    pub(super) fn random<T: Copy + Ord>(&mut self, of: &HashSet<T>) -> Option<T> {
        let mut all: Vec<T> = of.iter().copied().collect();
        all.sort_unstable();
        let at = self.rng.below(all.len().max(1) as u32) as usize;
        all.get(at).copied()
    }

    /// Ends all remaining work in a random order.
    pub(super) fn drain(&mut self) {
        while let Some(id) = self.random(&self.under_way.clone()) {
            self.end(id);
            self.check();
        }
        assert!(
            self.waiting.is_empty(),
            "{} wait and nothing is under way",
            self.waiting.len()
        );
        assert_eq!(self.gone.len(), self.work.len(), "each once");
        assert_eq!(self.admission.active(), 0);
    }
}
