//! Arena memory for the attempts that wait for it.
//!
//! A block is handed out only when it is whole. If attempts took memory page by page, many could each
//! hold a part of a block and wait for pages that the others hold. So:
//!
//! 1. Memory is leased for whole blocks, all or none ([`Stream::whole_blocks`](super::deliver::Stream)).
//!    An attempt that has it needs no more to hand its blocks out.
//! 2. Requests are served in the order in which they were made. The first one that gets no memory
//!    stops the others, so that a large block is not overtaken for ever by small ones.
//! 3. The one exception to 1 is the buffer that goes out with a request, before the lengths are known. Its
//!    size is that of the larger ones of the last replies, up to a page. It may hold the beginning of a large block. Above half of the arena requests go out without it, and
//!    when nothing is under way but requests that hold such parts, the youngest of them are put back:
//!    their attempts end, and they are asked for again later.
//!
//! A request that waits for memory has no deadline as long as memory returns to the arena.

use super::attempt::Attempt;
use super::service::FetchService;
use crate::limits::TICK;
use crate::net::Net;
use faro_fabric::Exposure;
use faro_pool::{Lease, Purpose, PAGE_BYTES, SIZE_CLASSES};
use faro_wire::message::{MoreBuffers, RemoteBuffer, ToServer};
use std::time::Instant;

impl FetchService {
    /// The buffer that goes out with a request; `None`: above half of the arena, or no connection.
    pub(super) fn first_buffer(
        &self,
        net: &mut Net,
        attempt: &mut Attempt,
    ) -> Option<RemoteBuffer> {
        if self.memory.is_half_full(Purpose::Read) {
            return None;
        }
        let bytes = self
            .reply_bytes
            .clamp(SIZE_CLASSES[1] as u64, PAGE_BYTES as u64);
        let lease = self.memory.try_lease(bytes as usize, Purpose::Read).ok()?;
        let capacity = lease.capacity() as u32;
        offer(net, attempt, lease, capacity)
    }

    /// The length of a reply is known: a larger one counts at once, smaller ones count little by little.
    pub(super) fn note_reply(&mut self, bytes: u64) {
        let faded = self.reply_bytes - self.reply_bytes / 16;
        self.reply_bytes = faded.max(bytes);
    }

    /// The attempt wants memory, in the turn of its request.
    pub(super) fn await_memory(&mut self, id: u64) {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            self.awaiting_memory.insert((attempt.request.id, id));
            if attempt.has_no_buffers() && !attempt.reads_under_way() {
                self.starved(id);
            }
        }
    }

    /// Gives memory to the attempts that wait for it, in order, until there is none.
    pub(super) fn offer_buffers(&mut self, net: &mut Net) {
        while let Some((request, id)) = self.awaiting_memory.pop_first() {
            let served = match self.attempts.get(&id) {
                None => true,
                Some(attempt) if attempt.is_pulling() => !self.pull_more(net, id),
                Some(_) => self.offer_more(net, id),
            };
            if !served {
                self.awaiting_memory.insert((request, id));
                return;
            }
        }
    }

    /// Sends requests again whose attempts gave their memory up, as soon as no older one waits for memory.
    pub(super) fn send_put_back(&mut self) {
        while let Some(next) = self.put_back.first_entry() {
            let older = self.awaiting_memory.first();
            if older.is_some_and(|(first, _)| first < next.key()) {
                return;
            }
            self.queue.dispatch(next.remove());
        }
    }

    /// Offers an attempt all the buffers that it should have now. False: memory ran out before.
    fn offer_more(&mut self, net: &mut Net, id: u64) -> bool {
        let Some(mut attempt) = self.attempts.remove(&id) else {
            return true;
        };
        let mut buffers = Vec::new();
        let served = loop {
            let mut bytes = attempt.next_bytes();
            if bytes == 0 {
                break true;
            }
            let Ok(leases) = self.memory.try_lease_all(bytes, Purpose::Read) else {
                break false;
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
                // The fabric cannot expose more to that peer now, or the connection is gone.
                break false;
            }
        };
        let fed = served || !attempt.has_no_buffers();
        if fed {
            attempt.fed();
        }
        let connection = attempt.connection;
        self.attempts.insert(id, attempt);
        if !fed {
            self.starved(id);
        }
        if !buffers.is_empty() {
            net.send(
                connection,
                id,
                ToServer::MoreBuffers(MoreBuffers { buffers }),
            );
        }
        served
    }

    /// Makes room when attempts that hold parts of blocks wait for each other. True: some were put back.
    pub(super) fn relieve(&mut self, net: &mut Net, now: Instant) -> bool {
        let recently = |at: Instant| now.duration_since(at) < TICK;
        let Some((first, _)) = self.awaiting_memory.first().copied() else {
            return false;
        };
        // Something arrived a moment ago. This saves the walk below while there is traffic.
        if recently(self.moved) {
            return false;
        }
        let under_way = |a: &Attempt| !a.has_no_buffers() || a.reads_under_way();
        if self.attempts.values().any(under_way) {
            return false;
        }
        let waits = |a: &Attempt| a.starved_since.is_some_and(|at| !recently(at));
        let awaiting = self.awaiting_memory.iter();
        let mut held: Vec<u64> = awaiting
            .filter(|(request, id)| {
                let attempt = self.attempts.get(id);
                *request != first && attempt.is_some_and(|a| waits(a) && a.holds_part())
            })
            .map(|(_, id)| *id)
            .collect();
        // The youngest half at once, in the order of `awaiting_memory`: the first one may need no more.
        let youngest = held.split_off(held.len() / 2);
        for id in youngest.iter().rev() {
            self.put_back(net, *id);
        }
        !youngest.is_empty()
    }

    /// Ends an attempt; its request is asked for again when no older one waits for memory.
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
