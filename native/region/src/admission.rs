//! Which chunks are worth a slot.
//!
//! Staging a chunk reads all of it to serve a part. That pays when the rest is asked for while the
//! chunk is still there: a map output of many small partitions is asked for by many reducers, each
//! wanting a sliver of the same chunk. It does not pay for bytes that are read once, nor when the
//! slots turn over faster than the readers come. So a chunk is staged on its third access (a scan
//! accesses once), and accesses are counted in a small sketch with two generations: what was not
//! accessed again within the last few thousand accesses is forgotten. This is TinyLFU's doorkeeper
//! (Einziger et al. 2017) with exact counts in place of a sketch, since there are few chunks.

use crate::table::Chunk;
use std::collections::HashMap;

/// The access at which a chunk is staged.
const ACCESSES: u8 = 3;

/// Counts accesses; bounded by twice its capacity.
pub(crate) struct Admission {
    now: HashMap<Chunk, u8>,
    before: HashMap<Chunk, u8>,
    /// Chunks that a generation counts.
    capacity: usize,
}

impl Admission {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            now: HashMap::new(),
            before: HashMap::new(),
            // Enough to see a chunk come back that will find a slot; more would admit chunks that
            // are evicted before they are used again.
            capacity: 4 * slots,
        }
    }

    /// Counts a access. True: stage the chunk.
    pub(crate) fn count_access(&mut self, chunk: Chunk) -> bool {
        let earlier = self.before.get(&chunk).copied().unwrap_or(0);
        if self.now.len() >= self.capacity && !self.now.contains_key(&chunk) {
            self.before = std::mem::take(&mut self.now);
        }
        let count = self.now.entry(chunk).or_insert(earlier);
        *count = count.saturating_add(1);
        *count >= ACCESSES
    }

    /// Forgets the accesses of all regions of a group: what will have their names is not what was
    /// accessed.
    pub(crate) fn forget(&mut self, group: u32) {
        for generation in [&mut self.now, &mut self.before] {
            generation.retain(|(region, _), _| region.group != group);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::RegionId;

    fn chunk(number: u64) -> Chunk {
        let id = RegionId {
            group: 0,
            member: 0,
        };
        (id, number)
    }

    #[test]
    fn what_is_forgotten_begins_anew() {
        let mut admission = Admission::new(1);
        for number in 0..5 {
            // Both generations have some.
            admission.count_access(chunk(number));
            admission.count_access(chunk(number));
        }
        admission.forget(1);
        assert!(admission.count_access(chunk(4)), "another group's");
        admission.forget(0);
        for number in 0..4 {
            assert!(!admission.count_access(chunk(number)));
            assert!(!admission.count_access(chunk(number)));
        }
    }

    fn scan(admission: &mut Admission, numbers: std::ops::Range<u64>) {
        for number in numbers {
            admission.count_access(chunk(number));
        }
    }

    #[test]
    fn the_third_visit_stages() {
        let mut admission = Admission::new(4);
        assert!(!admission.count_access(chunk(1)));
        assert!(!admission.count_access(chunk(1)));
        assert!(admission.count_access(chunk(1)));
    }

    #[test]
    fn a_scan_stages_nothing_and_takes_no_memory() {
        let mut admission = Admission::new(4);
        for number in 0..10_000 {
            assert!(!admission.count_access(chunk(number)));
        }
        assert!(admission.now.len() + admission.before.len() <= 32);
    }

    #[test]
    fn visits_are_remembered_over_one_generation_and_no_longer() {
        let mut admission = Admission::new(1);
        admission.count_access(chunk(1));
        admission.count_access(chunk(1));
        scan(&mut admission, 10..14);
        assert!(admission.count_access(chunk(1)), "one generation later");
        let mut admission = Admission::new(1);
        admission.count_access(chunk(1));
        admission.count_access(chunk(1));
        scan(&mut admission, 10..20);
        assert!(!admission.count_access(chunk(1)), "two generations later");
    }
}
