//! Ends attempts that have waited too long for their server or for arena memory.

use super::attempt::Attempt;
use super::FetchService;
use crate::limits::MEMORY_WAIT;
use crate::net::Net;
use faro_fabric::CloseReason;
use faro_sync::clock;
use faro_wire::codes::FetchErrorCode;
use std::time::{Duration, Instant};

/// The action for an attempt that is due.
enum WaitVerdict {
    /// Look again at that time.
    Later(Instant),
    /// Ask again later: it has waited for memory for so long that its server is about to end its
    /// own part.
    PutBack,
    /// Fail it: it has waited for that time, and no memory has returned to the arena.
    NoMemory(Duration),
    /// Fail it: nothing has arrived for it for its idle timeout.
    TimedOut,
}

impl FetchService {
    /// Notes that the attempt waits for arena memory. It has no deadline until it has the memory.
    pub(super) fn starved(&mut self, id: u64) {
        let Some(attempt) = self.attempts.get_mut(id) else {
            return;
        };
        if attempt.starved_since.is_none() {
            let now = clock::now();
            attempt.starved_since = Some(now);
            attempt.request.starved_since.get_or_insert(now);
            let at = now + MEMORY_WAIT.min(attempt.request.idle_timeout / 2);
            self.attempts.look_earlier(id, at);
        }
    }

    /// Ends the attempts whose deadline has passed.
    pub(super) fn end_overdue(&mut self, net: &mut Net, now: Instant) {
        while let Some(id) = self.attempts.due(now) {
            let Some(attempt) = self.attempts.get(id) else {
                continue;
            };
            match self.judge_wait(attempt, now) {
                WaitVerdict::Later(at) => self.attempts.look_at(id, at),
                WaitVerdict::PutBack => self.put_back(net, id),
                WaitVerdict::NoMemory(wait) => {
                    let wait = wait.as_millis();
                    let detail = format!("no memory returned to the arena for {wait} ms");
                    self.give_up(net, id, FetchErrorCode::PoolExhausted, &detail);
                }
                WaitVerdict::TimedOut => self.time_out(net, id, now),
            }
        }
    }

    fn judge_wait(&self, attempt: &Attempt, now: Instant) -> WaitVerdict {
        let Some(since) = attempt.starved_since else {
            let deadline = self.deadline_of(attempt);
            return match deadline <= now {
                true => WaitVerdict::TimedOut,
                false => WaitVerdict::Later(deadline),
            };
        };
        let put_back = since + attempt.request.idle_timeout / 2;
        match self.no_memory_at(attempt, since) {
            (from, at) if at <= now => WaitVerdict::NoMemory(now.duration_since(from)),
            _ if put_back <= now => WaitVerdict::PutBack,
            (_, at) => WaitVerdict::Later(at.min(put_back)),
        }
    }

    /// Returns the time since which an attempt that waits for memory has waited in vain, and the
    /// time at which it fails. While bytes arrive for others, memory is about to return, unless
    /// they are so few that it would take too long.
    fn no_memory_at(&self, attempt: &Attempt, since: Instant) -> (Instant, Instant) {
        let since = attempt.request.starved_since.unwrap_or(since);
        let from = since.max(self.shortage.memory_returned());
        let quiet = from.max(self.shortage.enough_arrived()) + MEMORY_WAIT;
        let latest = from + attempt.request.idle_timeout.max(MEMORY_WAIT);
        (from, quiet.min(latest))
    }

    /// Returns the deadline of an attempt that has the memory it needs. An attempt that waits for
    /// room on its connection depends on other attempts there: its server is silent only if nothing
    /// arrives for them either.
    fn deadline_of(&self, attempt: &Attempt) -> Instant {
        let waits = self
            .awaiting_room
            .has(attempt.connection, attempt.request.id);
        match self.heard.last(attempt.connection) {
            Some(heard) if waits => attempt.deadline.max(heard + attempt.request.idle_timeout),
            _ => attempt.deadline,
        }
    }

    fn time_out(&mut self, net: &mut Net, id: u64, now: Instant) {
        let Some(attempt) = self.attempts.get(id) else {
            return;
        };
        let (connection, endpoint) = (attempt.connection, attempt.request.endpoint);
        let timeout = attempt.request.idle_timeout;
        let silent = self.heard.nothing_for(connection, timeout, now);
        let detail = format!("no progress for {} ms", timeout.as_millis());
        self.counters.timeouts.add(1);
        self.give_up(net, id, FetchErrorCode::TimedOut, &detail);
        if silent {
            // Nothing at all has arrived on the connection. Its other requests take another route
            // now, instead of each waiting for its own deadline.
            net.back_off(endpoint, &detail);
            net.disconnect(connection, CloseReason::Lost { detail });
        }
    }
}
