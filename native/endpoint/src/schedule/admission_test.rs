//! Admission against an oracle: random interleavings of what can happen, and single cases.

use super::super::model::{order, peers, ScheduleModel, MAX_WAIT, SLICE};
use super::super::{ExchangePolicy, MIN_PERMITS};
use faro_fabric::EndpointId;
use std::collections::HashSet;
use std::time::Duration;

#[test]
fn whatever_happens_all_work_goes_once_and_no_permit_stays_free() {
    for seed in 0..200 {
        let policy = match seed % 2 {
            0 => ExchangePolicy::Grouped,
            _ => ExchangePolicy::Rotated,
        };
        let mut world = ScheduleModel::new(policy, peers(2 + u128::from(seed % 40)), seed);
        let mut max = world.limit;
        for _ in 0..300 {
            match world.rng.below(20) {
                0..=8 => {
                    // Some go to unknown peers.
                    let peer = 1 + u128::from(world.rng.below(45));
                    world.submit(peer);
                }
                9..=14 => {
                    if let Some(id) = world.random(&world.under_way.clone()) {
                        world.admission.progress(world.work[&id], world.now);
                        world.end(id);
                    }
                }
                15 | 16 => {
                    let later = Duration::from_millis(u64::from(world.rng.below(8)));
                    world.tick(later);
                }
                17 => {
                    if let Some(id) = world.random(&world.waiting.clone()) {
                        world.withdraw(id);
                    }
                }
                18 => world.withdraw(u64::MAX),
                _ => {
                    let n = 2 + u128::from(world.rng.below(40));
                    let first = 1 + u128::from(world.rng.below(5));
                    world.adopt((first..first + n).collect());
                    max = max.max(world.limit);
                }
            }
            world.check();
            let active = world.active().len();
            assert!(
                active <= 2 * max,
                "seed {seed}: {active} active, {max} permits"
            );
        }
        world.drain();
    }
}

#[test]
fn the_bound_holds_while_all_peers_make_progress() {
    for (n, permits) in [
        (9, MIN_PERMITS),
        (16, MIN_PERMITS),
        (25, MIN_PERMITS),
        (64, 7),
        (100, 11),
    ] {
        let mut world = ScheduleModel::new(ExchangePolicy::Grouped, peers(n), n as u64);
        assert!(world.limit <= permits, "{n}: {}", world.limit);
        for _ in 0..4 {
            for peer in 1..n {
                world.submit(peer);
            }
        }
        let mut max = 0;
        while let Some(id) = world.random(&world.under_way.clone()) {
            for peer in world.active() {
                world.admission.progress(peer, world.now);
            }
            world.tick(SLICE / 3);
            world.end(id);
            world.check();
            max = max.max(world.active().len());
        }
        assert_eq!(max, world.limit, "all of them, and never more");
    }
}

#[test]
fn permits_go_by_the_schedule() {
    for policy in [ExchangePolicy::Grouped, ExchangePolicy::Rotated] {
        let mut world = ScheduleModel::new(policy, peers(49), 1);
        let order = order(policy, &peers(49));
        for peer in 1..49 {
            world.submit(peer);
        }
        while let Some(id) = world.random(&world.under_way.clone()) {
            world.end(id);
        }
        // The first came when permits were free; of those that waited, none overtook another.
        let course = world.course[world.limit..].iter();
        let waited: Vec<EndpointId> = course.map(|id| world.work[id]).collect();
        let current = order.due(waited[0]).round;
        let away = |peer: &EndpointId| {
            let due = order.due(*peer);
            ((due.round + order.rounds() - current) % order.rounds(), due)
        };
        let rounds: Vec<u32> = waited.iter().map(|peer| away(peer).0).collect();
        assert!(
            rounds.windows(2).all(|two| two[0] <= two[1]),
            "{policy:?}: {rounds:?}"
        );
    }
}

