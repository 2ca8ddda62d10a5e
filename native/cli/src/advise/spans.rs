//! Times that jobs and stages took together, when some ran at once.

/// The union of intervals, in milliseconds. Its memory is bounded: long after each other, intervals
/// become a sum.
#[derive(Debug, Default, Clone)]
pub struct Union {
    spans: Vec<(i64, i64)>,
    settled: i64,
}

const MAX_SPANS: usize = 4096;

impl Union {
    pub fn add(&mut self, from: i64, to: i64) {
        if to <= from {
            return;
        }
        self.spans.push((from, to));
        if self.spans.len() >= MAX_SPANS {
            self.merge();
            if self.spans.len() >= MAX_SPANS / 2 {
                // Logs are written in the order of time, so that the oldest intervals are complete.
                let old = self.spans.drain(..MAX_SPANS / 4);
                self.settled += old.map(|(from, to)| to - from).sum::<i64>();
            }
        }
    }

    pub fn millis(&mut self) -> i64 {
        self.merge();
        self.settled + self.spans.iter().map(|(from, to)| to - from).sum::<i64>()
    }

    fn merge(&mut self) {
        self.spans.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.spans.len());
        for &(from, to) in &self.spans {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        self.spans = merged;
    }
}

/// An interval with the mean number of tasks that ran in it.
#[derive(Debug, Clone, Copy)]
pub struct Weighted {
    pub from: i64,
    pub to: i64,
    pub weight: f64,
}

/// Divides each moment among the intervals that contain it, by their weights. Returns the milliseconds
/// of each interval; their sum is the length of the union.
pub fn shares(intervals: &[Weighted]) -> Vec<f64> {
    let mut result = vec![0.0; intervals.len()];
    let mut edges: Vec<(i64, bool, usize)> = Vec::with_capacity(2 * intervals.len());
    for (i, one) in intervals.iter().enumerate() {
        if one.to > one.from {
            edges.push((one.from, true, i));
            edges.push((one.to, false, i));
        }
    }
    edges.sort_unstable();
    let mut active: Vec<usize> = Vec::new();
    let mut now = 0;
    for (at, starts, i) in edges {
        let total: f64 = active.iter().map(|&i| intervals[i].weight).sum();
        let millis = (at - now) as f64;
        for &i in &active {
            let part = if total > 0.0 {
                intervals[i].weight / total
            } else {
                1.0 / active.len() as f64
            };
            result[i] += millis * part;
        }
        now = at;
        if starts {
            active.push(i);
        } else {
            active.retain(|&other| other != i);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_to_the_union(spans in prop::collection::vec((0_i64..100, 0_i64..50), 0..20)) {
            let mut union = Union::default();
            let mut intervals = Vec::new();
            for (from, length) in spans {
                union.add(from, from + length);
                intervals.push(Weighted { from, to: from + length, weight: length as f64 });
            }
            let sum: f64 = shares(&intervals).iter().sum();
            prop_assert!((sum - union.millis() as f64).abs() < 1e-6);
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
    }
}
