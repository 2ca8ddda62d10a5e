//! The residency table without its memory: which chunk is in which slot, who holds it, who goes next.
//!
//! Kept apart from pages and files so that an oracle and a model can explore it. A slot is
//!
//! ```text
//!   empty ──claim──▶ filling ──publish──▶ resident ──claim of another chunk (CLOCK), forget──▶ …
//!     ▲                 └──abandon──▶ empty              readers > 0: nobody takes it away
//! ```
//! Eviction is CLOCK (Corbató 1968): a hand goes round, gives what was used since its last access a
//! second chance, and skips what is held or being filled. A local reader readers for as long as it
//! copies; a remote one does not, and has versions instead.

use crate::RegionId;
use std::collections::HashMap;

/// Position of a slot.
pub type Slot = usize;

/// A chunk of a region: its name and its number.
pub type Chunk = (RegionId, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Empty,
    Filling,
    Resident,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    /// Whose bytes; `None` when empty, or forgotten while held.
    chunk: Option<Chunk>,
    /// Bytes of it.
    length: usize,
    /// Local readers.
    readers: u32,
    /// Used since the hand came by.
    referenced: bool,
    /// The slot may be given something: it has memory.
    has_page: bool,
}

/// Why a chunk gets no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSlot {
    /// It has one.
    Resident,
    /// Somebody is filling one with it.
    Filling,
    /// All are held or being filled.
    AllHeld,
}

/// See the module's comment.
#[derive(Debug)]
pub struct Table {
    by_chunk: HashMap<Chunk, Slot>,
    slots: Vec<Entry>,
    hand: Slot,
    /// Slots with memory that are empty.
    free: usize,
    /// Residents that had to go.
    evictions: u64,
}

impl Table {
    /// `slots` slots without memory.
    pub fn new(slots: usize) -> Self {
        let empty = Entry {
            state: State::Empty,
            chunk: None,
            length: 0,
            readers: 0,
            referenced: false,
            has_page: false,
        };
        Self {
            by_chunk: HashMap::new(),
            slots: vec![empty; slots],
            hand: 0,
            free: 0,
            evictions: 0,
        }
    }

    /// The slot that has `chunk`, held until `unpin`.
    pub fn acquire(&mut self, chunk: Chunk) -> Option<Slot> {
        let slot = *self.by_chunk.get(&chunk)?;
        let entry = &mut self.slots[slot];
        if entry.state != State::Resident {
            return None;
        }
        entry.readers += 1;
        entry.referenced = true;
        Some(slot)
    }

    /// Whether a slot has `chunk`.
    pub fn has(&self, chunk: Chunk) -> bool {
        let slot = self.by_chunk.get(&chunk);
        slot.is_some_and(|slot| self.slots[*slot].state == State::Resident)
    }

    /// Ends a `guard` (or the guard that `publish` left).
    pub fn release(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        debug_assert!(entry.readers > 0, "slot {slot} was unpinned twice");
        entry.readers -= 1;
        if entry.readers == 0 && entry.chunk.is_none() {
            self.vacate(slot);
        }
    }

    /// A slot for `chunk`, which is the caller's to fill until `publish` or `abandon`. What was in it
    /// is gone.
    ///
    /// # Errors
    /// Why there is none.
    pub fn begin_fill(&mut self, chunk: Chunk) -> Result<Slot, NoSlot> {
        if let Some(slot) = self.by_chunk.get(&chunk) {
            return Err(match self.slots[*slot].state {
                State::Filling => NoSlot::Filling,
                _ => NoSlot::Resident,
            });
        }
        let slot = self.victim().ok_or(NoSlot::AllHeld)?;
        self.vacate(slot);
        self.free -= 1;
        self.by_chunk.insert(chunk, slot);
        let entry = &mut self.slots[slot];
        entry.state = State::Filling;
        entry.chunk = Some(chunk);
        Ok(slot)
    }

    /// The claimed slot is filled with `length` bytes. It stays held once, for the claimer.
    pub fn publish(&mut self, slot: Slot, length: usize) {
        let entry = &mut self.slots[slot];
        debug_assert_eq!(entry.state, State::Filling);
        entry.state = State::Resident;
        entry.length = length;
        entry.readers = 1;
        entry.referenced = true;
    }

    /// The claimed slot stays empty.
    pub fn abandon(&mut self, slot: Slot) {
        debug_assert_eq!(self.slots[slot].state, State::Filling);
        self.vacate(slot);
    }

