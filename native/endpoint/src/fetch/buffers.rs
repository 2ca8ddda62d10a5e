//! Grants arena memory to the attempts that wait for it.
//!
//! A block is handed out only when it is whole. If attempts took memory page by page, many could
//! each hold a part of a block and wait for pages that the others hold. Four rules prevent that:
//!
//! 1. Memory is leased for whole blocks, all or none
//!    ([`Stream::whole_blocks`](super::deliver::Stream)). An attempt that has it needs no more
//!    memory to hand its blocks out.
//! 2. Requests are served in the order in which they were made, on all fabrics together
//!    ([`PlaceInOrder`](super::PlaceInOrder)). The first one that gets no memory stops the following
//!    ones, so that small blocks cannot overtake a large one for ever.
//! 3. The one exception to rule 1 is the buffer that is sent with a request, before the lengths are
//!    known. It has the size of the larger ones of the last replies, up to a page, and may hold the
//!    beginning of a large block. While more than half of the arena is in use, or an older request
//!    waits on another fabric, requests are sent without it. If only requests that hold such parts are left, or if no memory returns for a
//!    while, the youngest of them are put back: their attempts end, and their blocks are asked for
//!    again later.
//! 4. A silent server keeps no memory from other servers, and requests to it are served last
//!    (`silent`).
//!
//! A request that waits for memory has no deadline as long as memory returns to the arena. If none
//! does, it waits while bytes arrive for others, and no longer than its timeout (`overdue`).

use super::attempt::Attempt;
use super::service::FetchService;
use crate::limits::{RELIEF_WAIT, TICK};
use crate::net::Net;
use faro_fabric::{ConnectionId, Exposure};
use faro_pool::{Lease, Purpose, PAGE_BYTES, SIZE_CLASSES};
use faro_wire::message::{MoreBuffers, RemoteBuffer, ToServer};
use std::time::Instant;

/// The result of granting memory to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryGrant {
    /// It has all the memory that it should have now.
    Served,
    /// Its connection's queue is full. It waits for work there to end, and no other attempt waits
    /// for it.
    NoRoom,
    /// The arena has no memory. All later attempts wait, too.
    NoMemory,
}

impl FetchService {
    /// Returns the buffer that is sent with a request. Returns `None` if more than half of the
    /// arena is in use, if an older request of another fabric waits for memory, if the server is
    /// silent, or if there is no connection.
    pub(super) fn first_buffer(
        &mut self,
        net: &mut Net,
        attempt: &mut Attempt,
    ) -> Option<RemoteBuffer> {
        if self.memory.is_half_full(Purpose::Read)
            || self.heard.is_silent(attempt.connection)
            || self.order.is_held_back(attempt.request.id)
        {
            return None;
        }
        let bytes = self
            .reply_bytes
            .clamp(SIZE_CLASSES[1] as u64, PAGE_BYTES as u64);
        let lease = self.memory.try_lease(bytes as usize, Purpose::Read).ok()?;
        let capacity = lease.capacity() as u32;
        let buffer = offer(net, attempt, lease, capacity);
        if buffer.is_none() {
            self.shortage.gave_back();
        }
        buffer
    }

    /// Notes the length of a reply. A larger one takes effect at once, smaller ones gradually.
    pub(super) fn note_reply(&mut self, bytes: u64) {
        let faded = self.reply_bytes - self.reply_bytes / 16;
        self.reply_bytes = faded.max(bytes);
    }

    /// Queues the attempt for memory, in the order of requests.
    pub(super) fn await_memory(&mut self, id: u64) {
        if let Some(attempt) = self.attempts.get_mut(id) {
            self.awaiting_memory.insert((attempt.request.id, id));
            if attempt.has_no_buffers() && !attempt.reads_under_way() {
                self.starved(id);
            }
        }
    }

