//! One bound for the memory of several pools, as those of all applications of a node service.
//!
//! ```text
//!   | own part of a pool | own part of a pool | ... one for each pool that may come | shared |
//! ```
//! The own part, [`MIN_LIMIT_BYTES`], is a pool's whatever the others do. Of the shared part a pool
//! gets one more slab only if it then has no more of it than is left free: a pool alone gets half,
//! two get a third each, and one that comes always finds some. What a pool has beyond a share that
//! has become smaller stays its own until the slabs are idle (`pool/idle`).
//!
//! A slab has memory of one pool only. A device or a peer on the same host that may access a part
//! of a slab could access all of it, and the pools' users must not see each other's bytes.
//!
//! The rule is the dynamic threshold of Choudhury and Hahne, with a factor of one ("Dynamic queue
//! length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2), 1998).
//!
//! A pool that ends and whose memory cannot come back yet, because a disk that hangs still reads into
//! it, retires: its own part becomes another pool's, and the slabs that it still has count as shared.

use crate::{PoolError, MAX_LIMIT_BYTES, MIN_LIMIT_BYTES, SLAB_BYTES};
use faro_sync::atomic::{AtomicBool, AtomicU32, Ordering};
use faro_sync::{lock, Mutex};
use std::fmt;
use std::sync::{Arc, Weak};

/// Slabs of a pool's own part.
const OWN_SLABS: u32 = (MIN_LIMIT_BYTES / SLAB_BYTES as u64) as u32;

fn bytes(slabs: u32) -> u64 {
    u64::from(slabs) * SLAB_BYTES as u64
}

/// Returns the part of `slabs` slabs of a pool that is of the shared part.
fn beyond_own(slabs: u32) -> u32 {
    slabs.saturating_sub(OWN_SLABS)
}

/// A pool that shares its memory.
pub(crate) trait BudgetMember: Send + Sync {
    /// Called when memory has returned to the budget, on the thread that returns it.
    fn memory_returned(&self);
}

/// The memory that several pools have together at most.
pub struct Budget {
    /// Maximum number of pools.
    max_pools: u32,
    /// Slabs of the shared part.
    shared: u32,
    /// Slabs of the shared part that pools have. Relaxed: the mutex of each arena and the fences of
    /// `EventCount` order what depends on it.
    taken: AtomicU32,
    /// Slabs that pools have, of their own parts too.
    held: AtomicU32,
    pools: AtomicU32,
    /// The pools, which are told of memory that has returned.
    members: Mutex<Vec<Weak<dyn BudgetMember>>>,
}

impl Budget {
    /// The own part of each pool.
    pub const OWN_BYTES: u64 = MIN_LIMIT_BYTES;

    /// Returns a bound of `limit_bytes` (rounded down to slabs) for up to `pools` pools.
    ///
    /// # Errors
    /// Returns `LimitTooSmall` if not every pool can have its own part, or `LimitTooLarge`.
    pub fn new(limit_bytes: u64, pools: u32) -> Result<Arc<Self>, PoolError> {
        let min = MIN_LIMIT_BYTES * u64::from(pools.max(1));
        if limit_bytes < min {
            return Err(PoolError::LimitTooSmall {
                got: limit_bytes,
                min,
            });
        }
        if limit_bytes > MAX_LIMIT_BYTES {
            return Err(PoolError::LimitTooLarge {
                got: limit_bytes,
                max: MAX_LIMIT_BYTES,
            });
        }
        // MAX_LIMIT_BYTES keeps the number of slabs within u32.
        Ok(Arc::new(Self {
            max_pools: pools,
            shared: ((limit_bytes - min) / SLAB_BYTES as u64) as u32,
            taken: AtomicU32::new(0),
            held: AtomicU32::new(0),
            pools: AtomicU32::new(0),
            members: Mutex::new(Vec::new()),
        }))
    }

    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        bytes(self.max_pools * OWN_SLABS + self.shared)
    }

    /// Returns the most that one pool can have: its own part, and half of the shared one.
    #[must_use]
    pub fn limit_of_a_pool(&self) -> u64 {
        bytes(OWN_SLABS + self.shared / 2)
    }

    /// Returns the bytes that the pools have now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        bytes(self.held.load(Ordering::Relaxed))
    }

    /// Tells `pool` from now on of memory that has returned.
    pub(crate) fn tell(&self, pool: Weak<dyn BudgetMember>) {
        let mut members = lock(&self.members);
        members.retain(|member| member.strong_count() > 0);
        members.push(pool);
    }

    /// Tells all pools that memory has returned.
    pub(crate) fn announce(&self) {
        // Not under the lock: this may drop the last reference to a pool, which announces again.
        let members: Vec<Weak<dyn BudgetMember>> = lock(&self.members).clone();
        for pool in members.iter().filter_map(Weak::upgrade) {
            pool.memory_returned();
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limit_bytes", &self.limit_bytes())
            .field("held_bytes", &self.held_bytes())
            .finish_non_exhaustive()
    }
}

