//! Executes plans on integers and floats by the rule that their module states.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_exchange::collective::{dssync_groups, grid_shape, plan, Action, Mode, Plan};
use faro_exchange::ExchangeError;
use proptest::prelude::*;
use std::collections::HashSet;
use std::ops::AddAssign;

/// Returns the values that each rank holds after the plan.
fn execute<T: Copy + AddAssign>(plan: &Plan, mut values: Vec<Vec<T>>) -> Vec<Vec<T>> {
    for step in 0..plan.steps().len() {
        let before = values.clone();
        for (rank, mine) in values.iter_mut().enumerate() {
            for t in plan.receives(step, rank) {
                for i in t.part.range(mine.len()) {
                    let sent = before[t.from as usize][i];
                    match t.action {
                        Action::Add => mine[i] += sent,
                        Action::Replace => mine[i] = sent,
                    }
                }
            }
        }
    }
    values
}

fn arrays(ranks: usize, len: usize) -> Vec<Vec<i64>> {
    (0..ranks)
        .map(|r| {
            (0..len)
                .map(|i| (r * 7919 + i * i * 31) as i64 % 1009 - 500)
                .collect()
        })
        .collect()
}

fn sums(arrays: &[Vec<i64>], of: &[usize]) -> Vec<i64> {
    let len = arrays[0].len();
    (0..len)
        .map(|i| of.iter().map(|&r| arrays[r][i]).sum())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grid_and_full_are_exact(ranks in 1usize..90, len in 0usize..200) {
        let all: Vec<usize> = (0..ranks).collect();
        let input = arrays(ranks, len);
        let expected = sums(&input, &all);
        for mode in [Mode::Grid, Mode::Full] {
            let plan = plan(ranks, mode).unwrap();
            prop_assert!(all.iter().all(|&r| plan.divisor(r) == Some(ranks as u32)));
            for result in execute(&plan, input.clone()) {
                prop_assert_eq!(&result, &expected);
            }
        }
    }

    /// For floats whose sums are not exact, all ranks must still end with the same bits.
    #[test]
    fn all_ranks_end_with_the_same_bits(ranks in 1usize..60, len in 0usize..100) {
        let input: Vec<Vec<f32>> = (0..ranks)
            .map(|r| (0..len).map(|i| ((r * 31 + i * 17) as f32).sin() * 1e3).collect())
            .collect();
        for mode in [Mode::Grid, Mode::Full] {
            let results = execute(&plan(ranks, mode).unwrap(), input.clone());
            let bits = |v: &Vec<f32>| v.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
            prop_assert!(results.iter().all(|r| bits(r) == bits(&results[0])));
        }
    }

    #[test]
    fn grid_needs_two_rounds_of_small_groups(ranks in 2usize..300) {
        let plan = plan(ranks, Mode::Grid).unwrap();
        let (rows, columns) = grid_shape(ranks);
        prop_assert!(plan.steps().len() <= 6);
        for step in 0..plan.steps().len() {
            for rank in 0..ranks {
                prop_assert!(plan.receives(step, rank).count() < rows.max(columns).max(2));
            }
        }
        prop_assert!(rows * columns <= ranks && ranks - rows * columns < rows.max(2));
    }

    #[test]
    fn dssync_groups_are_disjoint_and_shuffled(
        ranks in 12usize..200, group in 2usize..6, epoch: u64, round in 0u64..1000,
    ) {
        let groups = dssync_groups(ranks, group, epoch, round).unwrap();
        let members: Vec<usize> = groups.iter().flatten().copied().collect();
        prop_assert_eq!(members.len(), ranks);
        prop_assert_eq!(members.into_iter().collect::<HashSet<_>>().len(), ranks);
        prop_assert!(groups.iter().all(|g| g.len() >= group && g.len() < 2 * group));
        prop_assert_eq!(&groups, &dssync_groups(ranks, group, epoch, round).unwrap());
        // Two of 100 rounds are equal only by chance (12 ranks form two groups in 462 ways).
        let distinct: HashSet<_> = (0..100)
            .map(|r| {
                let mut g = dssync_groups(ranks, group, epoch, round + r).unwrap();
                g.sort();
                g
            })
            .collect();
        prop_assert!(distinct.len() >= 60, "{}", distinct.len());
    }

    /// Each member ends with its group's sum, so the mean over all members is kept.
    #[test]
    fn dssync_is_the_group_mean(ranks in 2usize..60, len in 1usize..80, round in 0u64..50) {
        let mode = Mode::DsSync { group: 2, epoch: 9, round };
        let plan = plan(ranks, mode).unwrap();
        let input = arrays(ranks, len);
        let results = execute(&plan, input.clone());
        for group in dssync_groups(ranks, 2, 9, round).unwrap() {
            let expected = sums(&input, &group);
            for &rank in &group {
                prop_assert_eq!(&results[rank], &expected);
                prop_assert_eq!(plan.divisor(rank), Some(group.len() as u32));
            }
        }
    }

    /// Sends and receives are two views of the same transfers; no rank sends to itself.
    #[test]
    fn transfers_are_seen_from_both_ends(ranks in 1usize..50) {
        for mode in [Mode::Grid, Mode::Full, Mode::DsSync { group: ranks.max(2) / 2 + 1, epoch: 0, round: 0 }] {
            if matches!(mode, Mode::DsSync { group, .. } if group > ranks) { continue; }
            let plan = plan(ranks, mode).unwrap();
            for (s, step) in plan.steps().iter().enumerate() {
                let sent: usize = (0..ranks).map(|r| plan.sends(s, r).count()).sum();
                let received: usize = (0..ranks).map(|r| plan.receives(s, r).count()).sum();
                prop_assert_eq!((sent, received), (step.transfers.len(), step.transfers.len()));
                prop_assert!(step.transfers.iter().all(|t| t.from != t.to));
            }
        }
    }
}

