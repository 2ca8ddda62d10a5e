//! Takes packets that arrive at a process or at its device.

use super::link::LinkSide;
use super::pipe::Packet;
use super::Network;
use crate::core::Core;
use crate::step::{ConnectionEnd, LinkId};
use faro_fabric::{CloseReason, ConnectionId, Event, Exposure, Outcome, RemoteRange};

impl Network {
    /// Handles the arrival of a packet from that end: a device takes it at once, a process when it
    /// polls.
    pub(super) fn arrived(&mut self, core: &mut Core, id: LinkId, from: ConnectionEnd) {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_cut) else {
            return;
        };
        let to = link.side(from.other());
        match to.side {
            // The connection has ended here: the packet is dropped. The other end learns of it by
            // the goodbye.
            LinkSide::Closed => while link.pipe(from).take(core.now, |_| true).is_some() {},
            // The dialler has ended a connection that was not accepted yet, so nothing is left to
            // accept.
            LinkSide::Unknown => {
                if link.side(from).side == LinkSide::Closed {
                    link.is_cut = true;
                }
            }
            LinkSide::Opening | LinkSide::Open => {
                let site = to.site;
                if self.sites[site].kind.is_by_device() {
                    while self.take_one(core, id, from, Packet::is_one_sided) {}
                }
                self.wake(core, site);
            }
        }
    }

    /// Takes the packets that have arrived for a process, from all its connections in turn. Returns
    /// true if there are more.
    pub(super) fn receive(&mut self, core: &mut Core, site: usize) -> bool {
        let mut room = self.sites[site].pace.packets;
        let mut from: Vec<(LinkId, ConnectionEnd)> =
            self.sites[site].connections.values().copied().collect();
        if from.is_empty() {
            return false;
        }
        // The kernel may report any connection first, so the dice choose it.
        let first = core.dice.place(from.len());
        from.rotate_left(first);
        for (id, end) in from {
            while self.take_one(core, id, end.other(), |_| true) {
                room -= 1;
                if room == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Takes one packet that has arrived and that `which` accepts. Returns whether there was one.
    fn take_one(
        &mut self,
        core: &mut Core,
        id: LinkId,
        from: ConnectionEnd,
        which: impl Fn(&Packet) -> bool,
    ) -> bool {
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_cut) else {
            return false;
        };
        let Some((at, packet)) = link.pipe(from).take(core.now, which) else {
            return false;
        };
        let bytes = packet.bytes();
        core.note(format_args!(
            "{} {bytes} on {id} from {from:?}",
            packet.name()
        ));
        self.deliver(core, id, from.other(), at, packet);
        // The packet that was taken makes room in the window for more.
        self.pump(core, id, from);
        true
    }

    /// Delivers the packet that was at place `at` of its pipe.
    fn deliver(
        &mut self,
        core: &mut Core,
        id: LinkId,
        end: ConnectionEnd,
        at: usize,
        packet: Packet,
    ) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let side = link.side(end);
        let (site, connection) = (side.site, side.connection);
        self.sites[site].counters.received(&packet);
        match packet {
            Packet::Welcome => self.welcomed(core, id),
            Packet::Message(message) => {
                let event = Event::Message {
                    connection,
                    message,
                };
                self.sites[site].events.push_back(event);
            }
            Packet::Write {
                bytes,
                target,
                immediate,
                last,
            } => {
                let length = bytes.len() as u32;
                let taken = self.land(site, connection, &bytes, &target, last);
                self.sites[site].counters.written(taken, bytes.len());
                let by_device = self.sites[site].kind.is_by_device();
                if let Some(immediate) = immediate.filter(|_| taken) {
                    let key = target.key;
                    let written = Packet::Written {
                        key,
                        immediate,
                        length,
                    };
                    match (by_device, self.links.get_mut(&id)) {
                        // The process learns of it when it has taken what came before.
                        (true, Some(link)) => {
                            link.pipe(end.other()).requeue(core.now, at, written);
                        }
                        _ => self.sites[site].written(connection, key, immediate, length),
                    }
                }
                if by_device {
                    self.send_packet(core, id, end, Packet::WriteReply { taken });
                }
            }
            Packet::Written {
                key,
                immediate,
                length,
            } => self.sites[site].written(connection, key, immediate, length),
            Packet::WriteReply { taken } => {
                if let Some((token, source)) = side.writes.pop_front() {
                    drop(source);
                    let outcome = match taken {
                        true => Outcome::Done,
                        false => Outcome::Refused,
                    };
                    self.sites[site].events.push_back(Event::WriteEnded {
                        connection,
                        token,
                        outcome,
                    });
                }
            }
            Packet::ReadRequest { token, source } => {
                let bytes = self.sites[site].readable(connection, &source);
                self.reply(core, id, end, token, bytes);
            }
            Packet::ReadReply { token, bytes } => {
                let Some(mut target) = side.reads.remove(&token) else {
                    return;
                };
                let outcome = match bytes {
                    Some(bytes) => {
                        target.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
                        Outcome::Done
                    }
                    None => Outcome::Refused,
                };
                self.sites[site].events.push_back(Event::ReadEnded {
                    connection,
                    token,
                    target,
                    outcome,
                });
            }
            Packet::Goodbye { detail } => {
                let reason = match detail {
                    Some(detail) => CloseReason::Peer { detail },
                    None => CloseReason::Lost {
                        detail: "the stream ended".to_owned(),
                    },
                };
                self.end(core, id, end, reason);
            }
        }
    }

    /// Writes a peer's bytes to memory, if the peer may write there. Returns whether it may.
    fn land(
        &mut self,
        site: usize,
        connection: ConnectionId,
        bytes: &[u8],
        target: &RemoteRange,
        last: bool,
    ) -> bool {
        let its = &mut self.sites[site];
        let Some((exposed, range)) = its.writable(connection, target, bytes.len()) else {
            return false;
        };
        exposed.is_settled |= last;
        if let Exposure::Writable(lease) = &mut exposed.exposure {
            lease.bytes_mut()[range].copy_from_slice(bytes);
        }
        true
    }

    /// Writes a random part of a write to memory, because its connection is lost in the middle.
    pub(super) fn land_in_part(
        &mut self,
        core: &mut Core,
        site: usize,
        connection: ConnectionId,
        (bytes, target): (&[u8], &RemoteRange),
    ) {
        let part = core.dice.place(bytes.len() + 1);
        let its = &mut self.sites[site];
        if let Some((exposed, range)) = its.writable(connection, target, bytes.len()) {
            if let Exposure::Writable(lease) = &mut exposed.exposure {
                lease.bytes_mut()[range][..part].copy_from_slice(&bytes[..part]);
            }
        }
    }
}