    /// Grants memory to the attempts that wait for it, in order, until there is none. Those whose
    /// connection has no room leave the line, and those at silent servers are served last.
    pub(super) fn offer_buffers(&mut self, net: &mut Net) {
        let behind = self.take_behind();
        self.offer_in_order(net, |_| true);
        let line_has_ended = self.awaiting_memory.is_empty();
        if !line_has_ended {
            self.shortage.found_none();
        }
        let goes_on = line_has_ended && !behind.is_empty();
        self.awaiting_memory.extend(behind);
        if goes_on {
            self.offer_in_order(net, Self::has_memory_for_those_behind);
        }
    }

    fn offer_in_order(&mut self, net: &mut Net, may_have_more: impl Fn(&Self) -> bool) {
        while may_have_more(self) {
            let Some((request, id)) = self.awaiting_memory.pop_first() else {
                return;
            };
            let memory_granted = match self.attempts.get(id) {
                None => MemoryGrant::Served,
                Some(attempt) if attempt.is_pulling() => self.pull_more(net, id),
                Some(_) => self.offer_more(net, id),
            };
            match memory_granted {
                MemoryGrant::Served => {}
                MemoryGrant::NoRoom => self.await_room(id),
                MemoryGrant::NoMemory => {
                    self.awaiting_memory.insert((request, id));
                    return;
                }
            }
        }
    }

    /// Returns whether a request gets no memory now because an older one of another fabric waits for
    /// it. The thread is woken when that one has it.
    pub(super) fn is_held_back(&mut self, request: u64) -> bool {
        if !self.order.is_held_back(request) {
            return false;
        }
        let first = self.first_in_line().map_or(request, |f| f.min(request));
        self.order.publish(Some(first));
        let is_held_back = self.order.is_held_back(request);
        self.was_held_back |= is_held_back;
        is_held_back
    }

    /// Publishes the oldest request that waits for memory. Called in each turn, before the thread
    /// waits for events.
    pub(crate) fn publish_first(&self) {
        self.order.publish(self.first_in_line());
    }

    /// Lets the attempt wait for room on its connection. It has the memory that it needs.
    pub(super) fn await_room(&mut self, id: u64) {
        if let Some(attempt) = self.attempts.get_mut(id) {
            attempt.memory_granted();
            let of_request = (attempt.request.id, id);
            self.awaiting_room.insert(attempt.connection, of_request);
        }
    }

    /// Called when work on the connection has ended: the oldest attempt that waits for room there
    /// joins the line for memory again.
    pub(super) fn has_room(&mut self, net: &mut Net, connection: ConnectionId) {
        if let Some(attempt) = self.awaiting_room.pop(connection) {
            self.awaiting_memory.insert(attempt);
            self.offer_buffers(net);
        }
    }

    /// Sends the requests that were put back, as soon as no older one waits for memory.
    pub(super) fn send_put_back(&mut self) {
        let first = self.first_in_line().into_iter();
        let older = first.chain(self.order.first_of_others()).min();
        while let Some(next) = self.put_back.first_entry() {
            if older.is_some_and(|first| first < *next.key()) {
                return;
            }
            self.queue.dispatch(next.remove());
        }
    }

    /// Offers an attempt all the buffers that it should have now, as far as memory and room allow.
    fn offer_more(&mut self, net: &mut Net, id: u64) -> MemoryGrant {
        let Some(mut attempt) = self.attempts.take_out(id) else {
            return MemoryGrant::Served;
        };
        let mut buffers = Vec::new();
        let memory_granted = loop {
            let mut bytes = attempt.next_bytes();
            if bytes == 0 {
                break MemoryGrant::Served;
            }
            if self.is_held_back(attempt.request.id) {
                break MemoryGrant::NoMemory;
            }
            let Ok(leases) = self.memory.try_lease_all(bytes, Purpose::Read) else {
                break MemoryGrant::NoMemory;
            };
            for lease in leases {
                let capacity = bytes.min(lease.capacity() as u64) as u32;
                match offer(net, &mut attempt, lease, capacity) {
                    Some(buffer) => buffers.push(buffer),
                    None => break,
                }
                bytes -= u64::from(capacity);
            }
            if bytes > 0 {
                // The fabric cannot expose more to that peer now, or the connection is closed.
                self.shortage.gave_back();
                break MemoryGrant::NoRoom;
            }
        };
        let starves = memory_granted == MemoryGrant::NoMemory && attempt.has_no_buffers();
        if !starves {
            attempt.memory_granted();
        }
        let connection = attempt.connection;
        self.attempts.put_in(id, attempt);
        if starves {
            self.starved(id);
        }
        if !buffers.is_empty() {
            net.send(
                connection,
                id,
                ToServer::MoreBuffers(MoreBuffers { buffers }),
            );
        }
        memory_granted
    }

