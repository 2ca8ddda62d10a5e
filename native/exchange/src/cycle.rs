//! One endpoint's way through a cycle: what it has read, what is open, what comes next.
//!
//! A cycle is done when the endpoint has read from every other member once. Each endpoint keeps only
//! its own reads, so "each ordered pair exactly once" needs no agreement between nodes: pair
//! (reader, owner) is the reader's to remember, by the owner's identity and not by a round.
//!
//! ```text
//!            start                finish
//!   Pending ───────▶ Open ───────────────────▶ Done
//!      ▲               │
//!      └─── give_up ───┘
//! ```
//! - **Work-conserving**: `candidates` yields the current round's peers first, then those of all
//!   later rounds, cyclically. How many may be open at once is the caller's admission
//!   ([`crate::Schedule::max_peers`]).
//! - **No barrier**: the round moves on when nothing of it is pending or open, or when the caller
//!   says that its slice is over; what was left comes again when the round does.
//! - **Members come or go**: `rebase` takes the schedule of a larger epoch. Peers that stay keep
//!   their state, so a pair that was read is not read again and an open one stays open; new members
//!   are pending; those that left are forgotten and returned, for the caller to drop their requests.
//!   Identities are not used twice, so nobody "comes back". Nodes may change epochs at different
//!   times: an owner serves a reader of any epoch, only its preferences differ meanwhile.

use crate::schedule::{Schedule, Visit};
use crate::ExchangeError;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairState {
    Pending,
    Open,
    Done,
}

/// What a change of members meant for this endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Identities of members that are new, sorted.
    pub joined: Vec<String>,
    /// Identities of members that are gone and what the pair's state was, sorted.
    pub left: Vec<(String, PairState)>,
}

#[derive(Debug, Clone)]
pub struct Cycle {
    schedule: Arc<Schedule>,
    /// This endpoint's index in the schedule.
    me: usize,
    /// All reads in order of preference; each other member once.
    visits: Vec<Visit>,
    /// First visit of each round, and the end: `rounds + 1` entries.
    starts: Vec<u32>,
    /// State of the pair with each member; Done for this endpoint itself.
    states: Vec<PairState>,
    /// Current round.
    round: usize,
    /// Number of pairs that are not Done.
    left: usize,
}

impl Cycle {
    /// A new cycle of the member `id`; everything is pending.
    pub fn new(schedule: Arc<Schedule>, id: &str) -> Result<Self, ExchangeError> {
        let me = schedule
            .index_of(id)
            .ok_or_else(|| ExchangeError::NotAMember(id.to_owned()))?;
        let visits = schedule.visits(me);
        let starts = (0..=schedule.rounds() as u32)
            .map(|r| visits.partition_point(|v| v.round < r) as u32)
            .collect();
        let mut states = vec![PairState::Pending; schedule.members().len()];
        states[me] = PairState::Done;
        let mut cycle = Cycle {
            left: visits.len(),
            schedule,
            me,
            visits,
            starts,
            states,
            round: 0,
        };
        cycle.skip_drained();
        Ok(cycle)
    }

    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    pub fn me(&self) -> usize {
        self.me
    }

    /// The round that this endpoint prefers now.
    pub fn round(&self) -> usize {
        self.round
    }

    pub fn is_complete(&self) -> bool {
        self.left == 0
    }

    /// Reads that are not done.
    pub fn remaining(&self) -> usize {
        self.left
    }

    pub fn state(&self, peer: usize) -> Option<PairState> {
        self.states.get(peer).copied()
    }

