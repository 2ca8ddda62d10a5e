//! Memory of the peer that this side may reach, and whether the peer wants it back.
//!
//! ```text
//!             EXPOSE                    last write posted
//!   (none) ----------> Open{n} ------------------------------> Last{n}
//!                        |                                        |
//!                        | REVOKE, n > 0                          | REVOKE
//!                        +---------------> Revoking{n} <----------+
//!   n: operations posted that have not completed. An access ends when REVOKE finds n = 0, or when n
//!   falls to 0 in `Last` or `PendingRevocation`. The peer is sent REVOKED in every case but `Last`.
//! ```

use super::frames::{Expose, SLOTS};
use crate::session::exposure::ByKey;
use crate::RemoteRange;
use faro_wire::WireError;
use std::collections::hash_map::Entry;

/// A peer's memory, as its announcement describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnnouncedBuffer {
    pub(super) address: u64,
    pub(super) rkey: u32,
    length: u32,
    /// Names the exposure in the immediate of a write.
    pub(super) slot: u16,
    writable: bool,
}

/// See the module's diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessState {
    /// Operations may be posted.
    OpenConnection { in_flight: u32 },
    /// The last write was posted; the peer knows that no other comes.
    Last { in_flight: u32 },
    /// The peer waits for REVOKED; nothing more is posted.
    Revoking { in_flight: u32 },
}

/// An event in the life of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessEvent {
    /// An operation was posted. `last`: no other follows.
    Posted { last: bool },
    /// An operation completed.
    Completed,
    /// REVOKE came.
    Revoke,
}

/// The action that follows from an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterEvent {
    /// The access continues in this state.
    Is(AccessState),
    /// The access is over. `tell`: the peer waits for REVOKED.
    Over { tell: bool },
}

/// The event does not fit the state: an error of this code, which changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ImpossibleEvent;

impl AccessState {
    fn on(self, event: AccessEvent) -> Result<AfterEvent, ImpossibleEvent> {
        use AccessEvent::{Completed, Posted, Revoke};
        use AccessState::{Last, OpenConnection, Revoking};
        match (self, event) {
            (OpenConnection { in_flight: n }, Posted { last: false }) => {
                Ok(AfterEvent::Is(OpenConnection { in_flight: n + 1 }))
            }
            (OpenConnection { in_flight: n }, Posted { last: true }) => {
                Ok(AfterEvent::Is(Last { in_flight: n + 1 }))
            }
            (Last { .. } | Revoking { .. }, Posted { .. }) => Err(ImpossibleEvent),

            (
                OpenConnection { in_flight: 0 } | Last { in_flight: 0 } | Revoking { in_flight: 0 },
                Completed,
            ) => Err(ImpossibleEvent),
            (OpenConnection { in_flight: n }, Completed) => {
                Ok(AfterEvent::Is(OpenConnection { in_flight: n - 1 }))
            }
            (Last { in_flight: 1 }, Completed) => Ok(AfterEvent::Over { tell: false }),
            (Last { in_flight: n }, Completed) => Ok(AfterEvent::Is(Last { in_flight: n - 1 })),
            (Revoking { in_flight: 1 }, Completed) => Ok(AfterEvent::Over { tell: true }),
            (Revoking { in_flight: n }, Completed) => {
                Ok(AfterEvent::Is(Revoking { in_flight: n - 1 }))
            }

            (OpenConnection { in_flight: 0 } | Last { in_flight: 0 }, Revoke) => {
                Ok(AfterEvent::Over { tell: true })
            }
            (OpenConnection { in_flight } | Last { in_flight }, Revoke) => {
                Ok(AfterEvent::Is(Revoking { in_flight }))
            }
            // Said twice; the first one will be answered.
            (Revoking { in_flight }, Revoke) => Ok(AfterEvent::Is(Revoking { in_flight })),
        }
    }
}

/// All memory of one peer that this side may reach, by the key of its exposure.
#[derive(Default)]
pub(super) struct RemoteAccess(ByKey<(AnnouncedBuffer, AccessState)>);

impl RemoteAccess {
    /// EXPOSE came.
    ///
    /// # Errors
    /// `BadValue`: a key that is in use, a slot out of range, or more exposures than slots.
    pub(super) fn announced(&mut self, expose: &Expose) -> Result<(), WireError> {
        let wrong = |what, got| Err(WireError::BadValue { what, got });
        if self.0.len() >= SLOTS {
            return wrong("number of exposures", self.0.len() as u64);
        }
        if usize::from(expose.slot.get()) >= SLOTS {
            return wrong("slot of EXPOSE", u64::from(expose.slot.get()));
        }
        let buffer = AnnouncedBuffer {
            address: expose.address.get(),
            rkey: expose.rkey.get(),
            length: expose.length.get(),
            slot: expose.slot.get(),
            writable: expose.writable != 0,
        };
        match self.0.entry(expose.key.get()) {
            Entry::Vacant(entry) => {
                entry.insert((buffer, AccessState::OpenConnection { in_flight: 0 }));
                Ok(())
            }
            Entry::Occupied(_) => wrong("key of EXPOSE (in use)", expose.key.get()),
        }
    }

    /// Returns the buffer that covers all of `range`, if an operation of that kind may be posted on
    /// it.
    pub(super) fn covers(&self, range: &RemoteRange, writes: bool) -> Option<AnnouncedBuffer> {
        let (buffer, state) = self.0.get(&range.key)?;
        let end = range.offset.checked_add(u64::from(range.length))?;
        let fits = end <= u64::from(buffer.length) && buffer.writable == writes;
        (fits && matches!(state, AccessState::OpenConnection { .. })).then_some(*buffer)
    }

