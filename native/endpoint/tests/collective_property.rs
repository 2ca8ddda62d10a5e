//! Any number of members, any length, any values: the exact groupings give the mean, and all members
//! the same bits; shuffled groups keep the team's mean.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;
#[path = "support/teams.rs"]
mod teams;

use faro_endpoint::collective::{Grouping, Operation};
use faro_endpoint::{Endpoint, FabricChoice};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};
use teams::{all, doubles, dssync, endpoints, floats, round, team};

/// Returns endpoints that all cases share, so that teams start and end on endpoints that stay.
fn hosts() -> &'static [Arc<Endpoint>] {
    static HOSTS: OnceLock<Vec<Arc<Endpoint>>> = OnceLock::new();
    HOSTS.get_or_init(|| endpoints(FabricChoice::Shm, 3))
}

fn arrays(ranks: usize, elements: usize) -> impl Strategy<Value = Vec<Vec<f64>>> {
    let array = prop::collection::vec(-1e6..1e6, elements);
    prop::collection::vec(array, ranks)
}

/// Generates a team's arrays; lengths around the number of ranks are as likely as longer ones.
fn any_team() -> impl Strategy<Value = Vec<Vec<f64>>> {
    (1_usize..13, prop_oneof![0_usize..20, 0_usize..3_000])
        .prop_flat_map(|(ranks, elements)| arrays(ranks, elements))
}

fn exact(arrays: &[Vec<f64>]) -> Vec<f64> {
    let sum = |i: usize| arrays.iter().map(|array| array[i]).sum::<f64>();
    (0..arrays[0].len())
        .map(|i| sum(i) / arrays.len() as f64)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exact_groupings_give_the_mean(arrays in any_team(), full: bool) {
        let grouping = if full { Grouping::Full } else { Grouping::Grid };
        let expected = exact(&arrays);
        let how = round(grouping, Operation::Mean);
        let results = all(team(hosts(), arrays.len()), |team| {
            let mut values = arrays[team.rank()].clone();
            doubles(team, &mut values, &how).unwrap();
            let mut small: Vec<f32> = arrays[team.rank()].iter().map(|v| *v as f32).collect();
            floats(team, &mut small, &how).unwrap();
            (values, small)
        });
        for (values, small) in &results {
            for ((value, small), expected) in values.iter().zip(small).zip(&expected) {
                prop_assert!((value - expected).abs() <= 1e-8, "{} for {}", value, expected);
                prop_assert!((f64::from(*small) - expected).abs() <= 1.0, "{} for {}", small, expected);
            }
            prop_assert_eq!(values, &results[0].0);
            prop_assert_eq!(small, &results[0].1);
        }
    }

    #[test]
    fn groups_of_any_sizes_keep_the_mean(
        ranks in 3_usize..13, group in 2_usize..4, elements in 1_usize..500, rounds in 1_usize..5,
        seed in any::<u32>(),
    ) {
        let start = |rank: usize| -> Vec<f64> {
            let value = |i| f64::from(seed.rotate_left((rank * 7 + i) as u32) % 10_007);
            (0..elements).map(value).collect()
        };
        let before = exact(&(0..ranks).map(start).collect::<Vec<_>>());
        let how = round(dssync(group as u32), Operation::Mean);
        let results = all(team(hosts(), ranks), |team| {
            let mut values = start(team.rank());
            for _ in 0..rounds {
                doubles(team, &mut values, &how).unwrap();
            }
            values
        });
        for (after, before) in exact(&results).iter().zip(&before) {
            prop_assert!((after - before).abs() < 1e-6, "{} was {}", after, before);
        }
    }
}