    /// Frees memory when attempts that hold parts of blocks wait for each other, for a silent
    /// server, or for an older request of another fabric. Returns whether some gave up their memory.
    pub(super) fn relieve(&mut self, net: &mut Net, now: Instant) -> bool {
        let recently = |at: Instant| now.duration_since(at) < TICK;
        let first = self.first_in_line();
        if first.is_none() && self.shortage.others_wait_since().is_none() {
            return false;
        }
        // Posted work will return memory, unless none has returned for a while: one slow or silent
        // peer must not make the others wait. Under traffic, the time of the last arrival saves the
        // search below.
        let stuck = self.is_stuck(now);
        if stuck {
            self.find_silent(now);
            if self.is_stuck(now) && self.take_from_silent(net, now) {
                return true;
            }
        }
        if !stuck
            && (self.shortage.progressed_lately(now)
                || self.attempts.values().any(Attempt::is_under_way))
        {
            return false;
        }
        // The oldest request of all keeps what it has.
        let oldest = first.filter(|first| !self.order.is_held_back(*first));
        let is_younger = |request: u64| oldest != Some(request);
        let waits = |a: &Attempt| a.starved_since.is_some_and(|at| !recently(at));
        let awaiting = self.awaiting_memory.iter();
        let mut held: Vec<u64> = awaiting
            .filter(|(request, id)| {
                let attempt = self.attempts.get(*id);
                is_younger(*request) && attempt.is_some_and(|a| waits(a) && a.holds_part())
            })
            .map(|(_, id)| *id)
            .collect();
        // The youngest half is put back at once. The order is that of `awaiting_memory`, and the
        // oldest attempt may need no more than this.
        let youngest = held.split_off(held.len() / 2);
        for id in youngest.iter().rev() {
            self.put_back(net, *id);
        }
        !youngest.is_empty()
    }

    /// Returns whether an attempt in line, or a request of another fabric, has waited for memory for
    /// a while and none has returned.
    fn is_stuck(&self, now: Instant) -> bool {
        let is_long = |at: Instant| now.duration_since(at) >= RELIEF_WAIT;
        is_long(self.shortage.memory_returned())
            && (self.is_waited_for(is_long)
                || self.shortage.others_wait_since().is_some_and(is_long))
    }

    /// Ends an attempt. Its request is sent again when no older one waits for memory.
    pub(super) fn put_back(&mut self, net: &mut Net, id: u64) {
        self.tell_server(net, id);
        if let Some(request) = self.end(net, id) {
            self.counters.put_back.add(1);
            self.put_back.insert(request.id, request);
        }
    }
}

/// Exposes the first `capacity` bytes of a lease to the attempt's server.
fn offer(
    net: &mut Net,
    attempt: &mut Attempt,
    lease: Lease,
    capacity: u32,
) -> Option<RemoteBuffer> {
    let range = net.expose(attempt.connection, Exposure::Writable(lease))?;
    let capacity = capacity.min(range.length);
    attempt.offered(range.key, capacity);
    Some(RemoteBuffer {
        key: range.key.into(),
        offset: range.offset.into(),
        length: capacity.into(),
        reserved: 0.into(),
    })
}
