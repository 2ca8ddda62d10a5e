//! The clock, the hash keys and the page cache of a thread that runs a simulation.
//!
//! Faro's protocols depend on three things that the system decides: the time, the order in which a
//! hash table is iterated, and whether a page of a file is in memory. `native/simulation` runs
//! whole endpoints on one thread and decides all three from a seed, so that a run can be repeated.
//! The code that ships asks [`crate::clock::now`], [`TableKeys`] and [`page_is_resident`]. Outside
//! of a simulation each of them asks the system, at the cost of one load and a branch. s2n-quic's
//! `Clock` has the same purpose; in Faro it belongs to the thread, because a pool or a table cannot
//! know which simulation it belongs to.

use std::cell::RefCell;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// True once any thread of this process has begun a simulation. Relaxed is enough: a thread that
/// simulates has set it itself.
static ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SIMULATION: RefCell<Option<ClockState>> = const { RefCell::new(None) };
}

struct ClockState {
    /// The instant at which virtual time begins.
    start: Instant,
    now: Instant,
    keys: u64,
    /// State of the generator that chooses which pages are resident.
    pages: u64,
    /// Number of pages that are resident, out of 256 that are asked for.
    resident: u64,
}

/// Makes its thread simulate until it is dropped.
pub struct SimulationGuard {
    /// Not `Send`, because the simulation belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl SimulationGuard {
    /// Starts a simulation on this thread. `seed` decides the order of hash tables and which pages
    /// are resident: on average `resident` of 256 that are asked for.
    ///
    /// # Panics
    /// Panics if this thread simulates already.
    #[must_use]
    pub fn begin(seed: u64, resident: u8) -> Self {
        ANY.store(true, Ordering::Relaxed);
        SIMULATION.with_borrow_mut(|simulation| {
            assert!(simulation.is_none(), "one simulation at a time on a thread");
            let start = Instant::now();
            *simulation = Some(ClockState {
                start,
                now: start,
                keys: seed,
                pages: seed,
                resident: resident.into(),
            });
        });
        let _thread = PhantomData;
        Self { _thread }
    }

    /// Sets the virtual time, as the time since the simulation began.
    pub fn set(&self, since_start: Duration) {
        with(|state| state.now = state.start + since_start);
    }
}

impl Drop for SimulationGuard {
    fn drop(&mut self) {
        SIMULATION.set(None);
    }
}

/// Returns this thread's virtual time; `None` outside of a simulation.
#[inline]
pub(crate) fn now() -> Option<Instant> {
    with(|state| state.now)
}

/// Calls `ask` with the state of this thread's simulation; returns `None` outside of a simulation.
fn with<T>(ask: impl FnOnce(&mut ClockState) -> T) -> Option<T> {
    if !ANY.load(Ordering::Relaxed) {
        return None;
    }
    // A destructor that runs while the thread ends finds no state and asks the system.
    let asked = SIMULATION.try_with(|simulation| simulation.borrow_mut().as_mut().map(ask));
    asked.ok().flatten()
}

/// Returns whether the next page that is asked for is in memory; `None` outside of a simulation,
/// where the system knows.
#[inline]
#[must_use]
pub fn page_is_resident() -> Option<bool> {
    with(|state| {
        // xorshift64*; a state of zero would stay zero.
        let mut x = state.pages | 1;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.pages = x;
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) < state.resident
    })
}

/// The keys of a hash table. They are random, so that no peer can choose which items collide; in a
/// simulation they come from the seed, so that every run of the seed iterates the table in the same
/// order.
#[derive(Debug, Clone)]
pub struct TableKeys(HashKeys);

#[derive(Debug, Clone)]
enum HashKeys {
    Random(RandomState),
    Simulated(u64),
}

impl Default for TableKeys {
    fn default() -> Self {
        Self(match with(|state| state.keys) {
            Some(keys) => HashKeys::Simulated(keys),
            None => HashKeys::Random(RandomState::new()),
        })
    }
}

impl BuildHasher for TableKeys {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        match &self.0 {
            HashKeys::Random(keys) => keys.build_hasher(),
            HashKeys::Simulated(keys) => {
                let mut hasher = DefaultHasher::new();
                hasher.write_u64(*keys);
                hasher
            }
        }
    }
}

/// A hash table whose order a simulation decides.
pub type HashMap<K, V> = std::collections::HashMap<K, V, TableKeys>;
/// A hash set whose order a simulation decides.
pub type HashSet<T> = std::collections::HashSet<T, TableKeys>;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::now;

    fn order(seed: u64) -> Vec<u32> {
        let _simulated = SimulationGuard::begin(seed, 128);
        let table: HashSet<u32> = (0..100).collect();
        table.into_iter().collect()
    }

    #[test]
    fn time_stands_still_until_it_is_set() {
        let simulated = SimulationGuard::begin(1, 0);
        let start = now();
        simulated.set(Duration::from_secs(3_600));
        assert_eq!(now() - start, Duration::from_secs(3_600));
        let other = std::thread::spawn(move || now() - start);
        assert!(other.join().unwrap() < Duration::from_secs(3_600));
        drop(simulated);
        assert!(now() - start < Duration::from_secs(3_600));
    }

    #[test]
    fn a_seed_decides_the_order_of_a_table() {
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }

    #[test]
    fn a_seed_decides_which_pages_are_resident() {
        assert_eq!(page_is_resident(), None);
        let looks = |resident| {
            let _simulated = SimulationGuard::begin(9, resident);
            (0..1_000)
                .filter(|_| page_is_resident() == Some(true))
                .count()
        };
        assert_eq!(looks(0), 0);
        let half = looks(128);
        assert!(half > 400 && half < 600 && half == looks(128), "{half}");
    }
}
