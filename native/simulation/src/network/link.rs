//! A connection with its two ends.

use super::pipe::Pipe;
use crate::core::Time;
use crate::step::{ConnectionEnd, LinkId};
use faro_fabric::{ConnectionId, Identity, WriteSource};
use faro_pool::Lease;
use std::collections::{BTreeMap, VecDeque};

/// The state of the connection at one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkSide {
    /// The acceptor has not accepted it.
    Unknown,
    /// The dialler waits for the acceptor.
    Opening,
    Open,
    /// It has ended at this side, and the end was reported.
    Closed,
}

/// The data of one side.
pub(super) struct SideState {
    pub(super) site: usize,
    pub(super) connection: ConnectionId,
    pub(super) side: LinkSide,
    /// Posted reads, by token.
    pub(super) reads: BTreeMap<u64, Lease>,
    /// Writes that a device has not reported, with their sources; the oldest is first.
    pub(super) writes: VecDeque<(u64, WriteSource)>,
}

impl SideState {
    fn new(site: usize, connection: ConnectionId, side: LinkSide) -> Self {
        Self {
            site,
            connection,
            side,
            reads: BTreeMap::new(),
            writes: VecDeque::new(),
        }
    }
}

/// A connection.
pub(crate) struct SimulatedLink {
    pub(super) id: LinkId,
    pub(super) expected: Identity,
    pub(super) location: String,
    /// The sides of the dialler and of the acceptor, in this order.
    pub(super) sides: [SideState; 2],
    /// The pipes from the dialler and to it, in this order.
    pub(super) pipes: [Pipe; 2],
    /// True if the connection was lost: no packet moves any more.
    pub(super) is_cut: bool,
    /// Latency in one direction.
    pub(super) latency: Time,
    pub(super) bandwidth: u64,
}

impl SimulatedLink {
    pub(super) fn new(
        id: LinkId,
        site: usize,
        connection: ConnectionId,
        (location, expected): (String, Identity),
        (latency, bandwidth): (Time, u64),
    ) -> Self {
        Self {
            id,
            expected,
            location,
            sides: [
                SideState::new(site, connection, LinkSide::Opening),
                SideState::new(usize::MAX, ConnectionId(0), LinkSide::Unknown),
            ],
            pipes: Default::default(),
            is_cut: false,
            latency,
            bandwidth,
        }
    }

    pub(super) fn side(&mut self, end: ConnectionEnd) -> &mut SideState {
        &mut self.sides[end as usize]
    }

    /// Returns the pipe that this end sends to.
    pub(super) fn pipe(&mut self, end: ConnectionEnd) -> &mut Pipe {
        &mut self.pipes[end as usize]
    }

    pub(super) fn is_open(&self, end: ConnectionEnd) -> bool {
        self.sides[end as usize].side == LinkSide::Open
    }
}
