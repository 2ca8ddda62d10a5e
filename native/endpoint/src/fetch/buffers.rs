//! Buffers for the attempts that wait for arena memory.

use super::attempt::Attempt;
use super::service::FetchService;
use crate::net::Net;
use faro_fabric::Exposure;
use faro_pool::Purpose;
use faro_wire::message::{MoreBuffers, RemoteBuffer, ToServer};
use std::time::Instant;

impl FetchService {
    /// Exposes one lease to the attempt's server; `None`: no memory, or no connection.
    pub(super) fn offer(
        &self,
        net: &mut Net,
        attempt: &mut Attempt,
        bytes: usize,
    ) -> Option<RemoteBuffer> {
        let lease = self.memory.try_lease(bytes, Purpose::Read).ok()?;
        let range = net.expose(attempt.connection, Exposure::Writable(lease))?;
        attempt.offered(range);
        Some(RemoteBuffer {
            key: range.key.into(),
            offset: range.offset.into(),
            length: range.length.into(),
            reserved: 0.into(),
        })
    }

    /// The attempt wants memory, in its turn.
    pub(super) fn await_memory(&mut self, id: u64) {
        if !self.awaiting_memory.contains(&id) {
            self.awaiting_memory.push_back(id);
        }
    }

    /// Gives memory to the attempts that wait for it, in order, until there is none.
    pub(super) fn offer_buffers(&mut self, net: &mut Net) {
        while let Some(id) = self.awaiting_memory.pop_front() {
            let served = match self.attempts.get(&id) {
                None => true,
                Some(attempt) if attempt.is_pulling() => !self.pull_more(net, id),
                Some(_) => self.offer_more(net, id),
            };
            if !served {
                self.awaiting_memory.push_front(id);
                return self.note_starved();
            }
        }
    }

    /// Offers an attempt all the buffers that it should have now. False: memory ran out before.
    fn offer_more(&mut self, net: &mut Net, id: u64) -> bool {
        let Some(mut attempt) = self.attempts.remove(&id) else {
            return true;
        };
        let mut buffers = Vec::new();
        let served = loop {
            let bytes = attempt.next_buffer_bytes();
            if bytes == 0 {
                break true;
            }
            match self.offer(net, &mut attempt, bytes) {
                Some(buffer) => buffers.push(buffer),
                None => break false,
            }
        };
        attempt.starved_since = attempt.starved_since.filter(|_| buffers.is_empty());
        let connection = attempt.connection;
        self.attempts.insert(id, attempt);
        if !buffers.is_empty() {
            let more = MoreBuffers { buffers };
            net.send(connection, id, ToServer::MoreBuffers(more));
        }
        served
    }

    /// An attempt that has no buffer and can get none has a shorter deadline, which begins now.
    fn note_starved(&mut self) {
        for id in &self.awaiting_memory {
            let attempt = self.attempts.get_mut(id);
            if let Some(attempt) = attempt.filter(|a| a.has_no_buffers()) {
                attempt.starved_since.get_or_insert_with(Instant::now);
            }
        }
    }
}
