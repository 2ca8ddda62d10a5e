//! Cycles of all endpoints together, with members that come, go and fail in mid-cycle.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_exchange::{Cycle, ExchangeError, Member, PairState, Policy, Schedule};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

fn member(i: u32) -> Member {
    Member::new(format!("e{i}"), format!("h{}", i / 2), "")
}

fn schedule(members: &BTreeSet<u32>, epoch: u64, policy: Policy) -> Arc<Schedule> {
    let members = members.iter().map(|&i| member(i)).collect();
    Arc::new(Schedule::with_policy(members, epoch, policy).unwrap())
}

#[derive(Debug, Clone)]
enum Event {
    /// The n-th endpoint (modulo their number) starts its best candidate.
    Start(usize),
    /// It finishes its oldest open read.
    Finish(usize),
    GiveUp(usize),
    EndSlice(usize),
    /// Members join and leave: a new epoch for all.
    Change {
        join: u32,
        leave: usize,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => any::<usize>().prop_map(Event::Start),
        8 => any::<usize>().prop_map(Event::Finish),
        1 => any::<usize>().prop_map(Event::GiveUp),
        1 => any::<usize>().prop_map(Event::EndSlice),
        1 => (0u32..3, any::<usize>()).prop_map(|(join, leave)| Event::Change { join, leave }),
    ]
}

/// All endpoints' cycles, and the truth about what was read.
struct World {
    members: BTreeSet<u32>,
    next: u32,
    epoch: u64,
    policy: Policy,
    cycles: BTreeMap<u32, Cycle>,
    open: HashMap<u32, Vec<String>>,
    /// How often each ordered pair was read.
    reads: HashMap<(String, String), usize>,
}

impl World {
    fn new(n: u32, policy: Policy) -> World {
        let members: BTreeSet<u32> = (0..n).collect();
        let s = schedule(&members, 1, policy);
        let cycle = |&i: &u32| (i, Cycle::new(s.clone(), &member(i).id).unwrap());
        World {
            cycles: members.iter().map(cycle).collect(),
            members,
            next: n,
            epoch: 1,
            policy,
            open: HashMap::new(),
            reads: HashMap::new(),
        }
    }

    fn pick(&self, n: usize) -> u32 {
        *self.members.iter().nth(n % self.members.len()).unwrap()
    }

    fn start(&mut self, who: u32) -> bool {
        let cycle = self.cycles.get_mut(&who).unwrap();
        let Some(visit) = cycle.candidates().next() else {
            return false;
        };
        cycle.start(visit.peer as usize).unwrap();
        let peer = cycle.schedule().members()[visit.peer as usize].id.clone();
        self.open.entry(who).or_default().push(peer);
        true
    }

    fn end(&mut self, who: u32, finish: bool) {
        let open = self.open.entry(who).or_default();
        if open.is_empty() {
            return;
        }
        let peer = open.remove(0);
        let cycle = self.cycles.get_mut(&who).unwrap();
        let at = cycle.schedule().index_of(&peer).unwrap();
        if finish {
            cycle.finish(at).unwrap();
            *self.reads.entry((member(who).id, peer)).or_default() += 1;
        } else {
            cycle.give_up(at).unwrap();
        }
    }

    fn change(&mut self, join: u32, leave: usize) {
        let gone = self.pick(leave);
        if self.members.len() > 2 {
            self.members.remove(&gone);
            self.cycles.remove(&gone);
            self.open.remove(&gone);
        }
        let new: Vec<u32> = (self.next..self.next + join).collect();
        self.next += join;
        self.members.extend(&new);
        self.epoch += 1;
        let s = schedule(&self.members, self.epoch, self.policy);
        for (who, cycle) in &mut self.cycles {
            let change = cycle.rebase(s.clone()).unwrap();
            assert_eq!(change.joined.len(), new.len());
            for (id, was) in change.left {
                let open = self.open.entry(*who).or_default();
                assert_eq!(was == PairState::Open, open.contains(&id));
                open.retain(|o| *o != id);
            }
        }
        for i in new {
            self.cycles
                .insert(i, Cycle::new(s.clone(), &member(i).id).unwrap());
        }
    }

