//! Decides which chunks are worth a slot.
//!
//! Filling a slot reads a whole chunk to serve a part of it. That pays if the rest is read before
//! the chunk is evicted: many reducers each want a small part of the same chunk of a map
//! output with many partitions. It does not pay for bytes that are read once, nor if slots are
//! evicted before the next reader comes. So a chunk gets a slot at its third access; a scan
//! accesses each chunk once. Accesses are counted in two generations, so that a chunk that is not
//! accessed again within some thousand accesses is forgotten. This is TinyLFU's doorkeeper
//! (Einziger et al. 2017) with exact counts, which are possible because there are few chunks. The
//! table compares the count with that of the chunk that would be evicted.
//!
//! All counts are halved from time to time, so that a chunk that is no longer read loses its slot.

use crate::table::Chunk;
use faro_sync::HashMap;

/// The access at which a chunk gets a slot.
const ACCESSES: u16 = 3;
/// Number of accesses for each slot after which counts are halved.
const SAMPLE: usize = 10;

/// Counts accesses, of at most twice `capacity` chunks.
pub(crate) struct ChunkAdmission {
    now: HashMap<Chunk, u16>,
    before: HashMap<Chunk, u16>,
    /// Maximum number of chunks in one generation.
    capacity: usize,
    /// Number of accesses until counts are halved.
    until_halved: usize,
    sample: usize,
}

impl ChunkAdmission {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            now: HashMap::default(),
            before: HashMap::default(),
            // This is enough to count the chunks that will find a slot. More would admit chunks
            // that are evicted before they are used again.
            capacity: 4 * slots,
            until_halved: SAMPLE * slots,
            sample: SAMPLE * slots,
        }
    }

    /// Counts an access of a chunk without a slot. Returns the number of its accesses if it is
    /// worth a slot.
    pub(crate) fn count_access(&mut self, chunk: Chunk) -> Option<u16> {
        let earlier = self.before.get(&chunk).copied().unwrap_or(0);
        if self.now.len() >= self.capacity && !self.now.contains_key(&chunk) {
            self.before = std::mem::take(&mut self.now);
        }
        let count = self.now.entry(chunk).or_insert(earlier);
        *count = count.saturating_add(1);
        let count = *count;
        debug_assert!(self.now.len() <= self.capacity);
        (count >= ACCESSES).then_some(count)
    }

    /// Counts an access of any chunk. Returns true if counts were halved; the caller must then halve
    /// the table's counts too.
    pub(crate) fn halves(&mut self) -> bool {
        self.until_halved = self.until_halved.saturating_sub(1);
        if self.until_halved > 0 {
            return false;
        }
        self.until_halved = self.sample;
        for count in self.now.values_mut().chain(self.before.values_mut()) {
            *count /= 2;
        }
        true
    }

    /// Forgets the accesses of all regions of a group, because their names will belong to other
    /// bytes.
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
        let mut admission = ChunkAdmission::new(1);
        for number in 0..5 {
            // Both generations have accesses of these chunks.
            admission.count_access(chunk(number));
            admission.count_access(chunk(number));
        }
        admission.forget(1);
        assert!(
            admission.count_access(chunk(4)).is_some(),
            "another group's"
        );
        admission.forget(0);
        for number in 0..4 {
            assert!(admission.count_access(chunk(number)).is_none());
            assert!(admission.count_access(chunk(number)).is_none());
        }
    }

    fn scan(admission: &mut ChunkAdmission, numbers: std::ops::Range<u64>) {
        for number in numbers {
            admission.count_access(chunk(number));
        }
    }

    #[test]
    fn the_third_visit_stages() {
        let mut admission = ChunkAdmission::new(4);
        assert_eq!(admission.count_access(chunk(1)), None);
        assert_eq!(admission.count_access(chunk(1)), None);
        assert_eq!(admission.count_access(chunk(1)), Some(3));
    }

    #[test]
    fn a_scan_stages_nothing_and_takes_no_memory() {
        let mut admission = ChunkAdmission::new(4);
        for number in 0..10_000 {
            assert!(admission.count_access(chunk(number)).is_none());
        }
        assert!(admission.now.len() + admission.before.len() <= 32);
    }

    #[test]
    fn visits_are_remembered_over_one_generation_and_no_longer() {
        let mut admission = ChunkAdmission::new(1);
        admission.count_access(chunk(1));
        admission.count_access(chunk(1));
        scan(&mut admission, 10..14);
        assert!(
            admission.count_access(chunk(1)).is_some(),
            "one generation later"
        );
        let mut admission = ChunkAdmission::new(1);
        admission.count_access(chunk(1));
        admission.count_access(chunk(1));
        scan(&mut admission, 10..20);
        assert!(
            admission.count_access(chunk(1)).is_none(),
            "two generations later"
        );
    }
}
