//! Ends connections: by a goodbye, by a loss, or with their process or its device.

use super::link::LinkSide;
use super::pipe::{Packet, QueuedPost};
use super::{Network, Outage};
use crate::core::Core;
use crate::step::{ConnectionEnd, LinkId, NetworkStep, RunStep};
use faro_fabric::{CloseReason, ConnectionId, Event, Outcome};
use std::time::Duration;

/// Maximum time within which the kernel or a device notices a loss, if at all.
const NOTICED: Duration = Duration::from_millis(50);

impl Network {
    /// Closes a connection for a process.
    pub(crate) fn disconnect(
        &mut self,
        core: &mut Core,
        site: usize,
        connection: ConnectionId,
        reason: CloseReason,
    ) {
        let Some((id, end)) = self.sites[site].connections.get(&connection).copied() else {
            return;
        };
        let detail = match &reason {
            CloseReason::Lost { .. } | CloseReason::Peer { .. } => None,
            CloseReason::Unreachable { .. } => None,
            other => Some(other.to_string()),
        };
        core.note(format_args!("close {id} from {end:?}: {reason}"));
        self.end(core, id, end, reason);
        self.send_packet(core, id, end, Packet::Goodbye { detail });
    }

    /// Ends the connection at one end: first all that is pending there, then the connection.
    pub(super) fn end(
        &mut self,
        core: &mut Core,
        id: LinkId,
        end: ConnectionEnd,
        reason: CloseReason,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if link.side(end).side == LinkSide::Closed {
            return;
        }
        let unsent = link.pipe(end).flush();
        let side = link.side(end);
        side.side = LinkSide::Closed;
        let (site, connection) = (side.site, side.connection);
        let its = &mut self.sites[site];
        let outcome = Outcome::Flushed;
        let left = std::mem::take(&mut side.writes);
        let tokens = left.into_iter().map(|(token, _)| token);
        let unsent = unsent.into_iter().filter_map(|post| match post {
            QueuedPost::Write(write) => Some(write.token),
            QueuedPost::Message(_)
            | QueuedPost::ReadRequest { .. }
            | QueuedPost::ReadReply { .. } => None,
        });
        its.events
            .extend(tokens.chain(unsent).map(|token| Event::WriteEnded {
                connection,
                token,
                outcome: outcome.clone(),
            }));
        let reads = std::mem::take(&mut side.reads).into_iter();
        its.events
            .extend(reads.map(|(token, target)| Event::ReadEnded {
                connection,
                token,
                target,
                outcome: outcome.clone(),
            }));
        core.note(format_args!("closed {id} at {end:?}: {reason}"));
        its.connections.remove(&connection);
        its.counters.closed += 1;
        its.events.push_back(Event::Closed { connection, reason });
        let revoked = its.exposures.iter();
        let revoked = revoked.filter(|(_, e)| e.is_revoked && e.connection == connection);
        for key in revoked.map(|(key, _)| *key).collect::<Vec<_>>() {
            its.let_go(key);
        }
        self.wake(core, site);
    }

    /// Loses all connections between two nodes, whatever is in progress on them.
    pub(crate) fn cut_between(&mut self, core: &mut Core, nodes: (usize, usize)) {
        let node = |site: usize| self.sites.get(site).map(|site| site.node);
        let links = self.links.values().filter(|link| {
            let [from, to] = [0, 1].map(|side| node(link.sides[side].site));
            (from, to) == (Some(nodes.0), Some(nodes.1))
                || (to, from) == (Some(nodes.0), Some(nodes.1))
        });
        for id in links.map(|link| link.id).collect::<Vec<_>>() {
            self.cut(core, id);
        }
    }

    fn cut(&mut self, core: &mut Core, id: LinkId) {
        for end in [ConnectionEnd::Dialler, ConnectionEnd::Acceptor] {
            let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_cut) else {
                return;
            };
            let to = link.side(end.other());
            let (site, connection, side) = (to.site, to.connection, to.side);
            let mut lost = link.pipe(end).lose().into_iter();
            // The beginning of an arriving write may already be in memory.
            if let Some(Packet::Write { bytes, target, .. }) = lost.next().map(|f| f.packet) {
                if side == LinkSide::Open {
                    self.land_in_part(core, site, connection, (&bytes, &target));
                }
            }
            let silent = core.dice.chance(self.conditions.silent_losses);
            if !silent {
                let at = core.now + core.dice.time(Duration::ZERO..NOTICED);
                let step = NetworkStep::Noticed(id, end);
                core.at(at, RunStep::Network(step));
            }
        }
        if let Some(link) = self.links.get_mut(&id) {
            link.is_cut = true;
            core.note(format_args!("cut {id}"));
        }
    }

    pub(super) fn noticed(&mut self, core: &mut Core, id: LinkId, end: ConnectionEnd) {
        let side = self.links.get_mut(&id).map(|link| link.side(end).side);
        if matches!(side, Some(LinkSide::Open | LinkSide::Opening)) {
            let detail = "reset".to_owned();
            self.end(core, id, end, CloseReason::Lost { detail });
        }
    }

    /// Removes a process, or its fabric, without a goodbye.
    pub(crate) fn drop_site(&mut self, core: &mut Core, site: usize) {
        let its = &mut self.sites[site];
        its.is_alive = false;
        its.events.clear();
        its.exposures.clear();
        its.dials.clear();
        for (_, (id, end)) in std::mem::take(&mut its.connections) {
            if let Some(link) = self.links.get_mut(&id) {
                drop(link.pipe(end).flush());
                let side = link.side(end);
                side.side = LinkSide::Closed;
                side.reads.clear();
                side.writes.clear();
            }
            self.cut(core, id);
        }
    }

    /// Takes a site's device away.
    pub(crate) fn lose_device(&mut self, core: &mut Core, site: usize) {
        self.sites[site].outage = Outage::Gone;
        self.wake(core, site);
    }

    /// Plans the end of a revocation that the owner waits for.
    pub(crate) fn let_go_later(&mut self, core: &mut Core, site: usize, key: u64) {
        let at = core.now
            + core
                .dice
                .time(self.conditions.latency..self.conditions.latency * 20);
        core.at(at, RunStep::Network(NetworkStep::LetGo { site, key }));
    }

    pub(crate) fn exposures_of(&self, site: usize, connection: ConnectionId) -> usize {
        self.sites[site].exposures_of(connection)
    }
}
