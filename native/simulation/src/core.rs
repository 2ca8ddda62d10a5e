//! The state that all parts of a simulation share: the time, the dice, the agenda and the trace.

use crate::sim_rng::SimRng;
use crate::step::RunStep;
use crate::trace::Trace;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::{Duration, Instant};

/// Virtual time since the simulation began.
pub(crate) type Time = Duration;

struct DueEvent {
    at: Time,
    /// A random number of the seed, which orders the steps of the same moment.
    tie: u64,
    sequence: u64,
    step: RunStep,
}

impl DueEvent {
    fn key(&self) -> (Time, u64, u64) {
        (self.at, self.tie, self.sequence)
    }
}

impl PartialEq for DueEvent {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for DueEvent {}
impl PartialOrd for DueEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for DueEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The time, the dice, the agenda and the trace of one run.
pub(crate) struct Core {
    pub(crate) now: Time,
    pub(crate) dice: SimRng,
    pub(crate) trace: Trace,
    start: Instant,
    agenda: BinaryHeap<Reverse<DueEvent>>,
    sequence: u64,
    steps: u64,
}

impl Core {
    pub(crate) fn new(dice: SimRng, trace: Trace) -> Self {
        Self {
            now: Time::ZERO,
            dice,
            trace,
            start: faro_sync::clock::now(),
            agenda: BinaryHeap::new(),
            sequence: 0,
            steps: 0,
        }
    }

    /// Plans a step for a time, or for now if that time has passed.
    pub(crate) fn at(&mut self, at: Time, step: RunStep) {
        self.sequence += 1;
        self.agenda.push(Reverse(DueEvent {
            at: at.max(self.now),
            tie: self.dice.next(),
            sequence: self.sequence,
            step,
        }));
    }

    /// Takes the next step and sets the time to the step's. If there is no step up to `end`, sets
    /// the time to `end` and returns `None`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, RunStep)> {
        if self.agenda.peek().is_none_or(|due| due.0.at > end) {
            self.now = end;
            return None;
        }
        let Reverse(due) = self.agenda.pop()?;
        self.now = due.at;
        self.steps += 1;
        Some((due.at, due.step))
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the virtual time of an instant.
    pub(crate) fn time_of(&self, instant: Instant) -> Time {
        instant.saturating_duration_since(self.start)
    }

    pub(crate) fn note(&mut self, what: fmt::Arguments<'_>) {
        self.trace.note(self.now, what);
    }
}
