//! Compares the schedule with tests/golden/exchange.txt, the values that every implementation must
//! compute, in any language.
//!
//! The file changes only together with the format and all implementations. `FARO_GOLDEN=write cargo
//! test -p faro-exchange --test golden` writes it again.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_exchange::collective::{dssync_groups, dssync_groups_by_place, RankPlaces};
use faro_exchange::{Field, Member, Policy, Schedule, SplitMix64};
use std::fmt::Write;

const HEADER: &str = "\
# Golden vectors of faro-exchange, format 2. One item per line, fields separated by one space.
# rng SEED V...            first values of SplitMix64, hexadecimal
# below SEED N V...        first values below N
# stream SEED INDEX V...   first values of an independent stream
# field Q V...             x^0, x^1, ... : all nonzero elements of GF(Q)
# schedule POLICY EPOCH N  starts a case; ids and hosts have no spaces
# member ID HOST           N of them, in an order that must not matter
# visits I R:P...          reads of member I (position by id): round and peer, by preference
# digest POLICY EPOCH N I D  FNV-1a 64 of member I's visits (round, peer as 4 bytes each, little
#                          endian) among N members e0, e1, ... with host h<i/4>
# dssync RANKS GROUP EPOCH ROUND R,R R,R...   groups of a round
# places RACK...           ranks' racks in order of rank, then a + if the rank is apart
# placed GROUP EPOCH ROUND R,R R,R...         groups of a round of these ranks
";

fn hex(values: impl IntoIterator<Item = u64>) -> String {
    values.into_iter().map(|v| format!(" {v:016x}")).collect()
}

fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Grouped => "grouped",
        Policy::Rotated => "rotated",
        Policy::Random => "random",
    }
}

fn case(out: &mut String, policy: Policy, epoch: u64, members: Vec<Member>) {
    writeln!(out, "schedule {} {epoch} {}", name(policy), members.len()).unwrap();
    for m in &members {
        writeln!(out, "member {} {}", m.id, m.host).unwrap();
    }
    let s = Schedule::with_policy(members, epoch, policy).unwrap();
    for i in 0..s.members().len() {
        let visits: String = s
            .visits(i)
            .iter()
            .map(|v| format!(" {}:{}", v.round, v.peer))
            .collect();
        writeln!(out, "visits {i}{visits}").unwrap();
    }
}

fn numbered(n: usize) -> Vec<Member> {
    (0..n)
        .map(|i| Member::new(format!("e{i}"), format!("h{}", i / 4)))
        .collect()
}

fn digest(schedule: &Schedule, member: usize) -> u64 {
    let bytes = schedule
        .visits(member)
        .into_iter()
        .flat_map(|v| [v.round.to_le_bytes(), v.peer.to_le_bytes()].concat());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn expected() -> String {
    let mut out = HEADER.to_owned();
    for seed in [0, 1, u64::MAX] {
        let mut rng = SplitMix64::new(seed);
        writeln!(out, "rng {seed}{}", hex((0..4).map(|_| rng.next()))).unwrap();
    }
    for n in [1, 7, 4096, (1 << 31) - 1] {
        let mut rng = SplitMix64::new(42);
        let values: String = (0..6).map(|_| format!(" {}", rng.below(n))).collect();
        writeln!(out, "below 42 {n}{values}").unwrap();
    }
    let mut rng = SplitMix64::stream(7, 3);
    writeln!(out, "stream 7 3{}", hex((0..3).map(|_| rng.next()))).unwrap();
    for q in [2, 3, 4, 5, 8, 9, 16, 25, 27, 32, 49, 64, 256, 257] {
        let field = Field::new(q).unwrap();
        let values: String = field.powers().map(|v| format!(" {v}")).collect();
        writeln!(out, "field {q}{values}").unwrap();
    }
    for n in [1, 2, 3, 4, 5, 9] {
        case(&mut out, Policy::Grouped, n as u64, numbered(n));
    }
    // Hosts are uneven, members are in reverse order, and ids sort by bytes only.
    let mut uneven: Vec<Member> = (0..14)
        .map(|i| Member::new(format!("n{i}"), format!("h{}-{}", i * i % 5, i % 3)))
        .collect();
    uneven.push(Member::new("\u{fb01}", "h\u{e9}"));
    uneven.push(Member::new("\u{1f0cf}", "h\u{e9}"));
    uneven.reverse();
    case(&mut out, Policy::Grouped, u64::MAX, uneven);
    for policy in [Policy::Rotated, Policy::Random] {
        case(&mut out, policy, 6, numbered(6));
    }
    for policy in [Policy::Grouped, Policy::Rotated, Policy::Random] {
        for n in [26, 100, 1024, 4096] {
            let s = Schedule::with_policy(numbered(n), 2026, policy).unwrap();
            for i in [0, n - 1] {
                let d = digest(&s, i);
                writeln!(out, "digest {} 2026 {n} {i} {d:016x}", name(policy)).unwrap();
            }
        }
    }
    for (ranks, group, round) in [(1, 2, 0), (9, 3, 0), (9, 3, 1), (17, 4, 5)] {
        let groups = listed(&dssync_groups(ranks, group, 11, round).unwrap());
        writeln!(out, "dssync {ranks} {group} 11 {round}{groups}").unwrap();
    }
    let racks: Vec<String> = (0..16).map(|rank| format!("r{}", rank % 3)).collect();
    let apart: Vec<bool> = (0..16).map(|rank| rank % 9 == 5).collect();
    let named = racks.iter().zip(&apart);
    let named: String = named
        .map(|(rack, apart)| format!(" {rack}{}", if *apart { "+" } else { "" }))
        .collect();
    writeln!(out, "places{named}").unwrap();
    let mut places = RankPlaces::of_racks(&racks);
    places.set_apart(apart);
    for (group, round) in [(2, 0), (2, 7), (4, 5), (6, 6)] {
        let groups = listed(&dssync_groups_by_place(&places, group, 11, round).unwrap());
        writeln!(out, "placed {group} 11 {round}{groups}").unwrap();
    }
    out
}

fn listed(groups: &[Vec<usize>]) -> String {
    let ranks = |group: &Vec<usize>| {
        let ranks: Vec<String> = group.iter().map(usize::to_string).collect();
        format!(" {}", ranks.join(","))
    };
    groups.iter().map(ranks).collect()
}

#[test]
fn golden_vectors_hold() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/exchange.txt");
    let expected = expected();
    if std::env::var_os("FARO_GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(path, &expected).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap();
    for (i, (stored, expected)) in stored.lines().zip(expected.lines()).enumerate() {
        assert_eq!(stored, expected, "line {}", i + 1);
    }
    assert_eq!(stored.lines().count(), expected.lines().count());
}
