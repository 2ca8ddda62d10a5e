//! Moves posts of processes to the wire.

use super::pipe::{Packet, QueuedPost};
use super::Network;
use crate::core::{Core, Time};
use crate::step::{ConnectionEnd, LinkId, NetworkStep, RunStep};
use faro_fabric::{
    ConnectionId, Event, Message, Outcome, Read, RejectedPost, Write, WritePart, WriteSource,
};

impl Network {
    /// Returns the link of a connection that is open.
    fn open(&self, site: usize, connection: ConnectionId) -> Option<(LinkId, ConnectionEnd)> {
        let (id, end) = *self.sites[site].connections.get(&connection)?;
        self.links.get(&id)?.is_open(end).then_some((id, end))
    }

    pub(crate) fn is_open(&self, site: usize, connection: ConnectionId) -> bool {
        self.open(site, connection).is_some()
    }

    /// Queues a post of a process.
    ///
    /// # Errors
    /// Returns `Full` or `NotConnected` with the post.
    fn post<T>(
        &mut self,
        core: &mut Core,
        (site, connection): (usize, ConnectionId),
        what: T,
        bytes: usize,
        post: impl FnOnce(T, &mut super::link::SideState) -> QueuedPost,
    ) -> Result<(), RejectedPost<T>> {
        let Some((id, end)) = self.open(site, connection) else {
            return Err(RejectedPost::NotConnected(what, connection));
        };
        let Some(link) = self.links.get_mut(&id) else {
            return Err(RejectedPost::NotConnected(what, connection));
        };
        if !link.pipe(end).has_room(bytes, &self.conditions) {
            link.pipe(end).sender_waits = true;
            self.sites[site].counters.rejected_full += 1;
            return Err(RejectedPost::Full(what));
        }
        let post = post(what, link.side(end));
        link.pipe(end).push(post);
        self.pump(core, id, end);
        Ok(())
    }

    pub(crate) fn send(
        &mut self,
        core: &mut Core,
        from: (usize, ConnectionId),
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        let bytes = message.body.len();
        self.post(core, from, message, bytes, |message, _| {
            QueuedPost::Message(message)
        })
    }

    pub(crate) fn write(
        &mut self,
        core: &mut Core,
        from: (usize, ConnectionId),
        write: Write,
    ) -> Result<(), RejectedPost<Write>> {
        let bytes = write.source.length();
        self.post(core, from, write, bytes, |write, _| {
            QueuedPost::Write(write)
        })
    }

    pub(crate) fn read(
        &mut self,
        core: &mut Core,
        from: (usize, ConnectionId),
        read: Read,
    ) -> Result<(), RejectedPost<Read>> {
        let bytes = read.source.length as usize;
        self.post(core, from, read, bytes, |read, side| {
            side.reads.insert(read.token, read.target);
            QueuedPost::ReadRequest {
                token: read.token,
                source: read.source,
            }
        })
    }

    /// Queues the answer to a read, even if the queue is full.
    pub(super) fn reply(
        &mut self,
        core: &mut Core,
        id: LinkId,
        from: ConnectionEnd,
        token: u64,
        bytes: Option<Vec<u8>>,
    ) {
        if let Some(link) = self.links.get_mut(&id) {
            link.pipe(from).push(QueuedPost::ReadReply { token, bytes });
            self.pump(core, id, from);
        }
    }

    /// Sends queued posts as far as the window allows.
    pub(super) fn pump(&mut self, core: &mut Core, id: LinkId, from: ConnectionEnd) {
        let mut sent = false;
        loop {
            let Some(link) = self.links.get_mut(&id) else {
                return;
            };
            let site = link.side(from).site;
            let Some(post) = link.pipe(from).next(&self.conditions) else {
                break;
            };
            sent = true;
            let packet = match post {
                QueuedPost::Message(message) => Packet::Message(message),
                QueuedPost::ReadRequest { token, source } => Packet::ReadRequest { token, source },
                QueuedPost::ReadReply { token, bytes } => {
                    let bytes = bytes.map(|bytes| self.on_the_wire(core, bytes));
                    Packet::ReadReply { token, bytes }
                }
                QueuedPost::Write(Write {
                    token,
                    source,
                    target,
                    immediate,
                    last,
                }) => {
                    let parts: Vec<&[u8]> = source.parts().iter().map(WritePart::bytes).collect();
                    let bytes = parts.concat();
                    self.write_left(id, from, token, source);
                    Packet::Write {
                        bytes: self.on_the_wire(core, bytes),
                        target,
                        immediate,
                        last,
                    }
                }
            };
            self.send_packet(core, id, from, packet);
            if !self.sites[site].events.is_empty() {
                self.wake(core, site);
            }
        }
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let site = link.side(from).site;
        if sent && std::mem::take(&mut link.pipe(from).sender_waits) {
            self.wake(core, site);
        }
    }

    /// Notes that the bytes of a write have left. A kernel reports the write's end now, a device
    /// when the bytes have arrived.
    fn write_left(&mut self, id: LinkId, from: ConnectionEnd, token: u64, source: WriteSource) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let side = link.side(from);
        let site = &mut self.sites[side.site];
        if site.kind.is_by_device() {
            side.writes.push_back((token, source));
        } else {
            site.events.push_back(Event::WriteEnded {
                connection: side.connection,
                token,
                outcome: Outcome::Done,
            });
        }
    }

    /// Returns the bytes as they arrive: a bit may have flipped.
    fn on_the_wire(&self, core: &mut Core, mut bytes: Vec<u8>) -> Vec<u8> {
        if !bytes.is_empty() && core.dice.chance(self.conditions.corrupt) {
            let at = core.dice.place(bytes.len());
            bytes[at] ^= 1 << core.dice.place(8);
            core.note(format_args!("a bit flips"));
        }
        bytes
    }

    pub(super) fn send_packet(
        &mut self,
        core: &mut Core,
        id: LinkId,
        from: ConnectionEnd,
        packet: Packet,
    ) {
        let jitter = core.dice.time(Time::ZERO..self.conditions.jitter);
        let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_cut) else {
            return;
        };
        let (delay, bandwidth) = (link.latency + jitter, link.bandwidth);
        let site = link.side(from).site;
        self.sites[site].counters.sent(&packet);
        let arrives = link.pipe(from).send(core.now, delay, bandwidth, packet);
        core.at(arrives, RunStep::Network(NetworkStep::Arrived(id, from)));
    }
}