    /// Notes that an operation was posted on the buffer that [`Self::covers`] returned. `last` says
    /// that no other follows.
    pub(super) fn posted(&mut self, key: u64, last: bool) {
        self.apply(key, AccessEvent::Posted { last });
    }

    /// Notes that an operation completed. Returns whether the peer waits for REVOKED.
    pub(super) fn completed(&mut self, key: u64) -> bool {
        self.apply(key, AccessEvent::Completed) == Some(true)
    }

    /// Handles REVOKE. Returns whether to send REVOKED now, because no operation is in flight (or
    /// the key is unknown).
    pub(super) fn revoke(&mut self, key: u64) -> bool {
        !self.0.contains_key(&key) || self.apply(key, AccessEvent::Revoke) == Some(true)
    }

    /// Applies an event. If the access is over, returns whether the peer waits for REVOKED.
    fn apply(&mut self, key: u64, event: AccessEvent) -> Option<bool> {
        let Entry::Occupied(mut entry) = self.0.entry(key) else {
            return None;
        };
        let state = entry.get().1;
        match state.on(event) {
            Ok(AfterEvent::Is(next)) => {
                entry.get_mut().1 = next;
                None
            }
            Ok(AfterEvent::Over { tell }) => {
                entry.remove();
                Some(tell)
            }
            Err(ImpossibleEvent) => {
                debug_assert!(false, "{event:?} in {state:?}");
                log::error!("verbs: {event:?} on an access that is {state:?}; ignored");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AccessEvent::{Completed, Posted, Revoke};
    use super::AccessState::{Last, OpenConnection, Revoking};
    use super::*;

    /// Applies every event in every state, with none, one and several operations in flight.
    #[test]
    fn every_event_in_every_state() {
        const SILENT: Result<AfterEvent, ImpossibleEvent> = Ok(AfterEvent::Over { tell: false });
        const TELL: Result<AfterEvent, ImpossibleEvent> = Ok(AfterEvent::Over { tell: true });
        const NEVER: Result<AfterEvent, ImpossibleEvent> = Err(ImpossibleEvent);
        let open = |in_flight| OpenConnection { in_flight };
        let last = |in_flight| Last { in_flight };
        let revoking = |in_flight| Revoking { in_flight };
        let is = |state| Ok(AfterEvent::Is(state));
        let (more, final_one) = (Posted { last: false }, Posted { last: true });
        let events = [more, final_one, Completed, Revoke];
        #[rustfmt::skip]
        let table = [
            // State        a write or read   the last write   a completion      REVOKE
            (open(0),     [is(open(1)),      is(last(1)),     NEVER,            TELL]),
            (open(1),     [is(open(2)),      is(last(2)),     is(open(0)),      is(revoking(1))]),
            (open(3),     [is(open(4)),      is(last(4)),     is(open(2)),      is(revoking(3))]),
            (last(0),     [NEVER,            NEVER,           NEVER,            TELL]),
            (last(1),     [NEVER,            NEVER,           SILENT,           is(revoking(1))]),
            (last(3),     [NEVER,            NEVER,           is(last(2)),      is(revoking(3))]),
            (revoking(0), [NEVER,            NEVER,           NEVER,            is(revoking(0))]),
            (revoking(1), [NEVER,            NEVER,           TELL,             is(revoking(1))]),
            (revoking(3), [NEVER,            NEVER,           is(revoking(2)),  is(revoking(3))]),
        ];
        for (state, expected) in table {
            for (event, expected) in events.into_iter().zip(expected) {
                assert_eq!(state.on(event), expected, "{event:?} in {state:?}");
            }
        }
    }

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
    fn an_access_covers_what_was_announced_and_no_more() {
        let mut access = RemoteAccess::default();
        access.announced(&expose(9, true)).unwrap();
        assert!(access.covers(&range(9, 0, 4096), true).is_some());
        assert!(access.covers(&range(9, 4096, 0), true).is_some());
        for bad in [
            range(8, 0, 1),
            range(9, 1, 4096),
            range(9, u64::MAX, 1),
            range(9, 1 << 32, 0),
        ] {
            assert!(access.covers(&bad, true).is_none(), "{bad:?}");
        }
        assert!(access.covers(&range(9, 0, 1), false).is_none(), "a read");
        assert!(access.announced(&expose(9, true)).is_err(), "twice");
        assert!(access.covers(&range(9, 0, 1), true).is_some(), "unharmed");
    }

    #[test]
    fn operations_in_flight_hold_a_revocation_up() {
        let mut access = RemoteAccess::default();
        access.announced(&expose(9, true)).unwrap();
        access.posted(9, false);
        access.posted(9, false);
        assert!(!access.revoke(9));
        assert!(access.covers(&range(9, 0, 1), true).is_none());
        assert!(!access.completed(9));
        assert!(access.completed(9));
        assert!(access.revoke(9), "unknown: nothing is on its way");
    }

    #[test]
    fn a_last_write_ends_an_access_without_a_frame() {
        let mut access = RemoteAccess::default();
        access.announced(&expose(9, true)).unwrap();
        access.posted(9, true);
        assert!(access.covers(&range(9, 0, 1), true).is_none());
        assert!(!access.completed(9), "no REVOKE came");
        access.announced(&expose(9, true)).unwrap();
        access.posted(9, true);
        assert!(!access.revoke(9));
        assert!(access.completed(9), "REVOKE came before the completion");
    }
}
