//! What the table knows of one slot.

use super::Chunk;

/// The state of a slot; the module's picture shows how one follows from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// It has no page, and is in the table's `without_page`.
    NoPage,
    /// It has a page and no chunk, and is in the table's `empty`.
    Empty,
    /// The caller of `begin_fill` fills its page.
    Filling,
    /// Its page has the bytes of a chunk.
    Resident,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SlotEntry {
    pub(super) state: SlotState,
    /// The chunk that it holds or is filled with. It is also `None` if the chunk was forgotten
    /// while it had readers.
    pub(super) chunk: Option<Chunk>,
    /// Length of the chunk in bytes.
    pub(super) length: usize,
    /// Number of local readers.
    pub(super) readers: u32,
    /// True if it was used since the hand came by.
    pub(super) referenced: bool,
    /// Number of accesses of the chunk, including those before it was resident; halved from time to
    /// time.
    pub(super) accesses: u16,
}

impl SlotEntry {
    /// A slot without a page.
    pub(super) const NEW: Self = Self {
        state: SlotState::NoPage,
        chunk: None,
        length: 0,
        readers: 0,
        referenced: false,
        accesses: 0,
    };

    /// Returns whether the slot has a chunk that no reader holds.
    pub(super) fn is_evictable(&self) -> bool {
        self.state == SlotState::Resident && self.readers == 0
    }
}
