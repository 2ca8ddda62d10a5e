//! The chunk cache's table, without its memory: which chunk is in which slot, how many readers it
//! has, and which slot is evicted next.
//!
//! It knows neither pages nor files, so that a property test and a loom model can explore it. A
//! slot that has a page has these states:
//!
//! ```text
//!            begin_fill              publish
//!   empty ───────────────▶ filling ───────────▶ resident ──▶ begin_fill for another chunk (eviction)
//!     ▲                       │                    │
//!     └───────────────────────┴────────────────────┘
//!               abandon              forget
//! ```
//! A resident slot with readers is neither evicted nor emptied: if its chunk is forgotten, the last
//! reader empties it. Local readers hold a slot while they copy, or while a device sends from it. Remote
//! readers do not; they compare versions instead.
//!
//! `clock` chooses the slot whose chunk is evicted.
//!
//! A chunk that takes another's slot must be asked for clearly more often than the evicted one
//! (TinyLFU, Einziger et al. 2017). Otherwise chunks that are used in turn, and are a few more than
//! there are slots, would evict each other at every use.

mod clock;
mod slot;

use crate::RegionId;
use clock::Clock;
use faro_sync::HashMap;
use slot::{SlotEntry, SlotState};

/// The index of a slot.
pub type Slot = usize;

/// A chunk of a region: the region's name and the chunk's number in it.
pub type Chunk = (RegionId, u64);

/// The reason that `begin_fill` returns no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSlot {
    /// The chunk is in a slot.
    Resident,
    /// Another thread fills a slot with the chunk.
    Filling,
    /// All slots have readers, are being filled, or have no page.
    AllHeld,
    /// The chunk that would be evicted is asked for about as often.
    NotWorth,
}

/// The table of slots and chunks.
#[derive(Debug)]
pub struct Table {
    by_chunk: HashMap<Chunk, Slot>,
    slots: Vec<SlotEntry>,
    clock: Clock,
    /// Slots in state `Empty`.
    empty: Vec<Slot>,
    /// Slots in state `NoPage`; the last is the next to get one.
    without_page: Vec<Slot>,
    /// Number of chunks that were evicted since the start.
    evictions: u64,
    /// Number of slots with readers.
    held: usize,
}

impl Table {
    /// Returns a table of `slots` slots without pages.
    pub fn new(slots: usize) -> Self {
        Self {
            by_chunk: HashMap::default(),
            slots: vec![SlotEntry::NEW; slots],
            clock: Clock::default(),
            empty: Vec::new(),
            without_page: (0..slots).rev().collect(),
            evictions: 0,
            held: 0,
        }
    }

    /// Returns the slot that holds `chunk`, with one more reader until `release`.
    pub fn acquire(&mut self, chunk: Chunk) -> Option<Slot> {
        let slot = *self.by_chunk.get(&chunk)?;
        let entry = &mut self.slots[slot];
        if entry.state != SlotState::Resident {
            return None;
        }
        self.held += usize::from(entry.readers == 0);
        entry.readers += 1;
        entry.referenced = true;
        entry.accesses = entry.accesses.saturating_add(1);
        Some(slot)
    }

    /// Returns whether a slot holds `chunk`. This does not count as a use of it.
    pub fn has(&self, chunk: Chunk) -> bool {
        let slot = self.by_chunk.get(&chunk);
        slot.is_some_and(|slot| self.slots[*slot].state == SlotState::Resident)
    }

    /// Removes the reader that `acquire` or `publish` added.
    pub fn release(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        debug_assert!(entry.readers > 0, "slot {slot} was released twice");
        entry.readers -= 1;
        if entry.readers > 0 {
            return;
        }
        self.held -= 1;
        if entry.chunk.is_none() {
            self.make_empty(slot);
        }
    }

    /// Returns a slot for the caller to fill with `chunk`, until `publish` or `abandon`. It is an
    /// empty slot if there is one; otherwise a chunk is evicted.
    ///
    /// # Errors
    /// Returns why no slot can be filled.
    pub fn begin_fill(&mut self, chunk: Chunk) -> Result<Slot, NoSlot> {
        self.fill(chunk, 1, |_| true)
    }