#[test]
fn bytes_sent_are_near_the_optimum() {
    // A group and the ring send 2(g-1)/g of the array; a grid's two rounds send about twice that.
    let sent = |plan: &Plan, len: usize| -> usize {
        (0..plan.steps().len())
            .flat_map(|s| plan.sends(s, 5))
            .map(|t| t.part.range(len).len())
            .sum()
    };
    assert_eq!(sent(&plan(16, Mode::Full).unwrap(), 1600), 3000);
    assert_eq!(sent(&plan(16, Mode::Grid).unwrap(), 1600), 4800);
    let dssync = Mode::DsSync {
        group: 4,
        epoch: 0,
        round: 0,
    };
    assert_eq!(sent(&plan(16, dssync).unwrap(), 1600), 2400);
}

#[test]
fn dssync_mixes_all_values() {
    // One rank holds 1, all others 0: after some rounds every rank is near the mean.
    let mut values = vec![vec![0.0f64]; 36];
    values[0][0] = 36.0;
    for round in 0..12 {
        let mode = Mode::DsSync {
            group: 6,
            epoch: 4,
            round,
        };
        let plan = plan(36, mode).unwrap();
        values = execute(&plan, values);
        for (rank, v) in values.iter_mut().enumerate() {
            v[0] /= f64::from(plan.divisor(rank).unwrap());
        }
    }
    assert!((values.iter().map(|v| v[0]).sum::<f64>() - 36.0).abs() < 1e-9);
    assert!(
        values.iter().all(|v| (v[0] - 1.0).abs() < 1e-3),
        "{values:?}"
    );
}

#[test]
fn bad_sizes_are_named() {
    assert_eq!(plan(0, Mode::Full).unwrap_err(), ExchangeError::BadRanks(0));
    let mode = Mode::DsSync {
        group: 9,
        epoch: 0,
        round: 0,
    };
    assert_eq!(
        plan(8, mode).unwrap_err(),
        ExchangeError::BadGroup { group: 9, ranks: 8 }
    );
    assert!(plan(1, Mode::Grid).unwrap().steps().is_empty());
    assert!(plan(1, Mode::Full).unwrap().steps().is_empty());
    assert!(plan(
        1,
        Mode::DsSync {
            group: 2,
            epoch: 0,
            round: 0
        }
    )
    .unwrap()
    .steps()
    .is_empty());
}
