//! The times at which to check requests, so that none is checked early.
//!
//! Most requests end long before their deadline, and their deadline moves whenever something
//! arrives for them. So an entry is added once and removed once, and does not move with the
//! deadline: when it is due, the owner checks the request and adds it again if its deadline is now
//! later.

use std::collections::BTreeSet;
use std::time::Instant;

/// Ids, each with the time at which to look at it.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeSet<(Instant, u64)>);

impl Deadlines {
    /// Looks at `id` at that time.
    pub(crate) fn put(&mut self, at: Instant, id: u64) {
        self.0.insert((at, id));
    }

    /// Removes an entry that was added for that time.
    pub(crate) fn remove(&mut self, at: Instant, id: u64) {
        self.0.remove(&(at, id));
    }

    /// Removes and returns the first one whose time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Option<u64> {
        let (at, _) = self.0.first()?;
        match *at <= now {
            true => self.0.pop_first().map(|(_, id)| id),
            false => None,
        }
    }

    /// Removes all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_is_due_once_at_its_time_and_in_order() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut deadlines = Deadlines::default();
        for (after, id) in [(3, 30), (1, 10), (2, 20), (1, 11)] {
            deadlines.put(start + second * after, id);
        }
        deadlines.remove(start + second * 2, 20);
        assert_eq!(deadlines.due(start), None);
        let later = start + second;
        assert_eq!(deadlines.due(later), Some(10));
        assert_eq!(deadlines.due(later), Some(11));
        assert_eq!(deadlines.due(later), None);
        assert_eq!(deadlines.due(start + second * 9), Some(30));
        assert_eq!(deadlines.due(start + second * 9), None);
    }
}
