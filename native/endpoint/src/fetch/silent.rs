//! Keeps servers that send nothing from holding memory that others wait for.
//!
//! In a shortage, the buffers of a silent server are taken from it, and each of its requests is
//! asked again without a buffer, which costs no memory. The deadline stays the same, because
//! nothing has arrived for the request. From then on its attempts wait *behind*: they get memory
//! after all others, and during the shortage only while less than half of the arena is in use.
//!
//! ```text
//!   a connection                                waits behind until something arrives on it
//!   a request whose server answers only others  waits behind until bytes arrive for it
//! ```
//! After that they are in line again, by the age of their requests. Posted reads keep their memory:
//! only the end of the connection returns it.

use super::attempt::Attempt;
use super::FetchService;
use crate::limits::SILENCE_IN_SHORTAGE;
use crate::net::Net;
use faro_fabric::ConnectionId;
use faro_pool::Purpose;
use std::collections::BTreeSet;
use std::time::Instant;

impl FetchService {
    fn is_behind(&self, attempt: &Attempt) -> bool {
        attempt.request.was_taken || self.heard.is_silent(attempt.connection)
    }

    /// Returns false if no attempt waits behind, which saves the search.
    fn has_behind(&self) -> bool {
        self.any_taken || self.heard.has_silent()
    }

    /// Removes the attempts that wait behind from `awaiting_memory`, and returns them.
    pub(super) fn take_behind(&mut self) -> Vec<(u64, u64)> {
        if !self.has_behind() {
            return Vec::new();
        }
        let awaiting = self.awaiting_memory.iter();
        let behind = awaiting.filter(|(_, id)| {
            let attempt = self.attempts.get(*id);
            attempt.is_some_and(|a| self.is_behind(a))
        });
        let behind: Vec<_> = behind.copied().collect();
        for attempt in &behind {
            self.awaiting_memory.remove(attempt);
        }
        behind
    }

    /// Returns whether attempts behind may have memory: no request of another fabric waits, and half
    /// of the arena is free or the shortage is over.
    pub(super) fn has_memory_for_those_behind(&self) -> bool {
        self.order.first_of_others().is_none()
            && (!self.memory.is_half_full(Purpose::Read) || self.shortage.is_over())
    }

    /// Returns the oldest request in line for memory.
    pub(super) fn first_in_line(&self) -> Option<u64> {
        let is_in_line = |(_, id): &&(u64, u64)| {
            let attempt = self.attempts.get(*id);
            attempt.is_none_or(|a| !self.is_behind(a))
        };
        let (request, _) = match self.has_behind() {
            false => self.awaiting_memory.first(),
            true => self.awaiting_memory.iter().find(is_in_line),
        }?;
        Some(*request)
    }

    /// Returns whether an attempt in line has waited for memory for long.
    pub(super) fn is_waited_for(&self, is_long: impl Fn(Instant) -> bool) -> bool {
        let mut awaiting = self.awaiting_memory.iter();
        awaiting.any(|(_, id)| {
            let attempt = self.attempts.get(*id);
            attempt.is_some_and(|a| a.starved_since.is_some_and(&is_long) && !self.is_behind(a))
        })
    }

    /// Notes the servers that have sent nothing for [`SILENCE_IN_SHORTAGE`].
    pub(super) fn find_silent(&mut self, now: Instant) {
        let is_long = |at: Instant| now.duration_since(at) >= SILENCE_IN_SHORTAGE;
        let attempts = self.attempts.values();
        let due = attempts.filter(|a| a.is_under_way() && is_long(a.last_progress()));
        let connections: BTreeSet<ConnectionId> = due.map(|a| a.connection).collect();
        for connection in connections {
            if self.heard.nothing_for(connection, SILENCE_IN_SHORTAGE, now) {
                self.heard.note_silent(connection);
            }
        }
    }

    /// Takes the buffers from all attempts at silent servers. If none has any, takes them from the
    /// younger half of the attempts for which nothing has arrived although their server answers
    /// others. Returns whether any attempt had buffers.
    pub(super) fn take_from_silent(&mut self, net: &mut Net, now: Instant) -> bool {
        let is_long = |at: Instant| now.duration_since(at) >= SILENCE_IN_SHORTAGE;
        let all = self.attempts.iter();
        let holding = all.filter(|(_, a)| !a.has_no_buffers());
        let (silent, others): (Vec<_>, Vec<_>) =
            holding.partition(|(_, a)| self.heard.is_silent(a.connection));
        let place = |(id, a): (u64, &Attempt)| (a.request.id, id);
        let mut taken: Vec<_> = silent.into_iter().map(place).collect();
        taken.sort_unstable();
        if taken.is_empty() {
            let slow = others
                .into_iter()
                .filter(|(_, a)| is_long(a.last_progress()));
            taken = slow.map(place).collect();
            taken.sort_unstable();
            taken = taken.split_off(taken.len() / 2);
        }
        for (_, id) in &taken {
            self.ask_again(net, *id);
        }
        !taken.is_empty()
    }

    /// Ends an attempt and sends its request again on the same connection, without a buffer.
    fn ask_again(&mut self, net: &mut Net, id: u64) {
        self.tell_server(net, id);
        let attempt = self.attempts.get(id);
        let Some((connection, deadline)) = attempt.map(|a| (a.connection, a.deadline)) else {
            return;
        };
        if let Some(mut request) = self.end(net, id) {
            request.was_taken = true;
            self.counters.put_back.add(1);
            self.issue_before(net, connection, request, deadline);
        }
    }

    /// Updates `any_taken` from the current attempts.
    pub(super) fn look_for_taken(&mut self) {
        if self.any_taken {
            let attempts = self.attempts.values().map(|a| &a.request);
            self.any_taken = attempts.into_iter().any(|request| request.was_taken);
        }
    }
}
