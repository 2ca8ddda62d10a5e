//! What a peer exposed to us, and what we exposed to it.

use super::frames::{Expose, SLOTS};
use crate::stream::exposure::ByKey;
use crate::RemoteRange;
use faro_wire::WireError;

/// Memory of the peer that we may reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) address: u64,
    pub(super) rkey: u32,
    length: u32,
    /// What the immediate of a write calls it.
    pub(super) slot: u16,
    writable: bool,
    /// Operations posted on it that have not completed.
    in_flight: u32,
    /// Nothing is posted on it any more.
    over: bool,
    /// The peer waits to hear that nothing is on its way there.
    asked: bool,
}

/// All of one peer's.
#[derive(Default)]
pub(super) struct Grants(ByKey<Grant>);

impl Grants {
    /// # Errors
    /// A key that is known already, or more than a slot table holds.
    pub(super) fn insert(&mut self, expose: &Expose) -> Result<(), WireError> {
        let wrong = |what, got| Err(WireError::BadValue { what, got });
        if self.0.len() >= SLOTS {
            return wrong("number of exposures", self.0.len() as u64);
        }
        if usize::from(expose.slot.get()) >= SLOTS {
            return wrong("slot of EXPOSE", u64::from(expose.slot.get()));
        }
        let grant = Grant {
            address: expose.address.get(),
            rkey: expose.rkey.get(),
            length: expose.length.get(),
            slot: expose.slot.get(),
            writable: expose.writable != 0,
            in_flight: 0,
            over: false,
            asked: false,
        };
        match self.0.insert(expose.key.get(), grant) {
            None => Ok(()),
            Some(_) => wrong("key of EXPOSE (in use)", expose.key.get()),
        }
    }

    /// The grant that covers all of `range`, for that kind of use.
    pub(super) fn covers(&self, range: &RemoteRange, writes: bool) -> Option<Grant> {
        let grant = self.0.get(&range.key)?;
        let end = range.offset.checked_add(u64::from(range.length))?;
        let fits = end <= u64::from(grant.length) && grant.writable == writes && !grant.over;
        fits.then_some(*grant)
    }

    /// An operation on it was posted; `last`: no other will be.
    pub(super) fn posted(&mut self, key: u64, last: bool) {
        if let Some(grant) = self.0.get_mut(&key) {
            grant.in_flight += 1;
            grant.over |= last;
        }
    }

    /// An operation on it completed. True: the peer waits to hear that it was the last.
    pub(super) fn completed(&mut self, key: u64) -> bool {
        let Some(grant) = self.0.get_mut(&key) else {
            return false;
        };
        grant.in_flight -= 1;
        if grant.in_flight > 0 || !grant.over {
            return false;
        }
        let asked = grant.asked;
        self.0.remove(&key);
        asked
    }

    /// The peer wants it back. True: nothing is on its way there.
    pub(super) fn revoke(&mut self, key: u64) -> bool {
        match self.0.get_mut(&key) {
            Some(grant) if grant.in_flight > 0 => {
                (grant.over, grant.asked) = (true, true);
                false
            }
            _ => {
                self.0.remove(&key);
                true
            }
        }
    }
}

/// A slot of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    key: u64,
    /// The peer wrote into it for the last time.
    let_go: bool,
}

/// The names that the peer's immediates have for our exposures.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Option<Slot>>,
    free: Vec<u16>,
    by_key: ByKey<u16>,
}

impl Slots {
    pub(super) fn has_room(&self) -> bool {
        self.by_key.len() < SLOTS
    }

    /// A slot for `key`; `None` if all are taken.
    pub(super) fn take(&mut self, key: u64) -> Option<u16> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < SLOTS => {
                self.slots.push(None);
                (self.slots.len() - 1) as u16
            }
            None => return None,
        };
        self.slots[usize::from(slot)] = Some(Slot { key, let_go: false });
        self.by_key.insert(key, slot);
        Some(slot)
    }

    /// A write into that slot came: its key.
    pub(super) fn written(&mut self, slot: u16, last: bool) -> Option<u64> {
        let slot = self.slots.get_mut(usize::from(slot))?.as_mut()?;
        slot.let_go |= last;
        Some(slot.key)
    }

    /// Whether the peer will not write there any more.
    pub(super) fn was_let_go(&self, key: u64) -> bool {
        let slot = self.by_key.get(&key).map(|slot| usize::from(*slot));
        slot.and_then(|slot| self.slots[slot])
            .is_some_and(|slot| slot.let_go)
    }

    /// The exposure ended.
    pub(super) fn give_back(&mut self, key: u64) {
        if let Some(slot) = self.by_key.remove(&key) {
            self.slots[usize::from(slot)] = None;
            self.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expose(key: u64, writable: bool) -> Expose {
        Expose {
            key: key.into(),
            address: 0x1000.into(),
            rkey: 7.into(),
            length: 4096.into(),
            slot: 3.into(),
            writable: u8::from(writable),
            reserved: 0,
            reserved2: 0.into(),
        }
    }

    fn range(key: u64, offset: u64, length: u32) -> RemoteRange {
        RemoteRange {
            key,
            offset,
            length,
        }
    }

    #[test]
    fn a_grant_covers_what_was_announced_and_no_more() {
        let mut grants = Grants::default();
        grants.insert(&expose(9, true)).unwrap();
        assert!(grants.covers(&range(9, 0, 4096), true).is_some());
        assert!(grants.covers(&range(9, 4096, 0), true).is_some());
        for bad in [
            range(8, 0, 1),
            range(9, 1, 4096),
            range(9, u64::MAX, 1),
            range(9, 1 << 32, 0),
        ] {
            assert!(grants.covers(&bad, true).is_none(), "{bad:?}");
        }
        assert!(grants.covers(&range(9, 0, 1), false).is_none(), "a read");
        assert!(grants.insert(&expose(9, true)).is_err(), "twice");
    }

    #[test]
    fn what_is_on_its_way_holds_a_revocation_up() {
        let mut grants = Grants::default();
        grants.insert(&expose(9, true)).unwrap();
        grants.posted(9, false);
        grants.posted(9, false);
        assert!(!grants.revoke(9));
        assert!(grants.covers(&range(9, 0, 1), true).is_none());
        assert!(!grants.completed(9));
        assert!(grants.completed(9));
        assert!(grants.revoke(9), "unknown: nothing is on its way");
    }

    #[test]
    fn a_last_write_ends_a_grant_without_a_word() {
        let mut grants = Grants::default();
        grants.insert(&expose(9, true)).unwrap();
        grants.posted(9, true);
        assert!(grants.covers(&range(9, 0, 1), true).is_none());
        assert!(!grants.completed(9), "nobody asked");
        grants.insert(&expose(9, true)).unwrap();
        grants.posted(9, true);
        assert!(!grants.revoke(9));
        assert!(
            grants.completed(9),
            "the question came before the completion"
        );
    }

    #[test]
    fn slots_are_reused_after_their_end_only() {
        let mut slots = Slots::default();
        let (a, b) = (slots.take(1).unwrap(), slots.take(2).unwrap());
        assert_ne!(a, b);
        assert_eq!(slots.written(a, false), Some(1));
        assert!(!slots.was_let_go(1));
        assert_eq!(slots.written(a, true), Some(1));
        assert!(slots.was_let_go(1));
        slots.give_back(1);
        assert_eq!(slots.written(a, false), None);
        assert_eq!(slots.take(3), Some(a));
        assert!(!slots.was_let_go(3));
    }
}
