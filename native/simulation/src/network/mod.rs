//! The network between the processes of a simulation, with its faults.
//!
//! ```text
//!   SimulatedFabric ── one for each fabric of a process; implements `Fabric`
//!        │
//!   Network ── sites   each fabric's connections, exposures, and events to report
//!              links   connections, each with two pipes
//!              pipes   queued posts ─▶ packets on the wire ─▶ the other side
//! ```
//! Two kinds of network differ as the real ones do. Over `Tcp` a receiver takes packets when its
//! thread polls, a write ends when the kernel has the bytes, and a revocation takes effect at once.
//! Over `Verbs` writes and reads reach memory without the receiver's process, a write ends when the
//! receiver's device has taken it, and memory that may still be written is returned later.

mod conditions;
mod counters;
mod ending;
mod link;
mod opening;
mod pipe;
mod receive;
mod send;
mod site;

pub(crate) use conditions::Conditions;
pub(crate) use site::{ProcessSpeed, SimulatedSite};

use crate::core::{Core, Time};
use crate::step::{ConnectionEnd, LinkId, NetworkStep, RunStep};
use faro_fabric::{
    ConnectionId, Event, Exposure, FabricKind, Identity, RemoteRange, RevokeStatus, Waker,
};
use link::SimulatedLink;
use std::collections::BTreeMap;
use std::time::Duration;

/// The state of a site's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outage {
    /// It works.
    None,
    /// It is gone for good.
    Gone,
}

/// The network.
pub(crate) struct Network {
    pub(crate) conditions: Conditions,
    pub(crate) sites: Vec<SimulatedSite>,
    links: BTreeMap<LinkId, SimulatedLink>,
    next_link: LinkId,
    /// Pairs of nodes with slow links, and the factor by which they are slower.
    pub(crate) slow: BTreeMap<(usize, usize), u64>,
}

impl Network {
    pub(crate) fn new(conditions: Conditions) -> Self {
        Self {
            conditions,
            sites: Vec::new(),
            links: BTreeMap::new(),
            next_link: 1,
            slow: BTreeMap::new(),
        }
    }

    /// Adds a fabric of a node's process and returns its number.
    pub(crate) fn add_site(
        &mut self,
        place: (usize, usize),
        kind: FabricKind,
        identity: Identity,
        location: String,
    ) -> usize {
        self.sites
            .push(SimulatedSite::new(place, kind, identity, location));
        self.sites.len() - 1
    }

    pub(crate) fn waker(&self, site: usize) -> Waker {
        self.sites[site].waker()
    }

    pub(crate) fn expose(
        &mut self,
        site: usize,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> RemoteRange {
        self.sites[site].expose(connection, exposure)
    }

    pub(crate) fn revoke(&mut self, site: usize, key: u64) -> RevokeStatus {
        self.sites[site].revoke(key)
    }

    pub(crate) fn step(&mut self, core: &mut Core, step: NetworkStep) {
        match step {
            NetworkStep::Dialled(link) => self.dialled(core, link),
            NetworkStep::GivenUp(link) => self.given_up(core, link),
            NetworkStep::Refused(link, refusal) => self.refused(core, link, refusal),
            NetworkStep::Arrived(link, from) => self.arrived(core, link, from),
            NetworkStep::Noticed(link, end) => self.noticed(core, link, end),
            NetworkStep::LetGo { site, key } => {
                self.sites[site].let_go(key);
                self.wake(core, site);
            }
        }
    }

    /// Plans a turn of the site's thread within 20 µs.
    pub(crate) fn wake(&mut self, core: &mut Core, site: usize) {
        let soon = core
            .dice
            .time(Duration::from_micros(1)..Duration::from_micros(20));
        self.turn_at(core, site, core.now + soon);
    }

    /// Plans a turn of the site's thread for that time, unless an earlier one is planned.
    pub(crate) fn turn_at(&mut self, core: &mut Core, site: usize, at: Time) {
        let its = &mut self.sites[site];
        let at = at.max(its.last_turn + its.pace.pause);
        if its.turn_at.is_none_or(|before| before > at) {
            its.turn_at = Some(at);
            core.at(at, RunStep::Turn { site });
        }
    }

    /// Polls a site's fabric for its thread. Returns true if the device is gone.
    pub(crate) fn poll(
        &mut self,
        core: &mut Core,
        site: usize,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> bool {
        let Some(more) = self.report(core, site, events) else {
            return true;
        };
        self.sites[site].waits = timeout;
        match more {
            true => self.wake(core, site),
            false => self.turn_at(core, site, core.now + timeout),
        }
        false
    }

    /// Takes what has arrived for a site, and reports its events. Returns whether more has arrived,
    /// or `None` if the device is gone.
    pub(crate) fn report(
        &mut self,
        core: &mut Core,
        site: usize,
        events: &mut Vec<Event>,
    ) -> Option<bool> {
        if self.sites[site].outage == Outage::Gone {
            return None;
        }
        self.accept(core, site);
        let more = self.receive(core, site);
        events.extend(self.sites[site].events.drain(..));
        Some(more)
    }

    /// Returns the counters of a site, by the names that real fabrics give them.
    pub(crate) fn counters(&self, site: usize) -> Vec<(&'static str, u64)> {
        let its = &self.sites[site];
        its.counters.named(its.exposures.len())
    }

    /// Returns whether the site's device works.
    pub(crate) fn has_device(&self, site: usize) -> bool {
        self.sites[site].outage == Outage::None
    }

    /// Returns the number of queued posts and of packets on their way, over connections that are
    /// open at both ends.
    pub(crate) fn under_way(&self) -> usize {
        let open = self.links.values().filter(|link| {
            !link.is_cut
                && link.is_open(ConnectionEnd::Dialler)
                && link.is_open(ConnectionEnd::Acceptor)
        });
        let pipes = open.flat_map(|link| &link.pipes);
        pipes.map(|pipe| pipe.queued.len() + pipe.wire.len()).sum()
    }
}
