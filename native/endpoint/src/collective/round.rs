//! A caller's parameters of one round.

use super::Element;
use crate::collective::CollectiveError;
use faro_exchange::collective::{plan_by_place, Mode, Plan, RankPlaces};
use faro_wire::message::ClearToSendHead;
use std::time::Duration;

/// Choice of the members that exchange with each other; see `faro_exchange::collective`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// Groups of about this size, shuffled in every round from the team's seed `epoch`.
    DsSync { group: u32, epoch: u64 },
    /// Exact over all, along the rows and the columns of a grid.
    Grid,
    /// Exact over all, by a ring: the baseline.
    Full,
}

/// Operation on the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Operation {
    /// The result is the sum of the members' arrays.
    Sum = 1,
    /// The result is the sum divided by the number of members that are in it.
    Mean = 2,
}

/// Treatment of a value that is not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NanPolicy {
    /// Fails the round, naming rank and position.
    Fail,
    /// A NaN is added like any other value.
    Propagate,
}

/// One round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// The grouping, the same at all members.
    pub grouping: Grouping,
    /// The operation, the same at all members.
    pub operation: Operation,
    /// Each member's own.
    pub nan: NanPolicy,
    /// Maximum time that this member spends in the round.
    pub timeout: Duration,
}

impl Round {
    /// Returns the plan of round `number` for members at these places.
    pub(super) fn plan(&self, places: &RankPlaces, number: u64) -> Result<Plan, CollectiveError> {
        let mode = match self.grouping {
            Grouping::DsSync { group, epoch } => Mode::DsSync {
                group: group as usize,
                epoch,
                round: number,
            },
            Grouping::Grid => Mode::Grid,
            Grouping::Full => Mode::Full,
        };
        Ok(plan_by_place(places, mode)?)
    }
}

/// Values on which the members of a round must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoundShape {
    element: u32,
    elements: u64,
    operation: u32,
    mode: u32,
    group: u32,
    epoch: u64,
}

impl RoundShape {
    pub(super) fn new(round: &Round, element: Element, elements: usize) -> Self {
        let (mode, group, epoch) = match round.grouping {
            Grouping::DsSync { group, epoch } => (1, group, epoch),
            Grouping::Grid => (2, 0, 0),
            Grouping::Full => (3, 0, 0),
        };
        Self {
            element: element as u32,
            elements: elements as u64,
            operation: round.operation as u32,
            mode,
            group,
            epoch,
        }
    }

    pub(super) fn of(head: &ClearToSendHead) -> Self {
        Self {
            element: head.element.get(),
            elements: head.elements.get(),
            operation: head.operation.get(),
            mode: head.mode.get(),
            group: head.group.get(),
            epoch: head.epoch.get(),
        }
    }

    /// Returns the head of a CLEAR_TO_SEND for a part of this shape, without rank, step and chunks.
    pub(super) fn head(&self, round: u64) -> ClearToSendHead {
        ClearToSendHead {
            round: round.into(),
            epoch: self.epoch.into(),
            elements: self.elements.into(),
            step: 0.into(),
            from_rank: 0.into(),
            element: self.element.into(),
            operation: self.operation.into(),
            mode: self.mode.into(),
            group: self.group.into(),
            first_chunk: 0.into(),
            buffers: 0.into(),
        }
    }

    /// Describes, for an error text, the fields that differ from `other`, or all fields if none
    /// differ.
    pub(super) fn differs_from(&self, other: &Self) -> String {
        let mut parts = Vec::new();
        if (self.elements, self.element) != (other.elements, other.element) || self == other {
            let element = if self.element == Element::Double as u32 {
                Element::Double
            } else {
                Element::Float
            };
            parts.push(format!("{} {}", self.elements, element.name()));
        }
        if self.operation != other.operation {
            let mean = self.operation == Operation::Mean as u32;
            parts.push(if mean { "mean" } else { "sum" }.to_owned());
        }
        if (self.mode, self.group, self.epoch) != (other.mode, other.group, other.epoch) {
            parts.push(match self.mode {
                1 => format!("dssync (group {}, seed {})", self.group, self.epoch),
                2 => "grid".to_owned(),
                _ => "full".to_owned(),
            });
        }
        parts.join(", ")
    }
}