#[test]
fn a_straggler_delays_no_other_peer() {
    let mut world = ScheduleModel::new(ExchangePolicy::Grouped, peers(16), 3);
    let stuck = world.submit(1);
    let mut done = 0;
    for peer in (2..16).cycle().take(600) {
        world.submit(peer);
    }
    while world.under_way.len() > 1 {
        let id = world
            .under_way
            .iter()
            .copied()
            .filter(|id| *id != stuck)
            .min()
            .unwrap();
        for peer in world.active().into_iter().filter(|peer| *peer != 1) {
            world.admission.progress(peer, world.now);
        }
        world.tick(SLICE / 4);
        world.end(id);
        done += 1;
        if done > 100 && !world.waiting.is_empty() {
            assert_eq!(
                world.active().len(),
                world.limit + 1,
                "its permit is another peer's"
            );
        }
    }
    assert!(world.waiting.is_empty());
    assert_eq!((done, world.under_way.len()), (600, 1));
}

#[test]
fn a_peer_that_always_has_more_gives_way_after_its_slice() {
    let mut world = ScheduleModel::new(ExchangePolicy::Grouped, peers(16), 4);
    let greedy: Vec<EndpointId> = (1..=world.limit as u128).collect();
    for peer in &greedy {
        world.submit(*peer);
    }
    let patient = world.submit(15);
    let mut before = 0;
    while world.waiting.contains(&patient) {
        // Each greedy peer starts a second piece before its first one ends.
        for peer in &greedy {
            let of_peer = |id: &u64| world.work[id] == *peer;
            let mut first: Vec<u64> = world.under_way.iter().copied().filter(of_peer).collect();
            first.sort_unstable();
            world.submit(*peer);
            world.admission.progress(*peer, world.now);
            if let Some(id) = first.first() {
                world.end(*id);
            }
        }
        world.tick(SLICE / 4);
        before += 1;
        assert!(before <= 8, "two slices");
    }
    assert!(before > 2, "not before its slice was over");
    world.drain();
}

#[test]
fn rounds_without_work_are_skipped() {
    let order = order(ExchangePolicy::Rotated, &peers(30));
    let mut world = ScheduleModel::new(ExchangePolicy::Rotated, peers(30), 5);
    let two = [order.of_round(7)[0], order.of_round(21)[0]];
    let ids = two.map(|peer| world.submit(peer));
    assert!(world.waiting.is_empty(), "there are permits for both");
    world.tick(SLICE);
    assert_eq!(world.admission.round(), 7);
    world.end(ids[0]);
    assert_eq!(
        world.admission.round(),
        21,
        "drained: on to the next one that has work"
    );
    world.end(ids[1]);
    world.tick(100 * SLICE);
    assert_eq!(world.admission.round(), 21, "nothing to do, nowhere to go");
    assert_eq!(world.admission.rounds(), 2);
}

#[test]
fn no_peer_waits_for_ever() {
    let mut world = ScheduleModel::new(ExchangePolicy::Grouped, peers(64), 6);
    for peer in 1..64 {
        world.submit(peer);
    }
    // Nothing ever arrives: after a slice as many again are admitted, after that none.
    world.tick(SLICE);
    world.tick(MAX_WAIT - SLICE * 2);
    assert_eq!(world.active().len(), 2 * world.limit);
    world.tick(SLICE);
    assert!(world.waiting.is_empty(), "the longest wait is over");
    world.drain();
}

#[test]
fn another_epoch_loses_nothing_and_asks_nothing_twice() {
    let mut world = ScheduleModel::new(ExchangePolicy::Grouped, peers(25), 7);
    for peer in (1..25).cycle().take(72) {
        world.submit(peer);
    }
    let (under_way, waiting) = (world.under_way.clone(), world.waiting.clone());
    world.adopt((10..60).collect());
    let still: HashSet<u64> = under_way.intersection(&world.under_way).copied().collect();
    assert_eq!(still, under_way, "what is under way stays so");
    assert_eq!(
        world.waiting.len() + world.under_way.len(),
        under_way.len() + waiting.len()
    );
    world.drain();
}

#[test]
fn without_a_schedule_nothing_ever_waits() {
    let mut world = ScheduleModel::new(ExchangePolicy::Random, peers(64), 8);
    for peer in (1..90).cycle().take(1_000) {
        world.submit(peer);
        assert!(world.waiting.is_empty());
    }
    assert_eq!(world.active().len(), 89);
    world.drain();
}