    /// Pending peers in order of preference: this round's, then those of the rounds that follow.
    pub fn candidates(&self) -> impl Iterator<Item = Visit> + '_ {
        let (before, from) = self.visits.split_at(self.first_visit(self.round));
        from.iter()
            .chain(before)
            .filter(|v| self.states[v.peer as usize] == PairState::Pending)
            .copied()
    }

    /// Who reads from this endpoint in the current round: the owner grants them credit first.
    pub fn readers(&self) -> Vec<usize> {
        self.schedule.readers(self.round, self.me)
    }

    /// Who will read from this endpoint in the next round: what to stage for them can be in frames
    /// when they come.
    pub fn next_readers(&self) -> Vec<usize> {
        match self.schedule.rounds() {
            0 => Vec::new(),
            rounds => self.schedule.readers((self.round + 1) % rounds, self.me),
        }
    }

    /// The read from `peer` is issued.
    pub fn start(&mut self, peer: usize) -> Result<(), ExchangeError> {
        self.turn(peer, "start", PairState::Pending, PairState::Open)
    }

    /// The read from `peer` is complete; the round moves on when it was the last.
    pub fn finish(&mut self, peer: usize) -> Result<(), ExchangeError> {
        self.turn(peer, "finish", PairState::Open, PairState::Done)?;
        self.left -= 1;
        self.skip_drained();
        Ok(())
    }

    /// The read from `peer` failed and is to be tried again.
    pub fn give_up(&mut self, peer: usize) -> Result<(), ExchangeError> {
        self.turn(peer, "give_up", PairState::Open, PairState::Pending)
    }

    /// The slice of the current round is over: go on to the next round that is not drained.
    pub fn end_slice(&mut self) {
        if let Some(rounds) = self.schedule.rounds().checked_sub(1) {
            self.round = if self.round == rounds {
                0
            } else {
                self.round + 1
            };
            self.skip_drained();
        }
    }

    /// Goes over to the schedule of a later epoch and keeps what is done and what is open.
    pub fn rebase(&mut self, schedule: Arc<Schedule>) -> Result<Change, ExchangeError> {
        if schedule.epoch() <= self.schedule.epoch() {
            return Err(ExchangeError::StaleEpoch {
                current: self.schedule.epoch(),
                new: schedule.epoch(),
            });
        }
        let mut next = Cycle::new(schedule, &self.schedule.members()[self.me].id)?;
        let mut change = Change::default();
        for (i, member) in self.schedule.members().iter().enumerate() {
            match next.schedule.index_of(&member.id) {
                Some(at) => next.states[at] = self.states[i],
                None => change.left.push((member.id.clone(), self.states[i])),
            }
        }
        let new = |id: &str| self.schedule.index_of(id).is_none();
        let members = next.schedule.members().iter();
        change.joined = members
            .filter(|m| new(&m.id))
            .map(|m| m.id.clone())
            .collect();
        next.left = next
            .states
            .iter()
            .filter(|&&s| s != PairState::Done)
            .count();
        next.skip_drained();
        *self = next;
        Ok(change)
    }

    fn turn(
        &mut self,
        peer: usize,
        wanted: &'static str,
        needed: PairState,
        to: PairState,
    ) -> Result<(), ExchangeError> {
        let members = self.states.len();
        match self.states.get_mut(peer) {
            Some(state) if peer != self.me && *state == needed => {
                *state = to;
                Ok(())
            }
            Some(&mut was) if peer != self.me => Err(ExchangeError::WrongState {
                peer,
                was,
                needed,
                wanted,
            }),
            _ => Err(ExchangeError::NoSuchPeer { peer, members }),
        }
    }

    /// Moves on, cyclically, until the round has a pair that is not done; stays when none has.
    fn skip_drained(&mut self) {
        let rounds = self.schedule.rounds();
        let drained = |round: usize| {
            let visits = &self.visits[self.first_visit(round)..self.first_visit(round + 1)];
            visits
                .iter()
                .all(|v| self.states[v.peer as usize] == PairState::Done)
        };
        let next = (0..rounds)
            .map(|i| (self.round + i) % rounds)
            .find(|&r| !drained(r));
        if let Some(round) = next {
            self.round = round;
        }
    }

    fn first_visit(&self, round: usize) -> usize {
        self.starts[round] as usize
    }
}
