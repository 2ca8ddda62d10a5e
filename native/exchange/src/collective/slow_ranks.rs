//! The rule by which a team of mode `dssync` senses a bottleneck.
//!
//! A rank behind a slow link delays the groups that it is in, and through their members all others. So
//! it is kept apart: it goes on alone and takes part in the mixing rounds only, until its link is fast
//! again. The rule uses nothing but values that all ranks have, so all form the same groups:
//!
//! 1. A rank measures the *time of a round*: from when the last of its group has come until its own part
//!    is done. Neither what it computes between rounds counts nor its waiting for others, which groups
//!    cannot change; what counts is what the links take.
//! 2. It keeps the **shortest** time of the rounds since the last look in which it was in a group of two
//!    or more. A fast rank meets slow ones in some of them; a slow one is slow in all.
//! 3. After [`LOOK_ROUNDS`] rounds of mode `dssync`, before the next one, there is a *look*, a round of
//!    its own: an exact sum over all ranks (mode `grid`) of an array with one double for each, in which
//!    each fills in its own shortest time in seconds, and 0 elsewhere. All ranks have the same bits after
//!    it. It counts as a round, so the number of the next one is higher by one.
//! 4. The ranks whose time is more than [`SLOW`] times the median are apart until the next look
//!    ([`slow_ranks`]), so at most half of them. A rank without a time (0) is not slow.
//! 5. A rank that is apart is in a group only in the mixing rounds
//!    ([`dssync_groups_by_place`](super::dssync_groups_by_place)), in which its time is measured then.

/// The rounds between two looks. With one of [`MIXING_ROUNDS`](super::MIXING_ROUNDS) among them, a rank
/// that is apart is measured again.
pub const LOOK_ROUNDS: u64 = 8;

/// How many times the median a slow rank's time is.
pub const SLOW: f64 = 2.0;

/// Returns which ranks are slow, by the shortest time of each. The median is that of the times above 0,
/// the lower one of two.
pub fn slow_ranks(times: &[f64]) -> Vec<bool> {
    let mut known: Vec<f64> = times.iter().copied().filter(|time| *time > 0.0).collect();
    known.sort_unstable_by(f64::total_cmp);
    let median = known.get(known.len().saturating_sub(1) / 2).copied();
    let bound = median.map_or(f64::INFINITY, |median| SLOW * median);
    times.iter().map(|time| *time > bound).collect()
}

/// One rank's side of the rule: its times, and when the next look is due.
#[derive(Debug, Clone, Default)]
pub struct Stopwatch {
    /// Rounds since the last look.
    rounds: u64,
    /// The shortest of their times; 0 before the first.
    shortest: f64,
}

impl Stopwatch {
    /// Notes a round of mode `dssync` that took `seconds` in a group of `members`.
    pub fn note(&mut self, seconds: f64, members: u32) {
        self.rounds += 1;
        // A time of 0 stands for none.
        let seconds = seconds.max(f64::MIN_POSITIVE);
        if members > 1 && (self.shortest == 0.0 || seconds < self.shortest) {
            self.shortest = seconds;
        }
    }

    /// Returns the shortest time if a look is due, and begins anew.
    pub fn due(&mut self) -> Option<f64> {
        (self.rounds >= LOOK_ROUNDS).then(|| std::mem::take(self).shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_more_than_twice_the_median() {
        assert_eq!(slow_ranks(&[]), [false; 0]);
        assert_eq!(slow_ranks(&[0.0, 0.0]), [false; 2]);
        assert_eq!(slow_ranks(&[1.0, 9.0]), [false, true], "the lower of two");
        let times = [1.0, 0.0, 1.2, 2.0, 2.5, 0.9];
        assert_eq!(
            slow_ranks(&times),
            [false, false, false, false, true, false]
        );
        let half = [1.0, 1.0, 1.0, 9.0, 9.0, 9.0];
        assert_eq!(slow_ranks(&half).iter().filter(|slow| **slow).count(), 3);
        let most = [1.0, 9.0, 9.0, 9.0];
        assert_eq!(slow_ranks(&most), [false; 4]);
    }

    #[test]
    fn a_look_is_due_after_its_rounds_with_the_shortest_time_in_a_group() {
        let mut watch = Stopwatch::default();
        for round in 0..LOOK_ROUNDS {
            assert_eq!(watch.due(), None, "{round}");
            let (seconds, members) = [(0.1, 1), (3.0, 2), (2.0, 2), (4.0, 3)][round as usize % 4];
            watch.note(seconds, members);
        }
        assert_eq!(watch.due(), Some(2.0));
        assert_eq!(watch.due(), None);
        for _ in 0..LOOK_ROUNDS {
            watch.note(1.0, 1);
        }
        assert_eq!(watch.due(), Some(0.0), "it was alone");
    }
}
