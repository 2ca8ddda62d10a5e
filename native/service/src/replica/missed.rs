//! Outputs of another service's list that were to be copied and had no room here: the pages that they are on are read again
//! when there may be some. So what is remembered is bounded, however many outputs these are.

use std::time::{Duration, Instant};

/// How long it waits before it reads them again; it doubles while nothing can be copied.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A place in a list: a page, and an entry of it.
pub(super) type ListPlace = (u64, usize);

/// Which pages are read again, and when.
#[derive(Debug, Default)]
pub(super) struct MissedPages {
    state: Option<MissedState>,
}

#[derive(Debug)]
struct MissedState {
    /// The first page that has a missed output, as far as was seen in this pass.
    first: Option<u64>,
    /// Where the pass goes on.
    next: ListPlace,
    /// When, and how long the last rest was.
    rest: Option<(Instant, Duration)>,
    /// Whether an output was copied since.
    has_copied: bool,
}

impl MissedPages {
    /// An output of that page had no room.
    pub(super) fn add(&mut self, page: u64, now: Instant) {
        let state = self.state.get_or_insert(MissedState {
            first: None,
            next: (page, 0),
            rest: Some((now + FIRST_REST, FIRST_REST)),
            has_copied: false,
        });
        state.first = Some(state.first.map_or(page, |first| first.min(page)));
    }

    /// Where to read again now, if anywhere before `end`, which is where the list was read to. A pass begins with the first
    /// page again when it comes to the end.
    pub(super) fn next(&mut self, end: ListPlace, now: Instant) -> Option<ListPlace> {
        let state = self.state.as_mut()?;
        if state.rest.is_some_and(|(until, _)| now < until) {
            return None;
        }
        if state.next < end {
            return Some(state.next);
        }
        match state.first.take() {
            // All of them are here, or were removed.
            None => self.state = None,
            Some(first) => {
                state.next = (first, 0);
                state.rests(now);
            }
        }
        None
    }

    /// It was read again up to there. `has_copied`: there was room for an output. `disk_refused`: the disk took none, so it is
    /// left alone for a while.
    pub(super) fn read_to(
        &mut self,
        place: ListPlace,
        (has_copied, disk_refused): (bool, bool),
        now: Instant,
    ) {
        if let Some(state) = &mut self.state {
            state.next = place;
            state.has_copied |= has_copied;
            if disk_refused {
                state.rests(now);
            }
        }
    }
}

impl MissedState {
    fn rests(&mut self, now: Instant) {
        let rest = match self.rest {
            Some((_, last)) if !self.has_copied => (2 * last).min(LONGEST_REST),
            _ => FIRST_REST,
        };
        self.rest = Some((now + rest, rest));
        self.has_copied = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads again what is due in a list of five pages without entries, at a time in seconds. Pages of `missed` have no room.
    fn pass(pages: &mut MissedPages, missed: &[u64], now: Instant) -> Vec<u64> {
        let mut read = Vec::new();
        while let Some((page, _)) = pages.next((5, 0), now) {
            read.push(page);
            if missed.contains(&page) {
                pages.add(page, now);
            }
            pages.read_to((page + 1, 0), (!missed.contains(&page), false), now);
        }
        read
    }

    #[test]
    fn pages_are_read_again_until_nothing_is_missed() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pages = MissedPages::default();
        assert_eq!(pass(&mut pages, &[], at(0)), [0; 0]);
        pages.add(3, at(0));
        pages.add(1, at(0));
        assert_eq!(pass(&mut pages, &[1, 3], at(0)), [0; 0], "it rests");
        // From where it began; what was before comes in the next pass.
        assert_eq!(pass(&mut pages, &[1, 3], at(1)), [3, 4]);
        assert_eq!(pass(&mut pages, &[3], at(2)), [1, 2, 3, 4]);
        assert_eq!(pass(&mut pages, &[3], at(3)), [3, 4]);
        assert_eq!(pass(&mut pages, &[], at(10)), [3, 4]);
        assert_eq!(pass(&mut pages, &[], at(100)), [0; 0]);
        assert!(pages.state.is_none());
    }

    #[test]
    fn a_disk_that_stays_full_is_asked_less_and_less_and_for_another_output_each_time() {
        let start = Instant::now();
        let mut pages = MissedPages::default();
        pages.add(0, start);
        let mut read = Vec::new();
        for second in 0..300 {
            let now = start + Duration::from_secs(second);
            // Each page has an output that the disk does not take.
            if let Some((page, _)) = pages.next((3, 0), now) {
                read.push((second, page));
                pages.add(page, now);
                pages.read_to((page + 1, 0), (false, true), now);
            }
        }
        let pages: Vec<u64> = read.iter().map(|(_, page)| *page).collect();
        let times: Vec<u64> = read.iter().map(|(second, _)| *second).collect();
        assert!(pages.starts_with(&[0, 1, 2, 0, 1]), "{read:?}");
        assert!(
            times.windows(2).all(|two| two[1] - two[0] <= 121),
            "{read:?}"
        );
        assert!(times.len() < 12, "{read:?}");
    }
}
