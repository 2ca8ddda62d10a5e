//! Tests the properties of schedules for any members and epochs.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_exchange::{ExchangeError, Member, Policy, Schedule, MIN_PLANE};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

/// Generates members on hosts of up to 6.
fn members(max: usize) -> impl Strategy<Value = Vec<Member>> {
    prop::collection::vec(1usize..=6, 1..=max).prop_map(move |hosts| {
        let mut all = Vec::new();
        for (h, n) in hosts.into_iter().enumerate() {
            all.extend((0..n).map(|i| Member::new(format!("e{h}.{i}"), format!("h{h}"))));
        }
        all.truncate(max);
        all
    })
}

fn plain(n: usize) -> Vec<Member> {
    (0..n)
        .map(|i| Member::new(format!("{i}"), format!("h{i}")))
        .collect()
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec![Policy::Grouped, Policy::Rotated, Policy::Random])
}

/// Checks that every ordered pair meets once per cycle, and that all views of the schedule agree on
/// the round.
fn assert_covers(s: &Schedule) {
    let n = s.members().len();
    for client in 0..n {
        let visits = s.visits(client);
        let peers: HashSet<u32> = visits.iter().map(|v| v.peer).collect();
        assert_eq!(visits.len(), n - 1);
        assert_eq!(peers.len(), n - 1);
        assert!(!peers.contains(&(client as u32)));
        assert!(visits.windows(2).all(|w| w[0].round <= w[1].round));
        for v in visits {
            assert_eq!(s.round_of(client, v.peer as usize), Some(v.round as usize));
        }
    }
}