    /// Everybody works on until nothing is left.
    fn drain(&mut self) {
        for who in self.members.clone() {
            while self.start(who) {}
            while self.open.get(&who).is_some_and(|o| !o.is_empty()) {
                self.end(who, true);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// No pair of members that are there at the end is lost or read twice, whatever happened.
    #[test]
    fn each_pair_once_across_changes(
        n in 2u32..30,
        events in prop::collection::vec(event(), 0..250),
        policy in prop::sample::select(vec![Policy::Grouped, Policy::Rotated, Policy::Random]),
    ) {
        let mut world = World::new(n, policy);
        for event in events {
            match event {
                Event::Start(w) => { world.start(world.pick(w)); }
                Event::Finish(w) => world.end(world.pick(w), true),
                Event::GiveUp(w) => world.end(world.pick(w), false),
                Event::EndSlice(w) => {
                    let who = world.pick(w);
                    world.cycles.get_mut(&who).unwrap().end_slice();
                }
                Event::Change { join, leave } => world.change(join, leave),
            }
        }
        world.drain();
        for a in &world.members {
            prop_assert!(world.cycles[a].is_complete());
            for b in world.members.iter().filter(|b| *b != a) {
                let pair = (member(*a).id, member(*b).id);
                prop_assert_eq!(world.reads.get(&pair), Some(&1), "{:?}", pair);
            }
        }
        prop_assert!(world.reads.values().all(|&times| times == 1));
    }

    /// The current round's peers come first, and the round moves on exactly when it is drained.
    #[test]
    fn preference_follows_rounds(n in 2u32..60, epoch: u64) {
        let members: BTreeSet<u32> = (0..n).collect();
        let s = schedule(&members, epoch, Policy::Grouped);
        let mut cycle = Cycle::new(s.clone(), "e0").unwrap();
        let expected = s.visits(cycle.me());
        let mut got = Vec::new();
        while let Some(visit) = { let first = cycle.candidates().next(); first } {
            prop_assert_eq!(visit.round as usize, cycle.round());
            cycle.start(visit.peer as usize).unwrap();
            cycle.finish(visit.peer as usize).unwrap();
            got.push(visit);
        }
        prop_assert_eq!(got, expected);
        prop_assert!(cycle.is_complete());
    }
}

fn nine() -> Cycle {
    let members: BTreeSet<u32> = (0..9).collect();
    Cycle::new(schedule(&members, 1, Policy::Grouped), "e4").unwrap()
}

#[test]
fn a_straggler_does_not_hold_the_others() {
    let mut cycle = nine();
    let slow = cycle.candidates().next().unwrap();
    cycle.start(slow.peer as usize).unwrap();
    // Everything else is on offer and can be done while the straggler is open.
    while let Some(v) = {
        let first = cycle.candidates().next();
        first
    } {
        cycle.start(v.peer as usize).unwrap();
        cycle.finish(v.peer as usize).unwrap();
    }
    assert_eq!(cycle.remaining(), 1);
    cycle.finish(slow.peer as usize).unwrap();
    assert!(cycle.is_complete());
}

#[test]
fn a_slice_ends_and_its_rest_comes_again() {
    let mut cycle = nine();
    let first = cycle.round();
    cycle.end_slice();
    assert_ne!(cycle.round(), first);
    let order: Vec<u32> = cycle.candidates().map(|v| v.round).collect();
    assert_eq!(order.len(), 8);
    assert_eq!(order[6..], [first as u32; 2]);
    for _ in 1..cycle.schedule().rounds() {
        cycle.end_slice();
    }
    assert_eq!(cycle.round(), first);
}

#[test]
fn next_readers_are_the_readers_of_the_round_that_follows() {
    let mut cycle = nine();
    for _ in 0..cycle.schedule().rounds() {
        let next = cycle.next_readers();
        assert_eq!(next.len(), 2);
        cycle.end_slice();
        assert_eq!(cycle.readers(), next);
    }
}

#[test]
fn wrong_turns_are_refused_and_change_nothing() {
    let mut cycle = nine();
    let me = cycle.me();
    let peer = cycle.candidates().next().unwrap().peer as usize;
    let error = cycle.finish(peer).unwrap_err();
    assert!(
        matches!(
            error,
            ExchangeError::WrongState {
                was: PairState::Pending,
                ..
            }
        ),
        "{error}"
    );
    cycle.start(peer).unwrap();
    assert!(cycle.start(peer).is_err());
    assert!(cycle.start(me).is_err());
    assert!(cycle.start(9).is_err());
    assert_eq!(cycle.remaining(), 8);
    let error = cycle.rebase(cycle.schedule().clone()).unwrap_err();
    assert_eq!(error, ExchangeError::StaleEpoch { current: 1, new: 1 });
    let without: BTreeSet<u32> = (5..9).collect();
    let error = cycle
        .rebase(schedule(&without, 2, Policy::Grouped))
        .unwrap_err();
    assert_eq!(error, ExchangeError::NotAMember("e4".into()));
    assert_eq!(cycle.state(peer), Some(PairState::Open));
}

#[test]
fn alone_is_complete() {
    let members: BTreeSet<u32> = [7].into();
    let mut cycle = Cycle::new(schedule(&members, 1, Policy::Grouped), "e7").unwrap();
    assert!(cycle.is_complete());
    cycle.end_slice();
    assert!(cycle.next_readers().is_empty() && cycle.readers().is_empty());
}
