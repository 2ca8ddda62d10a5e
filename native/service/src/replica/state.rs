//! The state that the copier of an application shares with its executors' connections.

use super::hosts::{Hosts, MAX_HOSTS, MAX_REPLICAS};
use crate::store::Store;
use faro_sync::lock;
use faro_wire::OutputId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// Counters of copies since the service's start, for all applications together.
#[derive(Debug, Default)]
pub(crate) struct CopyCounts {
    pub(crate) bytes: AtomicU64,
    /// Copies that could not be made here, and outputs of here that could not be listed for others, when that was first tried.
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
    /// Not on a page yet, each once: outputs and copies that are here, and shuffles, at most `MAX_REMOVED`.
    pending: VecDeque<Pending>,
    /// The same, to find them.
    are_pending: HashSet<Pending>,
    /// How many of them are shuffles.
    removed: usize,
    /// How many of them are outputs of each shuffle.
    kept: HashMap<u32, usize>,
    /// By the place of another service, and by shuffle: outputs of here that it has copied.
    copied: HashMap<usize, HashMap<u32, u64>>,
}

/// Most removed shuffles that are not on a page yet. Of more the latest are not listed: their copies go with the application.
const MAX_REMOVED: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pending {
    Kept(OutputId),
    Removed(u32),
}

impl Replicas {
    /// The service at place `at` of `of` has that card. Returns true if the application needs a copier from now on.
    pub(crate) fn set_host(
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
        hosts.set(replicas.into(), at as usize, of as usize, card);
        if state.active || replicas == 0 {
            return Ok(false);
        }
        state.active = true;
        drop(state);
        // An output that comes meanwhile may be listed twice, which does no harm.
        let here = store.all();
        let mut state = lock(&self.state);
        here.into_iter().for_each(|id| state.add(Pending::Kept(id)));
        Ok(true)
    }

    /// An output of an executor, or a copy, is here.
    pub(crate) fn kept(&self, id: OutputId) {
        self.add(Pending::Kept(id));
    }

    /// A shuffle was removed here.
    pub(crate) fn removed(&self, shuffle: u32) {
        let mut state = lock(&self.state);
        state.forget(shuffle);
        if state.active {
            state.add(Pending::Removed(shuffle));
        }
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
            state.add(what);
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

    /// How many outputs and copies of here are not on a page yet.
    pub(crate) fn pending(&self) -> u64 {
        let state = lock(&self.state);
        (state.pending.len() - state.removed) as u64
    }

    /// Gives the next ones to `write`, at most `max`. If it fails, they come next again. Returns how many there were.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn list<E>(
        &self,
        max: usize,
        write: impl FnOnce(&[Pending]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let batch = lock(&self.state).take(max);
        if let Err(error) = write(&batch) {
            let mut state = lock(&self.state);
            batch.into_iter().rev().for_each(|one| state.put_back(one));
            return Err(error);
        }
        Ok(batch.len())
    }
}

impl State {
    /// One that is pending already is listed as it is then.
    fn add(&mut self, what: Pending) {
        if self.may_add(what) {
            self.pending.push_back(what);
        }
    }

    /// One that was added again meanwhile has its place.
    fn put_back(&mut self, what: Pending) {
        if self.may_add(what) {
            self.pending.push_front(what);
        }
    }

    fn may_add(&mut self, what: Pending) -> bool {
        let is_shuffle = matches!(what, Pending::Removed(_));
        if (is_shuffle && self.removed == MAX_REMOVED) || !self.are_pending.insert(what) {
            return false;
        }
        match what {
            Pending::Removed(_) => self.removed += 1,
            Pending::Kept(id) => *self.kept.entry(id.shuffle_id).or_default() += 1,
        }
        true
    }

    fn take(&mut self, max: usize) -> Vec<Pending> {
        let count = self.pending.len().min(max);
        let batch: Vec<Pending> = self.pending.drain(..count).collect();
        for one in &batch {
            self.are_pending.remove(one);
            match one {
                Pending::Removed(_) => self.removed -= 1,
                Pending::Kept(id) => self.one_less(id.shuffle_id),
            }
        }
        batch
    }

    fn one_less(&mut self, shuffle: u32) {
        if let Some(left) = self.kept.get_mut(&shuffle) {
            *left -= 1;
            if *left == 0 {
                self.kept.remove(&shuffle);
            }
        }
    }

    /// Outputs of that shuffle are not to be listed any more.
    fn forget(&mut self, shuffle: u32) {
        if self.kept.remove(&shuffle).is_none() {
            return;
        }
        let are_pending = &mut self.are_pending;
        self.pending.retain(|one| match one {
            Pending::Kept(id) if id.shuffle_id == shuffle => {
                are_pending.remove(one);
                false
            }
            Pending::Kept(_) | Pending::Removed(_) => true,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(shuffle_id: u32, map_id: i64) -> OutputId {
        OutputId { shuffle_id, map_id }
    }

    fn listing() -> Replicas {
        let replicas = Replicas::default();
        lock(&replicas.state).active = true;
        replicas
    }

    fn listed(replicas: &Replicas) -> Vec<Pending> {
        let mut all = Vec::new();
        let written = |batch: &[Pending]| {
            all.extend_from_slice(batch);
            Ok::<_, ()>(())
        };
        replicas.list(usize::MAX, written).unwrap();
        all
    }

    #[test]
    fn what_cannot_be_written_is_listed_later() {
        let replicas = listing();
        let all: Vec<Pending> = (0..5).map(|map| Pending::Kept(id(1, map))).collect();
        (0..5).for_each(|map| replicas.kept(id(1, map)));
        replicas.removed(2);
        for _ in 0..3 {
            let full_disk = replicas.list(4, |batch| {
                assert_eq!(batch, &all[..4]);
                // An executor hands one of them over once more meanwhile.
                replicas.kept(id(1, 2));
                Err("no space")
            });
            assert_eq!(full_disk, Err("no space"));
            // It has the place of its last hand-over from then on.
            let written = [0, 1, 3, 4].map(|at: usize| all[at]);
            let now = listed(&replicas);
            assert_eq!(now, [&written[..], &[Pending::Removed(2), all[2]]].concat());
            now.into_iter()
                .for_each(|one| lock(&replicas.state).add(one));
            lock(&replicas.state)
                .pending
                .make_contiguous()
                .sort_by_key(|one| match one {
                    Pending::Kept(id) => (0, id.map_id),
                    Pending::Removed(_) => (1, 0),
                });
        }
        assert_eq!(listed(&replicas).len(), 6);
        assert!(listed(&replicas).is_empty());
    }

    #[test]
    fn what_is_pending_is_bounded_by_what_is_here() {
        let replicas = listing();
        for _ in 0..3 {
            (0..100).for_each(|map| replicas.kept(id(7, map)));
        }
        assert_eq!(lock(&replicas.state).pending.len(), 100);
        replicas.removed(7);
        assert_eq!(listed(&replicas), [Pending::Removed(7)]);
        for shuffle in 0..2 * MAX_REMOVED as u32 {
            replicas.removed(shuffle);
        }
        assert_eq!(listed(&replicas).len(), MAX_REMOVED);
        let state = lock(&replicas.state);
        assert!(state.are_pending.is_empty() && state.kept.is_empty());
    }
}