/// Checks that groups of one round are disjoint, and that servers and clients are exactly the
/// group's others.
fn assert_groups(s: &Schedule) {
    let n = s.members().len();
    let bound = n.isqrt() + 1;
    let mut met = HashSet::new();
    for round in 0..s.rounds() {
        let mut seen = HashSet::new();
        for group in s.groups(round) {
            assert!(
                group.len() > 1 && group.len() - 1 <= bound,
                "{n}: {group:?}"
            );
            assert!(group.len() - 1 <= s.max_peers());
            for &m in &group {
                assert!(seen.insert(m), "{m} is in two groups of round {round}");
                let others: HashSet<usize> = group.iter().copied().filter(|&o| o != m).collect();
                let servers = s.servers(round, m);
                let clients = s.clients(round, m);
                assert_eq!(servers.len(), others.len());
                assert_eq!(clients.len(), others.len());
                assert_eq!(servers.into_iter().collect::<HashSet<_>>(), others);
                assert_eq!(clients.into_iter().collect::<HashSet<_>>(), others);
                for o in others {
                    assert!(met.insert((m, o)), "{m} and {o} meet twice");
                }
            }
        }
    }
    assert_eq!(met.len(), n * (n - 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_ordered_pair_once(m in members(50), epoch: u64, policy in policy()) {
        assert_covers(&Schedule::with_policy(m, epoch, policy).unwrap());
    }

    #[test]
    fn groups_are_disjoint_small_and_cover(m in members(110), epoch: u64) {
        if m.len() >= MIN_PLANE {
            assert_groups(&Schedule::new(m, epoch).unwrap());
        }
    }

    #[test]
    fn order_of_members_does_not_matter(
        (m, shuffled) in members(60).prop_flat_map(|m| (Just(m.clone()), Just(m).prop_shuffle())),
        epoch: u64,
        policy in policy(),
    ) {
        let a = Schedule::with_policy(m, epoch, policy).unwrap();
        let b = Schedule::with_policy(shuffled, epoch, policy).unwrap();
        prop_assert_eq!(a.members(), b.members());
        for i in 0..a.members().len() {
            prop_assert_eq!(a.visits(i), b.visits(i));
        }
    }

    /// Clients and servers are two views of one relation, for each policy.
    #[test]
    fn clients_mirror_servers(m in members(24), epoch: u64, policy in policy()) {
        let s = Schedule::with_policy(m, epoch, policy).unwrap();
        for round in 0..s.rounds() {
            for server in 0..s.members().len() {
                let clients: HashSet<usize> = s.clients(round, server).into_iter().collect();
                let expected: HashSet<usize> = (0..s.members().len())
                    .filter(|&client| s.servers(round, client).contains(&server))
                    .collect();
                prop_assert_eq!(clients, expected);
            }
        }
    }

    /// A host is split over columns only if no column had room for it; a whole host meets within
    /// itself in one round, the schedule's local round.
    #[test]
    fn hosts_stay_whole_where_the_plane_has_room(m in members(120), epoch: u64) {
        let s = Schedule::new(m, epoch).unwrap();
        let (Some(shape), Some(local)) = (s.shape(), s.local_round()) else { return Ok(()) };
        let mut hosts: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, m) in s.members().iter().enumerate() {
            hosts.entry(&m.host).or_default().push(i);
        }
        let whole: HashSet<usize> = hosts
            .values()
            .filter(|h| h.iter().all(|&i| i == h[0] || s.round_of(h[0], i) == Some(local)))
            .flatten()
            .copied()
            .collect();
        for host in hosts.values() {
            if whole.contains(&host[0]) {
                for &a in host {
                    for &b in host.iter().filter(|&&b| b != a) {
                        prop_assert_eq!(s.round_of(a, b), Some(local));
                    }
                }
            } else {
                for column in (0..s.members().len()).filter_map(|i| s.group(local, i)) {
                    let kept = column.iter().filter(|i| whole.contains(i)).count();
                    prop_assert!(shape.rows - kept < host.len(), "{host:?} had room: {column:?}");
                }
            }
        }
    }
}

#[test]
fn full_planes() {
    for q in [2usize, 3, 4, 5, 7, 8, 9, 11, 13, 16] {
        let s = Schedule::new(plain(q * q), 5).unwrap();
        assert_eq!(s.rounds(), q + 1);
        for round in 0..s.rounds() {
            let groups = s.groups(round);
            assert_eq!(groups.len(), q);
            assert!(groups.iter().all(|g| g.len() == q));
        }
        assert_groups(&s);
    }
}

#[test]
fn large_planes() {
    for n in [25 * 25, 27 * 27, 1000, 1024, 1025] {
        let s = Schedule::new(plain(n), 11).unwrap();
        assert_groups(&s);
        assert_covers(&s);
    }
    // At 4096 members only some clients are checked.
    let s = Schedule::new(plain(4096), 11).unwrap();
    assert_eq!((s.rounds(), s.max_peers()), (65, 63));
    for client in (0..4096).step_by(97) {
        let visits = s.visits(client);
        let peers: HashSet<u32> = visits.iter().map(|v| v.peer).collect();
        assert_eq!(peers.len(), 4095);
    }
}

#[test]
fn every_small_number_of_members() {
    for n in 1..=130 {
        let s = Schedule::new(plain(n), 3).unwrap();
        assert_covers(&s);
        if n >= MIN_PLANE {
            assert_groups(&s);
        } else {
            assert_eq!(s.rounds(), n - 1);
            assert!(s.shape().is_none());
        }
    }
}

#[test]
fn an_epoch_changes_labels_and_order() {
    for policy in [Policy::Grouped, Policy::Rotated, Policy::Random] {
        let at = |epoch| Schedule::with_policy(plain(49), epoch, policy).unwrap();
        let rounds = |s: &Schedule| -> Vec<_> { (1..49).map(|p| s.round_of(0, p)).collect() };
        let distinct: HashSet<_> = (0..20).map(|e| rounds(&at(e))).collect();
        assert_eq!(distinct.len(), 20, "{policy:?}");
    }
    // A new epoch changes groups, not only the order of rounds.
    let groups = |epoch| -> HashSet<Vec<usize>> {
        let s = Schedule::new(plain(49), epoch).unwrap();
        (0..s.rounds())
            .flat_map(|r| s.groups(r))
            .map(|mut g| {
                g.sort_unstable();
                g
            })
            .collect()
    };
    assert!(groups(1).intersection(&groups(2)).count() < 4);
}

#[test]
fn hosts_of_equal_size_that_divide_a_column_are_never_split() {
    let m: Vec<Member> = (0..64)
        .map(|i| Member::new(format!("e{i}"), format!("h{}", i / 4)))
        .collect();
    for epoch in 0..20 {
        let s = Schedule::new(m.clone(), epoch).unwrap();
        for a in 0..64 {
            for b in (0..64).filter(|&b| b != a && s.members()[a].host == s.members()[b].host) {
                assert_eq!(s.round_of(a, b), s.local_round());
            }
        }
    }
}

#[test]
fn bad_input_is_named() {
    assert_eq!(
        Schedule::new(vec![], 0).unwrap_err(),
        ExchangeError::NoMembers
    );
    let twice = vec![Member::new("a", "h"), Member::new("a", "g")];
    let error = Schedule::new(twice, 0).unwrap_err();
    assert_eq!(error, ExchangeError::DuplicateMember("a".into()));
    let error = "ring".parse::<Policy>().unwrap_err();
    assert!(error.to_string().contains("\"ring\""), "{error}");
    let s = Schedule::new(plain(9), 0).unwrap();
    assert!(s.servers(s.rounds(), 0).is_empty());
    assert!(s.servers(0, 9).is_empty());
    assert_eq!(s.round_of(3, 3), None);
    assert_eq!(s.index_of("9"), None);
}
