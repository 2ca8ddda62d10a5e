//! One connection, with its two ends.

use super::pipe::Pipe;
use crate::core::Time;
use crate::step::{End, LinkId};
use faro_fabric::{ConnectionId, Identity};
use faro_pool::Lease;
use std::collections::{BTreeMap, VecDeque};

/// What a side knows of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// It has not accepted it.
    Unknown,
    /// It waits for the other side.
    Opening,
    Open,
    /// It has ended there, and was reported.
    Closed,
}

/// One side's state.
pub(super) struct SideState {
    pub(super) site: usize,
    pub(super) connection: ConnectionId,
    pub(super) side: Side,
    /// Reads under way, by token.
    pub(super) reads: BTreeMap<u64, Lease>,
    /// Writes that a device has not reported, with their sources, oldest first.
    pub(super) writes: VecDeque<(u64, std::sync::Arc<Lease>)>,
}

impl SideState {
    fn new(site: usize, connection: ConnectionId, side: Side) -> Self {
        Self {
            site,
            connection,
            side,
            reads: BTreeMap::new(),
            writes: VecDeque::new(),
        }
    }
}

/// One connection.
pub(crate) struct Link {
    pub(super) id: LinkId,
    pub(super) expected: Identity,
    pub(super) location: String,
    /// Of the dialler and of the acceptor.
    pub(super) sides: [SideState; 2],
    /// From the dialler, and to it.
    pub(super) pipes: [Pipe; 2],
    /// Nothing moves any more.
    pub(super) is_cut: bool,
    /// One way.
    pub(super) latency: Time,
    pub(super) bandwidth: u64,
}

impl Link {
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
                SideState::new(site, connection, Side::Opening),
                SideState::new(usize::MAX, ConnectionId(0), Side::Unknown),
            ],
            pipes: Default::default(),
            is_cut: false,
            latency,
            bandwidth,
        }
    }

    pub(super) fn side(&mut self, end: End) -> &mut SideState {
        &mut self.sides[end as usize]
    }

    /// What that end sends.
    pub(super) fn pipe(&mut self, end: End) -> &mut Pipe {
        &mut self.pipes[end as usize]
    }

    pub(super) fn is_open(&self, end: End) -> bool {
        self.sides[end as usize].side == Side::Open
    }
}