    /// Drops all chunks of a group. Returns the slots whose bytes nobody may believe any more; those
    /// that are held become empty with their last guard, or are abandoned by their claimer.
    pub fn forget(&mut self, group: u32) -> Vec<Slot> {
        let gone: Vec<(Chunk, Slot)> = self
            .by_chunk
            .iter()
            .filter(|((id, _), _)| id.group == group)
            .map(|(chunk, slot)| (*chunk, *slot))
            .collect();
        let mut stale = Vec::new();
        for (chunk, slot) in gone {
            let entry = &mut self.slots[slot];
            match (entry.state, entry.readers) {
                // Its claimer publishes it as it would have; the clock takes it away later.
                (State::Filling, _) => continue,
                (_, 0) => self.vacate(slot),
                // Somebody copies from it.
                _ => {
                    entry.chunk = None;
                    self.by_chunk.remove(&chunk);
                }
            }
            stale.push(slot);
        }
        stale
    }

    /// Bytes of what is in a slot.
    pub fn length(&self, slot: Slot) -> usize {
        self.slots[slot].length
    }

    /// A claim would find a slot that is empty.
    pub fn has_room(&self) -> bool {
        self.free > 0
    }

    /// Gives a slot its memory.
    pub fn add_page(&mut self, slot: Slot) {
        debug_assert!(!self.slots[slot].has_page);
        self.slots[slot].has_page = true;
        self.free += 1;
    }

    /// A slot without memory.
    pub fn slot_without_page(&self) -> Option<Slot> {
        self.slots.iter().position(|entry| !entry.has_page)
    }

    /// Takes away the memory of a slot that nobody holds and `may` says yes to; empty ones first,
    /// then by the clock.
    pub fn take_page(&mut self, may: impl Fn(Slot) -> bool) -> Option<Slot> {
        let idle =
            |entry: &Entry| entry.has_page && entry.readers == 0 && entry.state != State::Filling;
        let count = self.slots.len();
        let round = (0..count).map(|step| (self.hand + step) % count);
        let slot = round
            .filter(|slot| idle(&self.slots[*slot]) && may(*slot))
            .min_by_key(|slot| {
                let entry = &self.slots[*slot];
                (entry.state != State::Empty, entry.referenced)
            })?;
        self.vacate(slot);
        self.free -= 1;
        self.slots[slot].has_page = false;
        Some(slot)
    }

    /// Chunks that can be read.
    pub fn residents(&self) -> usize {
        let resident = |entry: &&Entry| entry.state == State::Resident && entry.chunk.is_some();
        self.slots.iter().filter(resident).count()
    }

    /// Residents that had to go for others.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// What an outsider may rely on; for tests.
    pub fn check(&self) {
        for (chunk, slot) in &self.by_chunk {
            assert_eq!(self.slots[*slot].chunk, Some(*chunk), "slot {slot}");
        }
        for (slot, entry) in self.slots.iter().enumerate() {
            if let Some(chunk) = entry.chunk {
                assert_eq!(self.by_chunk.get(&chunk), Some(&slot), "slot {slot}");
                assert!(entry.state != State::Empty && entry.has_page, "slot {slot}");
            }
        }
        let free = |entry: &&Entry| entry.has_page && entry.state == State::Empty;
        assert_eq!(self.free, self.slots.iter().filter(free).count());
    }

    /// Makes a slot empty.
    fn vacate(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        if let Some(chunk) = entry.chunk.take() {
            self.by_chunk.remove(&chunk);
        }
        self.free += usize::from(entry.state != State::Empty);
        entry.state = State::Empty;
        entry.referenced = false;
    }

    /// An empty slot, or by the clock one that nobody holds: two rounds, because the first may only
    /// take second chances away.
    fn victim(&mut self) -> Option<Slot> {
        let mut fallback = None;
        for _ in 0..2 * self.slots.len() {
            let slot = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            let entry = &mut self.slots[slot];
            if !entry.has_page || entry.readers > 0 {
                continue;
            }
            match entry.state {
                State::Empty => return Some(slot),
                State::Filling => {}
                State::Resident if entry.referenced => entry.referenced = false,
                State::Resident => {
                    fallback = Some(slot);
                    break;
                }
            }
        }
        self.evictions += u64::from(fallback.is_some());
        fallback
    }
}
