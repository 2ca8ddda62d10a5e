//! This side's exposures to one peer: the slots that its writes' immediates name.
//!
//! ```text
//!            take                   last write came
//!   Free ----------> Exposed{key} -------------------> Released{key}
//!    ^                  | revoke: the peer is asked        | revoke: at once
//!    |                  v                                  |
//!    +---REVOKED--- Revoking{key}                          |
//!    +-----------------------------------------------------+
//! ```

use super::frames::SLOTS;
use crate::session::exposure::ByKey;

/// See the module's diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BufferSlotState {
    /// No exposure.
    Free,
    /// The peer may write.
    Exposed { key: u64 },
    /// The peer wrote there for the last time.
    Released { key: u64 },
    /// The peer was asked to confirm a revocation and has not answered; its writes may still
    /// arrive.
    Revoking { key: u64 },
}

/// An event in the life of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotEvent {
    /// A write came. `last`: the peer posts no other there.
    Written { last: bool },
    /// The owner wants its memory back.
    Revoke,
    /// REVOKED came.
    Revoked,
}

impl BufferSlotState {
    /// Returns the state after an event; `None` if the event cannot happen in this state.
    fn on(self, event: SlotEvent) -> Option<Self> {
        use BufferSlotState::{Exposed, Free, Released, Revoking};
        use SlotEvent::{Revoke, Revoked, Written};
        match (self, event) {
            (Free, Written { .. } | Revoke | Revoked) => None,
            (Exposed { key }, Written { last: false }) => Some(Exposed { key }),
            (Exposed { key }, Written { last: true }) => Some(Released { key }),
            (Exposed { key }, Revoke) => Some(Revoking { key }),
            (Released { key }, Written { .. }) => Some(Released { key }),
            (Released { .. }, Revoke) => Some(Free),
            (Revoking { key }, Written { .. }) => Some(Revoking { key }),
            (Revoking { .. }, Revoked) => Some(Free),
            (Revoking { .. }, Revoke) | (Exposed { .. } | Released { .. }, Revoked) => None,
        }
    }

    fn key(self) -> Option<u64> {
        match self {
            Self::Free => None,
            Self::Exposed { key } | Self::Released { key } | Self::Revoking { key } => Some(key),
        }
    }
}

/// The condition under which a revocation is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RevokeNeeds {
    /// Now: the peer does not write there any more.
    Nothing,
    /// The peer's answer to REVOKE.
    Answer,
}

/// The slots of one connection.
#[derive(Default)]
pub(super) struct ExposedBuffers {
    slots: Vec<BufferSlotState>,
    free: Vec<u16>,
    by_key: ByKey<u16>,
}

impl ExposedBuffers {
    /// Takes a slot for `key`; `None` if all are taken.
    pub(super) fn take(&mut self, key: u64) -> Option<u16> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < SLOTS => {
                self.slots.push(BufferSlotState::Free);
                (self.slots.len() - 1) as u16
            }
            None => return None,
        };
        self.slots[usize::from(slot)] = BufferSlotState::Exposed { key };
        self.by_key.insert(key, slot);
        Some(slot)
    }

    /// Handles a write into that slot. Returns the exposure's key; `None` if the slot is empty.
    pub(super) fn written(&mut self, slot: u16, last: bool) -> Option<u64> {
        let key = self.slots.get(usize::from(slot))?.key();
        self.apply(slot, SlotEvent::Written { last });
        key
    }

    /// Handles the owner's revocation. A key without a slot needs nothing.
    pub(super) fn revoke(&mut self, key: u64) -> RevokeNeeds {
        let Some(slot) = self.by_key.get(&key).copied() else {
            return RevokeNeeds::Nothing;
        };
        match self.apply(slot, SlotEvent::Revoke) {
            Some(BufferSlotState::Free) => RevokeNeeds::Nothing,
            Some(_) | None => RevokeNeeds::Answer,
        }
    }

    /// Handles REVOKED. Returns false if the peer was not asked.
    pub(super) fn revoked(&mut self, key: u64) -> bool {
        let slot = self.by_key.get(&key).copied();
        slot.and_then(|slot| self.apply(slot, SlotEvent::Revoked))
            .is_some()
    }

    /// Applies an event; the new state, or `None` if the event cannot happen.
    fn apply(&mut self, slot: u16, event: SlotEvent) -> Option<BufferSlotState> {
        let state = self.slots.get_mut(usize::from(slot))?;
        let before = state.key();
        *state = state.on(event)?;
        if let (BufferSlotState::Free, Some(key)) = (*state, before) {
            self.by_key.remove(&key);
            self.free.push(slot);
        }
        Some(*state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_in_every_state() {
        let (exposed, released, revoking) = (
            BufferSlotState::Exposed { key: 7 },
            BufferSlotState::Released { key: 7 },
            BufferSlotState::Revoking { key: 7 },
        );
        let events = [
            SlotEvent::Written { last: false },
            SlotEvent::Written { last: true },
            SlotEvent::Revoke,
            SlotEvent::Revoked,
        ];
        #[rustfmt::skip]
        let table = [
            // State            a write          the last write   revoke                  REVOKED
            (BufferSlotState::Free, [None,            None,            None,                   None]),
            (exposed,         [Some(exposed),   Some(released),  Some(revoking),         None]),
            (released,        [Some(released),  Some(released),  Some(BufferSlotState::Free),  None]),
            (revoking,        [Some(revoking),  Some(revoking),  None,                   Some(BufferSlotState::Free)]),
        ];
        for (state, expected) in table {
            for (event, expected) in events.into_iter().zip(expected) {
                assert_eq!(state.on(event), expected, "{event:?} in {state:?}");
            }
        }
    }

    #[test]
    fn slots_are_reused_after_their_end_only() {
        let mut buffers = ExposedBuffers::default();
        let (a, b) = (buffers.take(1).unwrap(), buffers.take(2).unwrap());
        assert_ne!(a, b);
        assert_eq!(buffers.written(a, false), Some(1));
        assert_eq!(buffers.written(a, true), Some(1));
        assert_eq!(buffers.revoke(1), RevokeNeeds::Nothing);
        assert_eq!(buffers.written(a, false), None);
        assert_eq!(buffers.take(3), Some(a));
        assert_eq!(buffers.revoke(3), RevokeNeeds::Answer);
        assert_eq!(buffers.written(a, false), Some(3), "it was on its way");
        assert!(buffers.revoked(3));
        assert!(!buffers.revoked(3), "twice");
        assert!(!buffers.revoked(2), "not asked");
        assert_eq!(buffers.take(4), Some(a));
    }
}