/// The part of a budget that one pool has.
pub(crate) struct Share {
    budget: Arc<Budget>,
    /// Both are changed under the lock of the arena's slabs only.
    held: AtomicU32,
    /// It takes no more, and all that it has is of the shared part.
    retired: AtomicBool,
}

impl Share {
    /// Returns a share without a slab.
    ///
    /// # Errors
    /// Returns `TooManyPools`.
    pub(crate) fn of(budget: &Arc<Budget>) -> Result<Self, PoolError> {
        let max = budget.max_pools;
        let more = |pools| (pools < max).then_some(pools + 1);
        match budget
            .pools
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
        {
            Ok(_) => Ok(Self {
                budget: Arc::clone(budget),
                held: AtomicU32::new(0),
                retired: AtomicBool::new(false),
            }),
            Err(_) => Err(PoolError::TooManyPools { max }),
        }
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Takes `more` slabs, all or none. Returns false if they are not this pool's now.
    pub(crate) fn take(&self, more: u32) -> bool {
        if self.is_retired() {
            return more == 0;
        }
        let held = self.held.load(Ordering::Relaxed);
        let beyond = beyond_own(held + more);
        let of_shared = beyond - beyond_own(held);
        if of_shared > 0 {
            let fits = |taken: u32| {
                let taken = taken + of_shared;
                let free = self.budget.shared.checked_sub(taken)?;
                (beyond <= free).then_some(taken)
            };
            let taken = &self.budget.taken;
            if taken
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits)
                .is_err()
            {
                return false;
            }
        }
        self.held.store(held + more, Ordering::Relaxed);
        self.budget.held.fetch_add(more, Ordering::Relaxed);
        true
    }

    /// Gives back `fewer` slabs. The caller announces it, when it holds no lock.
    pub(crate) fn give(&self, fewer: u32) {
        let held = self.held.load(Ordering::Relaxed);
        debug_assert!(fewer <= held, "{fewer} slabs of {held} are given back");
        let left = held.saturating_sub(fewer);
        self.held.store(left, Ordering::Relaxed);
        self.budget.held.fetch_sub(held - left, Ordering::Relaxed);
        let of_shared = match self.is_retired() {
            true => held - left,
            false => beyond_own(held) - beyond_own(left),
        };
        self.budget.taken.fetch_sub(of_shared, Ordering::AcqRel);
    }

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Takes no more from now on, and leaves its own part to another pool. Returns false if the slabs
    /// that it has of it do not fit into the shared part now; then all is as before.
    pub(crate) fn retire(&self) -> bool {
        if self.is_retired() {
            return true;
        }
        let of_own = self.held.load(Ordering::Relaxed).min(OWN_SLABS);
        let fits = |taken: u32| (taken + of_own <= self.budget.shared).then_some(taken + of_own);
        let taken = &self.budget.taken;
        let charged = taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits);
        if charged.is_ok() {
            self.retired.store(true, Ordering::Relaxed);
            self.budget.pools.fetch_sub(1, Ordering::AcqRel);
        }
        charged.is_ok()
    }

    /// Returns the slabs that the pool could have now, with those that it has.
    pub(crate) fn reach(&self) -> u32 {
        let held = self.held.load(Ordering::Relaxed);
        if self.is_retired() {
            return held;
        }
        let beyond = beyond_own(held);
        let taken = self.budget.taken.load(Ordering::Relaxed);
        let more = self.budget.shared.saturating_sub(taken + beyond) / 2;
        held.max(OWN_SLABS) + more
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give(self.held.load(Ordering::Relaxed));
        if !self.is_retired() {
            self.budget.pools.fetch_sub(1, Ordering::AcqRel);
        }
        self.budget.announce();
    }
}

