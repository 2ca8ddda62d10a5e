//! The state that the copier of an application shares with its executors' connections.

use super::hosts::{Hosts, MAX_HOSTS, MAX_REPLICAS};
use crate::store::Store;
use faro_sync::lock;
use faro_wire::OutputId;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Counters of copies since the service's start, for all applications together.
#[derive(Debug, Default)]
pub(crate) struct CopyCounts {
    pub(crate) bytes: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// The state that the copier of an application shares with the executors' connections.
#[derive(Debug, Default)]
pub(crate) struct Replicas {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    hosts: Arc<Hosts>,
    /// Whether there is a copier, which lists what is here.
    active: bool,
    /// Not on a page yet; each is an output, a copy or a shuffle, so there are no more than of those.
    pending: VecDeque<Pending>,
    /// By the place of another service, and by shuffle: outputs of here that it has copied.
    copied: HashMap<usize, HashMap<u32, u64>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Pending {
    Kept(OutputId),
    Removed(u32),
}

impl Replicas {
    /// The service at place `at` of `of` has that card. Returns true if the application needs a copier from now on.
    pub(crate) fn told(
        &self,
        (replicas, at, of): (u8, u32, u32),
        card: Vec<u8>,
        store: &Store,
    ) -> Result<bool, String> {
        if replicas > MAX_REPLICAS || of > MAX_HOSTS || at >= of {
            return Err(format!(
                "{replicas} replicas, service {at} of {of}; allowed: 0 to {MAX_REPLICAS}, up to {MAX_HOSTS} services"
            ));
        }
        let mut state = lock(&self.state);
        let hosts = Arc::make_mut(&mut state.hosts);
        hosts.told(replicas.into(), at as usize, of as usize, card);
        if state.active || replicas == 0 {
            return Ok(false);
        }
        state.active = true;
        drop(state);
        // An output that comes meanwhile may be listed twice, which does no harm.
        let here = store.all().into_iter().map(Pending::Kept);
        lock(&self.state).pending.extend(here);
        Ok(true)
    }

    /// An output of an executor, or a copy, is here.
    pub(crate) fn kept(&self, id: OutputId) {
        self.add(Pending::Kept(id));
    }

    /// A shuffle was removed here.
    pub(crate) fn removed(&self, shuffle: u32) {
        self.add(Pending::Removed(shuffle));
        let mut state = lock(&self.state);
        for of_host in state.copied.values_mut() {
            of_host.remove(&shuffle);
        }
    }

    /// The service at place `at` has a copy of an output of here.
    pub(crate) fn copied(&self, at: usize, shuffle: u32) {
        let mut state = lock(&self.state);
        *state
            .copied
            .entry(at)
            .or_default()
            .entry(shuffle)
            .or_default() += 1;
    }

    /// The service at place `at` reads out its list from the beginning.
    pub(crate) fn begins_anew(&self, at: usize) {
        lock(&self.state).copied.remove(&at);
    }

    fn add(&self, what: Pending) {
        let mut state = lock(&self.state);
        if state.active {
            state.pending.push_back(what);
        }
    }

    /// Copies of outputs of here that other services have not reported yet.
    pub(crate) fn behind(&self, store: &Store) -> u64 {
        let state = lock(&self.state);
        let wanted = state.hosts.wanted() as u64;
        if wanted == 0 {
            return 0;
        }
        let own = store.own_by_shuffle();
        let missing = own.into_iter().map(|(shuffle, outputs)| {
            let of_hosts = state.copied.values();
            let copied: u64 = of_hosts.filter_map(|host| host.get(&shuffle)).sum();
            (outputs * wanted).saturating_sub(copied)
        });
        missing.sum()
    }

    pub(crate) fn hosts(&self) -> Arc<Hosts> {
        Arc::clone(&lock(&self.state).hosts)
    }

    pub(crate) fn take_pending(&self, max: usize) -> Vec<Pending> {
        let mut state = lock(&self.state);
        let count = state.pending.len().min(max);
        state.pending.drain(..count).collect()
    }
}
