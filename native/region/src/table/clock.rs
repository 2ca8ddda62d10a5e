//! The order in which chunks are evicted.
//!
//! Eviction is CLOCK (Corbató 1968): a hand goes round the slots, passes over those that were used
//! since it last came by, and takes the first that was not. It stays where it stopped. One eviction
//! checks at most `SCAN` slots that it could take, so that the time under the lock does not grow
//! with the number of slots: if all of them were used, it takes the first.

use super::slot::SlotEntry;
use super::Slot;

/// Maximum number of evictable slots that one eviction checks. It is enough to find one of the less
/// used ones, and takes well below a microsecond.
pub(super) const SCAN: usize = 64;

/// The hand that goes round the slots.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The slot that the next eviction checks first.
    pub(super) hand: Slot,
}

impl Clock {
    /// Returns the slot whose chunk is evicted next, and moves the hand behind it; `None` if no
    /// slot is evictable.
    pub(super) fn victim(&mut self, slots: &mut [SlotEntry]) -> Option<Slot> {
        let mut first_used = None;
        let mut seen = 0;
        for _ in 0..slots.len() {
            let slot = self.hand;
            self.hand = (self.hand + 1) % slots.len();
            let entry = &mut slots[slot];
            if !entry.is_evictable() {
                continue;
            }
            if !entry.referenced {
                return Some(slot);
            }
            entry.referenced = false;
            first_used = first_used.or(Some(slot));
            seen += 1;
            if seen == SCAN {
                break;
            }
        }
        first_used
    }

    /// Returns up to `max` evictable slots that `may` accepts, in the order of the hand, those not
    /// used since it came by before the rest. The hand stays where it is.
    pub(super) fn least_used(
        &self,
        slots: &[SlotEntry],
        max: usize,
        may: impl Fn(Slot) -> bool,
    ) -> Vec<Slot> {
        let count = slots.len();
        let (mut unused, mut used) = (Vec::new(), Vec::new());
        for step in 0..count {
            if unused.len() == max {
                break;
            }
            let slot = (self.hand + step) % count;
            let entry = &slots[slot];
            if entry.is_evictable() && may(slot) {
                let list = if entry.referenced {
                    &mut used
                } else {
                    &mut unused
                };
                list.push(slot);
            }
        }
        let missing = max - unused.len();
        unused.extend(used.into_iter().take(missing));
        unused
    }
}