    /// Returns a slot as `begin_fill` does, for a chunk with `accesses` accesses. Another chunk is
    /// evicted only if it was accessed clearly less often.
    ///
    /// # Errors
    /// Returns the errors of `begin_fill`, and `NotWorth`.
    pub fn begin_fill_if_worth(&mut self, chunk: Chunk, accesses: u16) -> Result<Slot, NoSlot> {
        // It must have half as many accesses more, and more than the one by which two chunks that
        // take turns differ.
        let beats = |victim: u16| accesses > victim.saturating_add(victim / 2).saturating_add(1);
        self.fill(chunk, accesses, beats)
    }

    fn fill(
        &mut self,
        chunk: Chunk,
        accesses: u16,
        beats: impl Fn(u16) -> bool,
    ) -> Result<Slot, NoSlot> {
        if let Some(slot) = self.by_chunk.get(&chunk) {
            return Err(match self.slots[*slot].state {
                SlotState::Filling => NoSlot::Filling,
                SlotState::NoPage | SlotState::Empty | SlotState::Resident => NoSlot::Resident,
            });
        }
        let slot = match self.empty.pop() {
            Some(slot) => slot,
            None => self.evict(beats)?,
        };
        self.by_chunk.insert(chunk, slot);
        let entry = &mut self.slots[slot];
        debug_assert!(
            entry.chunk.is_none() && entry.readers == 0,
            "slot {slot} is in use"
        );
        entry.state = SlotState::Filling;
        entry.chunk = Some(chunk);
        entry.accesses = accesses;
        Ok(slot)
    }

    /// Publishes the slot of `begin_fill`, which now holds `length` bytes of its chunk. It has one
    /// reader, which the caller must release.
    pub fn publish(&mut self, slot: Slot, length: usize) {
        let entry = &mut self.slots[slot];
        debug_assert_eq!(entry.state, SlotState::Filling);
        debug_assert_eq!(
            entry.readers, 0,
            "slot {slot} had a reader while it was filled"
        );
        entry.state = SlotState::Resident;
        entry.length = length;
        entry.readers = 1;
        entry.referenced = true;
        self.held += 1;
    }

    /// Empties the slot of `begin_fill`.
    pub fn abandon(&mut self, slot: Slot) {
        debug_assert_eq!(self.slots[slot].state, SlotState::Filling);
        self.make_empty(slot);
    }

    /// Drops all resident chunks of a group. Returns their slots, whose versions must change. A
    /// slot with readers becomes empty with its last reader. A slot that is being filled is not
    /// touched: the bytes under a name never change, so they are right, and they will be evicted.
    pub fn forget(&mut self, group: u32) -> Vec<Slot> {
        let slots: Vec<Slot> = self
            .by_chunk
            .iter()
            .filter(|((id, _), slot)| {
                id.group == group && self.slots[**slot].state == SlotState::Resident
            })
            .map(|(_, slot)| *slot)
            .collect();
        for slot in &slots {
            if self.slots[*slot].readers == 0 {
                self.make_empty(*slot);
            } else {
                self.remove_chunk(*slot);
            }
        }
        slots
    }

    /// Halves the counts of accesses, so that chunks that are no longer asked for make room.
    pub fn halve_accesses(&mut self) {
        for entry in &mut self.slots {
            entry.accesses /= 2;
        }
    }

    /// Returns the length of the chunk in a slot, in bytes.
    pub fn length(&self, slot: Slot) -> usize {
        self.slots[slot].length
    }

    /// Returns whether `begin_fill` would find an empty slot, so that it evicts nothing.
    pub fn has_room(&self) -> bool {
        !self.empty.is_empty()
    }

    /// Returns the number of slots that have readers.
    pub fn held_slots(&self) -> usize {
        self.held
    }

    /// Returns the number of slots that have a page and no chunk.
    pub fn empty_slots(&self) -> usize {
        self.empty.len()
    }

    /// Returns the slot that `add_page` will give a page to.
    pub fn slot_without_page(&self) -> Option<Slot> {
        self.without_page.last().copied()
    }

    /// Notes that the slot of `slot_without_page` has a page.
    pub fn add_page(&mut self) {
        if let Some(slot) = self.without_page.pop() {
            debug_assert_eq!(self.slots[slot].state, SlotState::NoPage);
            self.slots[slot].state = SlotState::Empty;
            self.empty.push(slot);
        }
    }