/// Returns the pages that only serving may take of a pool with a share: all but one slab of its own
/// part. So reading, which other pools cannot hinder, cannot hinder serving.
pub(crate) fn reserve_pages(slabs: u32, pages_per_slab: u32) -> u32 {
    (slabs - (OWN_SLABS - 1)) * pages_per_slab
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SLAB: u64 = SLAB_BYTES as u64;

    /// Takes slabs one by one until that is refused. Returns how many the pool has then.
    fn fill(share: &Share) -> u32 {
        while share.take(1) {}
        share.held.load(Ordering::Relaxed)
    }

    #[test]
    fn one_pool_has_half_of_the_shared_part_and_two_have_a_third_each() {
        // Of 20 slabs two pools have two each.
        let budget = Budget::new(20 * SLAB, 2).unwrap();
        assert_eq!(budget.limit_of_a_pool(), (2 + 8) * SLAB);
        let (a, b) = (Share::of(&budget).unwrap(), Share::of(&budget).unwrap());
        assert_eq!(a.reach(), 10);
        assert_eq!(fill(&a), 10);
        assert_eq!((a.reach(), b.reach()), (10, 6));
        assert_eq!(fill(&b), 6, "four of the eight that are left");
        // What a has beyond its share it keeps, and does not get again.
        a.give(4);
        assert_eq!(fill(&a), 8);
        assert_eq!(fill(&b), 7);
        assert!(budget.held_bytes() <= budget.limit_bytes());
        drop((a, b));
        assert_eq!(budget.held_bytes(), 0);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_pool_has_its_own_part_whatever_the_others_have() {
        let budget = Budget::new(3 * MIN_LIMIT_BYTES + SLAB, 3).unwrap();
        let shares: Vec<Share> = (0..3).map(|_| Share::of(&budget).unwrap()).collect();
        // Half of one slab is none.
        assert_eq!(shares.iter().map(fill).collect::<Vec<_>>(), [2, 2, 2]);
        assert!(matches!(
            Share::of(&budget),
            Err(PoolError::TooManyPools { max: 3 })
        ));
        drop(shares);
        assert!(Share::of(&budget).is_ok());
    }

    #[test]
    fn the_bound_is_never_exceeded_in_any_order() {
        let budget = Budget::new(64 * SLAB, 4).unwrap();
        let shares: Vec<Share> = (0..4).map(|_| Share::of(&budget).unwrap()).collect();
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
            let share = &shares[(state >> 33) as usize % 4];
            let count = (state >> 40) as u32 % 5;
            let held = share.held.load(Ordering::Relaxed);
            let reach = share.reach();
            match state >> 60 & 1 {
                0 => assert_eq!(
                    share.take(count),
                    held + count <= reach,
                    "{count} of {reach}"
                ),
                _ => share.give(count.min(held)),
            }
            assert!(budget.held_bytes() <= budget.limit_bytes());
        }
    }

    #[test]
    fn a_pool_that_retires_leaves_its_own_part_to_another_one() {
        let budget = Budget::new(8 * SLAB, 2).unwrap();
        let (hung, other) = (Share::of(&budget).unwrap(), Share::of(&budget).unwrap());
        assert!(hung.take(3));
        assert!(Share::of(&budget).is_err());
        assert!(hung.retire() && hung.retire());
        assert!(!hung.take(1) && hung.take(0));
        assert_eq!(hung.reach(), 3);
        let next = Share::of(&budget).unwrap();
        assert_eq!((fill(&next), fill(&other)), (2, 2), "their own parts");
        assert_eq!(budget.held_bytes(), 7 * SLAB);
        drop(hung);
        assert_eq!(budget.taken.load(Ordering::Relaxed), 0);
        assert!(Share::of(&budget).is_err(), "its place is counted once");
        drop((next, other));
        assert_eq!(budget.held_bytes(), 0);
    }

    #[test]
    fn a_pool_whose_memory_does_not_fit_into_the_shared_part_keeps_its_place() {
        let budget = Budget::new(5 * SLAB, 2).unwrap();
        let share = Share::of(&budget).unwrap();
        assert!(share.take(2));
        assert!(!share.retire());
        share.give(1);
        assert!(share.retire());
        assert!(Share::of(&budget).is_ok());
    }

    #[test]
    fn the_bound_is_never_exceeded_beside_pools_that_retire() {
        let budget = Budget::new(16 * SLAB, 4).unwrap();
        let (mut shares, mut retired) = (Vec::new(), Vec::new());
        let mut state = 1_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005) + 1;
            let chosen = (state >> 33) as usize;
            match (state >> 58) % 8 {
                0..=1 => shares.extend(Share::of(&budget)),
                2 if !retired.is_empty() => drop(retired.swap_remove(chosen % retired.len())),
                3 if !shares.is_empty() => {
                    let share: Share = shares.swap_remove(chosen % shares.len());
                    match share.retire() {
                        true => retired.push(share),
                        false => shares.push(share),
                    }
                }
                _ if !shares.is_empty() => {
                    shares[chosen % shares.len()].take(1 + (state >> 40) as u32 % 3);
                }
                _ => {}
            }
            // Each pool can still have its own part.
            let owed = shares
                .iter()
                .map(|share| share.held.load(Ordering::Relaxed));
            let owed: u32 = owed.map(|held| OWN_SLABS.saturating_sub(held)).sum();
            let pools = budget.pools.load(Ordering::Relaxed);
            assert_eq!(pools as usize, shares.len());
            let free = (budget.max_pools - pools) * OWN_SLABS;
            assert!(budget.held_bytes() + bytes(owed + free) <= budget.limit_bytes());
        }
    }

    #[test]
    fn each_pool_must_have_room_for_its_own_part() {
        let error = Budget::new(4 * MIN_LIMIT_BYTES - 1, 4).unwrap_err();
        let (got, min) = (4 * MIN_LIMIT_BYTES - 1, 4 * MIN_LIMIT_BYTES);
        assert_eq!(error, PoolError::LimitTooSmall { got, min });
    }
}
