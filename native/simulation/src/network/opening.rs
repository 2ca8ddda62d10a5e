//! Opens connections.

use super::link::{LinkSide, SimulatedLink};
use super::pipe::Packet;
use super::{Network, Outage};
use crate::core::{Core, Time};
use crate::step::{ConnectRefusal, ConnectionEnd, LinkId, NetworkStep, RunStep};
use faro_fabric::{CloseReason, ConnectionId, Event, Identity};
use faro_secure::HandshakeError;
use std::time::Duration;

/// Time after a dial's deadline at which the network gives it up.
const LATE: Duration = Duration::from_millis(10);

impl Network {
    /// Begins a connection for a process.
    pub(crate) fn dial(
        &mut self,
        core: &mut Core,
        site: usize,
        location: &str,
        expected: &Identity,
        deadline: Time,
    ) -> ConnectionId {
        let id = self.next_link;
        self.next_link += 1;
        let speed = self.speed(core, site, location);
        let connection = self.sites[site].new_connection(id, ConnectionEnd::Dialler);
        let to = (location.to_owned(), expected.clone());
        let link = SimulatedLink::new(id, site, connection, to, speed);
        core.at(
            core.now + link.latency,
            RunStep::Network(NetworkStep::Dialled(id)),
        );
        core.at(deadline + LATE, RunStep::Network(NetworkStep::GivenUp(id)));
        core.note(format_args!("dial {id} {location}"));
        self.links.insert(id, link);
        connection
    }

    /// Returns the latency and bandwidth of a new link.
    fn speed(&self, core: &mut Core, site: usize, location: &str) -> (Time, u64) {
        let jitter = core.dice.time(Time::ZERO..self.conditions.jitter);
        let from = self.sites[site].node;
        let to = self.find(location).map_or(from, |to| self.sites[to].node);
        let slower = self.slow.get(&(from.min(to), from.max(to))).unwrap_or(&1);
        let latency = self.conditions.latency + jitter;
        (latency, self.conditions.bandwidth / slower)
    }

    fn find(&self, location: &str) -> Option<usize> {
        let is_there = |site: &super::SimulatedSite| {
            site.is_alive && site.outage == Outage::None && site.location == location
        };
        self.sites.iter().position(is_there)
    }

    pub(super) fn dialled(&mut self, core: &mut Core, id: LinkId) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        if link.is_cut {
            return;
        }
        match self.find(&link.location) {
            Some(site) => {
                self.sites[site].dials.push_back(id);
                self.wake(core, site);
            }
            None => {
                let at = core.now + link.latency;
                let step = NetworkStep::Refused(id, ConnectRefusal::Nobody);
                core.at(at, RunStep::Network(step));
            }
        }
    }

    /// Accepts, for a process, the connections that peers have begun.
    pub(super) fn accept(&mut self, core: &mut Core, site: usize) {
        while let Some(id) = self.sites[site].dials.pop_front() {
            let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_cut) else {
                continue;
            };
            let its = &mut self.sites[site];
            if link.expected != its.identity {
                let step = NetworkStep::Refused(id, ConnectRefusal::AnotherEndpoint);
                core.at(core.now + link.latency, RunStep::Network(step));
                continue;
            }
            let connection = its.new_connection(id, ConnectionEnd::Acceptor);
            let acceptor = link.side(ConnectionEnd::Acceptor);
            (acceptor.site, acceptor.connection) = (site, connection);
            acceptor.side = LinkSide::Open;
            let dialler = link.side(ConnectionEnd::Dialler).site;
            let endpoint = self.sites[dialler].identity.endpoint;
            let accepted = Event::Accepted {
                connection,
                endpoint,
            };
            self.sites[site].events.push_back(accepted);
            self.sites[site].counters.accepted += 1;
            core.note(format_args!("accept {id}"));
            self.send_packet(core, id, ConnectionEnd::Acceptor, Packet::Welcome);
        }
    }

    /// Tells the dialler that the acceptor has accepted.
    pub(super) fn welcomed(&mut self, core: &mut Core, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let endpoint = link.expected.endpoint;
        let dialler = link.side(ConnectionEnd::Dialler);
        if dialler.side == LinkSide::Opening {
            dialler.side = LinkSide::Open;
            let (site, connection) = (dialler.site, dialler.connection);
            let connected = Event::Connected {
                connection,
                endpoint,
            };
            self.sites[site].events.push_back(connected);
            self.sites[site].counters.connected += 1;
            core.note(format_args!("connected {id}"));
        }
    }

    pub(super) fn given_up(&mut self, core: &mut Core, id: LinkId) {
        self.not_opened(core, id, |location| CloseReason::Unreachable {
            location,
            detail: "no answer before the deadline".to_owned(),
        });
    }

    pub(super) fn refused(&mut self, core: &mut Core, id: LinkId, refusal: ConnectRefusal) {
        self.not_opened(core, id, |location| match refusal {
            ConnectRefusal::Nobody => CloseReason::Unreachable {
                location,
                detail: "nobody is there".to_owned(),
            },
            // The acceptor refuses it: a HELLO for another endpoint is made with another key.
            ConnectRefusal::AnotherEndpoint => CloseReason::Peer {
                detail: HandshakeError::Unproven { message: "HELLO" }.to_string(),
            },
        });
    }

    fn not_opened(&mut self, core: &mut Core, id: LinkId, why: impl FnOnce(String) -> CloseReason) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.side(ConnectionEnd::Dialler).side == LinkSide::Opening {
            let reason = why(link.location.clone());
            self.end(core, id, ConnectionEnd::Dialler, reason);
            self.send_packet(
                core,
                id,
                ConnectionEnd::Dialler,
                Packet::Goodbye { detail: None },
            );
        }
    }
}
