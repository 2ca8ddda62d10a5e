//! Total times of jobs and stages that may run at once.

/// The union of intervals, in milliseconds. Its memory is bounded: old intervals are merged
/// into a sum.
#[derive(Debug, Default, Clone)]
pub struct Union {
    spans: Vec<(i64, i64)>,
    settled: i64,
    /// Where the settled intervals end.
    until: i64,
}

const MAX_SPANS: usize = 1024;

impl Union {
    pub fn add(&mut self, from: i64, to: i64) {
        // The settled part is already counted.
        let from = from.max(self.until);
        if to <= from {
            return;
        }
        self.spans.push((from, to));
        if self.spans.len() >= MAX_SPANS {
            self.merge();
            if self.spans.len() >= MAX_SPANS / 2 {
                // Logs are written in order of time, so the oldest intervals are complete.
                for (from, to) in self.spans.drain(..MAX_SPANS / 4) {
                    self.settled += to - from;
                    self.until = to;
                }
            }
        }
    }

    pub fn millis(&mut self) -> i64 {
        self.merge();
        self.settled + self.spans.iter().map(|(from, to)| to - from).sum::<i64>()
    }

    fn merge(&mut self) {
        self.spans.sort_unstable();
        self.spans.dedup_by(|next, last| {
            let joined = next.0 <= last.1;
            if joined {
                last.1 = last.1.max(next.1);
            }
            joined
        });
    }
}

/// An interval with the mean number of tasks that ran in it.
#[derive(Debug, Clone, Copy)]
pub struct WeightedSpan {
    pub from: i64,
    pub to: i64,
    /// In thousandths. Integers, so that ended intervals leave no rounding error.
    pub weight: u64,
}

/// Divides each moment among the intervals that contain it, by their weights. Returns the milliseconds
/// of each interval; their sum is the length of the union.
///
/// An interval's part of a moment is its weight times one unit's part. So a running sum of the unit's
/// part at each edge is enough, and no pair of intervals is compared.
pub fn shares(intervals: &[WeightedSpan]) -> Vec<f64> {
    let mut edges: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * intervals.len());
    for (i, one) in intervals.iter().enumerate() {
        if one.to > one.from {
            edges.push((one.from, true, i));
            edges.push((one.to, false, i));
        }
    }
    edges.sort_unstable();
    let (mut active, mut weight, mut now) = (0_usize, 0_u128, 0_i64);
    // Milliseconds per unit of weight so far, and per interval while all active weights are 0.
    let (mut for_unit, mut for_each) = (0.0, 0.0);
    let mut result = vec![0.0; intervals.len()];
    for (at, starts, i) in edges {
        let millis = (at - now) as f64;
        match (active, weight) {
            (0, _) => {}
            (_, 0) => for_each += millis / active as f64,
            _ => for_unit += millis / weight as f64,
        }
        now = at;
        let (Some(one), Some(share)) = (intervals.get(i), result.get_mut(i)) else {
            continue;
        };
        let so_far = one.weight as f64 * for_unit + for_each;
        if starts {
            active += 1;
            weight += u128::from(one.weight);
            *share -= so_far;
        } else {
            active -= 1;
            weight -= u128::from(one.weight);
            *share += so_far;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The expected result, computed moment by moment.
    fn slow_shares(intervals: &[WeightedSpan]) -> Vec<f64> {
        let mut result = vec![0.0; intervals.len()];
        for now in 0..150 {
            let at = |one: &WeightedSpan| one.from <= now && now < one.to;
            let active: Vec<&WeightedSpan> = intervals.iter().filter(|one| at(one)).collect();
            let total: u64 = active.iter().map(|one| one.weight).sum();
            for (share, one) in result.iter_mut().zip(intervals).filter(|(_, one)| at(one)) {
                *share += match total {
                    0 => 1.0 / active.len() as f64,
                    total => one.weight as f64 / total as f64,
                };
            }
        }
        result
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_union(
            spans in prop::collection::vec((0_i64..100, 0_i64..50, 0_u64..4), 0..20)
        ) {
            let mut union = Union::default();
            let mut intervals = Vec::new();
            for (from, length, weight) in spans {
                union.add(from, from + length);
                intervals.push(WeightedSpan { from, to: from + length, weight });
            }
            let found = shares(&intervals);
            let sum: f64 = found.iter().sum();
            prop_assert!((sum - union.millis() as f64).abs() < 1e-6);
            for (fast, slow) in found.iter().zip(slow_shares(&intervals)) {
                prop_assert!((fast - slow).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_union_of_many_intervals_is_bounded() {
        let mut union = Union::default();
        for i in 0..100_000 {
            union.add(10 * i, 10 * i + 3);
        }
        assert!(union.spans.capacity() <= 2 * MAX_SPANS);
        assert_eq!(union.millis(), 300_000);
        // Overlaps the settled part.
        union.add(0, 1_000_000);
        assert!(union.millis() <= 1_000_000);
    }
}
