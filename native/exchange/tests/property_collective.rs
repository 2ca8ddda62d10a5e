//! Executes plans on integers and floats by the rule that their module states.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_exchange::collective::{
    dssync_groups, dssync_groups_by_place, grid_shape, plan, plan_by_place, slow_ranks, Action,
    Mode, Plan, RankPlaces, Stopwatch, MIXING_ROUNDS,
};
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

/// How often each rank's value is in a sum.
#[derive(Clone, Copy, PartialEq)]
struct Sources([u8; 64]);

impl Sources {
    fn only(rank: usize) -> Self {
        let mut counts = [0; 64];
        counts[rank] = 1;
        Sources(counts)
    }

    fn all(ranks: usize) -> Self {
        let mut counts = [0; 64];
        counts[..ranks].fill(1);
        Sources(counts)
    }
}

impl AddAssign for Sources {
    fn add_assign(&mut self, other: Self) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }
}

/// Returns the number of elements of an array of `len` that a rank sends.
fn sent(plan: &Plan, rank: usize, len: usize) -> usize {
    (0..plan.steps().len())
        .flat_map(|step| plan.sends(step, rank))
        .map(|t| t.part.range(len).len())
        .sum()
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
    fn a_grid_has_four_steps_and_few_partners(ranks in 2usize..300) {
        let plan = plan(ranks, Mode::Grid).unwrap();
        let (rows, columns) = grid_shape(ranks);
        let beyond = ranks - rows * columns;
        prop_assert!(beyond < rows);
        prop_assert_eq!(plan.steps().len(), if rows == 1 { 2 } else { 4 });
        for rank in 0..ranks {
            let partners: HashSet<u32> = (0..plan.steps().len())
                .flat_map(|step| plan.sends(step, rank).map(|t| t.to).chain(plan.receives(step, rank).map(|t| t.from)))
                .collect();
            let row = if rank < rows * columns { rank / columns } else { rank - rows * columns };
            let most = if rank >= rows * columns { columns } else { columns - 1 + rows - 1 + usize::from(row < beyond) };
            prop_assert_eq!(partners.len(), most, "rank {} of {}", rank, ranks);
        }
    }

    /// No exact all-reduce sends fewer elements in all, and no member of a whole grid fewer.
    #[test]
    fn a_grid_sends_as_few_elements_as_possible(ranks in 2usize..300, len in 1usize..3_000) {
        let plan = plan(ranks, Mode::Grid).unwrap();
        let (rows, columns) = grid_shape(ranks);
        let sent: Vec<usize> = (0..ranks).map(|rank| sent(&plan, rank, len)).collect();
        prop_assert_eq!(sent.iter().sum::<usize>(), 2 * (ranks - 1) * len);
        // Parts differ by an element, in each of at most 2(k + m) transfers.
        let inside = (rows * columns) as f64;
        let bound = 2.0 * (inside - 1.0) / inside * len as f64 + 2.0 * (rows + columns) as f64;
        let beyond = ranks - rows * columns;
        let more = if beyond > 0 { len.div_ceil(columns) as f64 } else { 0.0 };
        prop_assert!(sent.iter().all(|sent| *sent as f64 <= bound + more), "{:?} of {}", sent, len);
    }

    /// The result of each rank has each rank's elements once, wherever they were added.
    #[test]
    fn each_element_is_summed_once_for_each_rank(ranks in 1usize..65, len in 1usize..80) {
        for mode in [Mode::Grid, Mode::Full] {
            let input = (0..ranks).map(|rank| vec![Sources::only(rank); len]).collect();
            let expected = Sources::all(ranks);
            for result in execute(&plan(ranks, mode).unwrap(), input) {
                prop_assert!(result.iter().all(|sources| *sources == expected));
            }
        }
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

    /// Groups cover the ranks once; outside mixing rounds they stay within racks that are large enough, and
    /// ranks that are apart are alone.
    #[test]
    fn groups_by_place_stay_within_racks(
        racks in prop::collection::vec((0u8..4, prop::bool::weighted(0.1)), 2..60),
        group in 2usize..6, epoch: u64, round in 0u64..100,
    ) {
        let ranks = racks.len();
        let group = group.min(ranks);
        let mut places = RankPlaces::of_racks(&racks.iter().map(|(r, _)| format!("r{r}")).collect::<Vec<_>>());
        places.set_apart(racks.iter().map(|(_, apart)| *apart).collect());
        let groups = dssync_groups_by_place(&places, group, epoch, round).unwrap();
        let members: HashSet<usize> = groups.iter().flatten().copied().collect();
        prop_assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), ranks);
        prop_assert_eq!(members.len(), ranks);
        if round % MIXING_ROUNDS == MIXING_ROUNDS - 1 {
            prop_assert_eq!(groups, dssync_groups(ranks, group, epoch, round).unwrap());
            return Ok(());
        }
        let large = |rack: u8| racks.iter().filter(|(r, apart)| *r == rack && !apart).count() >= group;
        let all_large = (0..4).filter(|r| racks.iter().any(|(rack, apart)| rack == r && !apart)).all(large);
        for of in &groups {
            if of.iter().any(|rank| racks[*rank].1) {
                prop_assert_eq!(of.len(), 1);
            } else if all_large {
                prop_assert!(of.len() >= group);
                prop_assert!(of.iter().all(|rank| racks[*rank].0 == racks[of[0]].0));
            }
        }
    }

    /// In one rack with nobody apart, places change nothing.
    #[test]
    fn groups_of_one_rack_are_those_of_all(ranks in 2usize..60, epoch: u64, round in 0u64..100) {
        let places = RankPlaces::of_racks(&vec!["r"; ranks]);
        prop_assert_eq!(
            dssync_groups_by_place(&places, 2, epoch, round),
            dssync_groups(ranks, 2, epoch, round)
        );
    }

    /// Whatever the sizes of the groups, the mean over all ranks stays.
    #[test]
    fn groups_of_any_sizes_keep_the_mean(ranks in 2usize..40, group in 2usize..6, round in 0u64..20) {
        let mut places = RankPlaces::of_racks(&(0..ranks).map(|r| (r % 3).to_string()).collect::<Vec<_>>());
        places.set_apart((0..ranks).map(|r| r % 7 == 6).collect());
        let mode = Mode::DsSync { group: group.min(ranks), epoch: 3, round };
        let plan = plan_by_place(&places, mode).unwrap();
        let input: Vec<Vec<f64>> = (0..ranks).map(|r| vec![(r * r) as f64]).collect();
        let before: f64 = input.iter().map(|v| v[0]).sum();
        let results = execute(&plan, input);
        let after: f64 = results.iter().enumerate()
            .map(|(rank, v)| v[0] / f64::from(plan.divisor(rank).unwrap()))
            .sum();
        prop_assert!((after - before).abs() < 1e-6 * before.max(1.0), "{before} became {after}");
    }

    /// Grid and ring give the same result by place, and the ring passes each border of racks once.
    #[test]
    fn exact_modes_take_ranks_rack_by_rack(racks in prop::collection::vec(0u8..3, 2..50), len in 1usize..60) {
        let ranks = racks.len();
        let places = RankPlaces::of_racks(&racks.iter().map(u8::to_string).collect::<Vec<_>>());
        let input = arrays(ranks, len);
        let expected = sums(&input, &(0..ranks).collect::<Vec<_>>());
        for mode in [Mode::Grid, Mode::Full] {
            let plan = plan_by_place(&places, mode).unwrap();
            for step in plan.steps() {
                prop_assert!(step.transfers.is_sorted_by_key(|t| (t.from, t.to)));
            }
            for result in execute(&plan, input.clone()) {
                prop_assert_eq!(&result, &expected);
            }
            if mode == Mode::Full {
                let distinct = racks.iter().collect::<HashSet<_>>().len();
                let over = |t: &&faro_exchange::collective::Transfer| racks[t.from as usize] != racks[t.to as usize];
                let crossing = plan.steps()[0].transfers.iter().filter(over).count();
                prop_assert_eq!(crossing, if distinct == 1 { 0 } else { distinct });
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
fn bytes_sent_are_at_the_bound() {
    // A group, a ring and a grid send 2(g-1)/g of the array.
    let dssync = Mode::DsSync {
        group: 4,
        epoch: 0,
        round: 0,
    };
    for (mode, elements) in [(Mode::Full, 3000), (Mode::Grid, 3000), (dssync, 2400)] {
        let plan = plan(16, mode).unwrap();
        for rank in 0..16 {
            assert_eq!(sent(&plan, rank, 1600), elements, "{mode:?}");
        }
    }
    // A rank beyond the grid of 4 by 4 sends an array, its row a quarter more than the others.
    let plan = plan(16 + 1, Mode::Grid).unwrap();
    let all: Vec<usize> = (0..17).map(|rank| sent(&plan, rank, 1600)).collect();
    assert_eq!(all, [&[3400; 4][..], &[3000; 12], &[1600]].concat());
}

/// Time is a number here: a round of a group takes as long as its slowest link. From the third look on a
/// rank's link is slow, and later fast again.
#[test]
fn a_rank_behind_a_slow_link_is_kept_apart_and_comes_back() {
    let (ranks, group) = (16, 4);
    let mut places = RankPlaces::of_racks(&vec![""; ranks]);
    let mut watches = vec![Stopwatch::default(); ranks];
    let (mut round, mut apart) = (0, Vec::new());
    for looks in 0..10 {
        let slow = (2..6).contains(&looks).then_some(5);
        loop {
            let groups = dssync_groups_by_place(&places, group, 1, round).unwrap();
            for of in &groups {
                let has_slow = of.iter().any(|rank| Some(*rank) == slow);
                let seconds = if has_slow { 10.0 } else { 1.0 };
                for rank in of {
                    watches[*rank].note(seconds, of.len() as u32);
                }
            }
            round += 1;
            let due: Vec<Option<f64>> = watches.iter_mut().map(Stopwatch::due).collect();
            if let Some(times) = due.into_iter().collect::<Option<Vec<f64>>>() {
                // A look is a round.
                round += 1;
                places.set_apart(slow_ranks(&times));
                apart.push(slow_ranks(&times).iter().rposition(|slow| *slow));
                break;
            }
        }
    }
    let five = Some(5);
    assert_eq!(
        apart,
        [None, None, five, five, five, five, None, None, None, None]
    );
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