    /// Takes the pages away from up to `max` slots that have no readers, are not being filled, and
    /// are accepted by `may`. Empty slots come first, then the others in the order of the hand,
    /// those not used since it came by before the rest. The hand goes round at most once.
    pub fn take_pages(&mut self, max: usize, may: impl Fn(Slot) -> bool) -> Vec<Slot> {
        let taken = self.least_used(max, may);
        self.take(&taken);
        taken
    }

    /// Takes the page away from a slot, unless it has readers or is being filled. Returns whether it did.
    pub fn take_page(&mut self, slot: Slot) -> bool {
        let entry = &self.slots[slot];
        let may = entry.is_evictable() || entry.state == SlotState::Empty;
        if may {
            self.take(&[slot]);
        }
        may
    }

    fn take(&mut self, slots: &[Slot]) {
        for slot in slots {
            debug_assert_eq!(self.slots[*slot].readers, 0, "slot {slot} is being read");
            self.remove_chunk(*slot);
            self.slots[*slot].state = SlotState::NoPage;
        }
        self.empty
            .retain(|slot| self.slots[*slot].state == SlotState::Empty);
        self.without_page.extend(slots);
    }

    /// Returns the slots that `take_pages` would take.
    pub fn least_used(&self, max: usize, may: impl Fn(Slot) -> bool) -> Vec<Slot> {
        let empty = self.empty.iter().copied().filter(|slot| may(*slot));
        let mut taken: Vec<Slot> = empty.take(max).collect();
        let missing = max - taken.len();
        taken.extend(self.clock.least_used(&self.slots, missing, may));
        taken
    }

    /// Returns the number of chunks that can be read.
    pub fn residents(&self) -> usize {
        let resident =
            |entry: &&SlotEntry| entry.state == SlotState::Resident && entry.chunk.is_some();
        self.slots.iter().filter(resident).count()
    }

    /// Returns the number of chunks that were evicted for others since the start.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Panics if the table contradicts itself. For tests.
    pub fn check(&self) {
        let has_readers = |entry: &&SlotEntry| entry.readers > 0;
        assert_eq!(self.held, self.slots.iter().filter(has_readers).count());
        for (chunk, slot) in &self.by_chunk {
            assert_eq!(self.slots[*slot].chunk, Some(*chunk), "slot {slot}");
        }
        for (slot, entry) in self.slots.iter().enumerate() {
            let times = |list: &[Slot]| list.iter().filter(|listed| **listed == slot).count();
            let is = |state| usize::from(entry.state == state);
            assert_eq!(times(&self.empty), is(SlotState::Empty), "slot {slot}");
            assert_eq!(
                times(&self.without_page),
                is(SlotState::NoPage),
                "slot {slot}"
            );
            if let Some(chunk) = entry.chunk {
                assert_eq!(self.by_chunk.get(&chunk), Some(&slot), "slot {slot}");
            }
            let has_chunk = entry.chunk.is_some();
            match entry.state {
                SlotState::NoPage | SlotState::Empty => assert!(!has_chunk && entry.readers == 0),
                SlotState::Filling => assert!(has_chunk && entry.readers == 0),
                SlotState::Resident => assert!(has_chunk || entry.readers > 0),
            }
        }
    }

    fn remove_chunk(&mut self, slot: Slot) {
        if let Some(chunk) = self.slots[slot].chunk.take() {
            self.by_chunk.remove(&chunk);
        }
    }

    fn make_empty(&mut self, slot: Slot) {
        self.remove_chunk(slot);
        let entry = &mut self.slots[slot];
        debug_assert_eq!(entry.readers, 0, "slot {slot} is being read");
        entry.state = SlotState::Empty;
        entry.referenced = false;
        self.empty.push(slot);
    }

    /// Evicts by CLOCK a chunk whose number of accesses `beats` accepts. The slot stays `Resident`,
    /// without a chunk, until the caller changes it.
    ///
    /// # Errors
    /// Returns `AllHeld` if no slot is evictable, and `NotWorth` if `beats` accepts none.
    fn evict(&mut self, beats: impl Fn(u16) -> bool) -> Result<Slot, NoSlot> {
        let slot = self.clock.victim(&mut self.slots);
        let slot = slot.ok_or(NoSlot::AllHeld)?;
        if !beats(self.slots[slot].accesses) {
            return Err(NoSlot::NotWorth);
        }
        self.remove_chunk(slot);
        self.evictions += 1;
        Ok(slot)
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]
#[path = "table_test.rs"]
mod tests;
