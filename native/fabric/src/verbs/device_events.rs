//! The device's turn: wake-ups, its events, and whether it is still there.

use super::device::{AsyncEvent, VerbsError};
use super::driver::{Link, Verbs};
use crate::stream::reactor::Reactor;
use crate::{CloseReason, ConnectionId, FabricError};
use std::time::{Duration, Instant};

/// A peer answers REVOKE within this time, or its connection is closed.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often sysfs is read for the device and its address; that takes a few system calls.
const CHECK_EVERY: Duration = Duration::from_secs(1);

impl Reactor<Verbs> {
    /// Before a wait. True: there is something to do already.
    pub(super) fn arm_device(&mut self) -> bool {
        // Arming is a system call, and so is taking the wake-up: not for completions that are there.
        if self.found_completions() {
            return true;
        }
        let armed = match &mut self.driver.context {
            Some(context) => context.arm(),
            None => return false,
        };
        if let Err(error) = armed {
            self.lose_device(&error.to_string());
            return true;
        }
        // A completion between the last look and the arming causes no wake-up.
        self.found_completions()
    }

    fn found_completions(&mut self) -> bool {
        let before = self.driver.tally.completions;
        self.take_completions();
        self.flush();
        self.driver.tally.completions > before
    }

    /// After a wait: wake-ups, events of the device, completions, and what is due.
    pub(super) fn device_turn(&mut self) {
        let [channel, events] = std::mem::take(&mut self.driver.signalled);
        if channel {
            self.driver.tally.wakeups += 1;
            if let Some(context) = &mut self.driver.context {
                context.drain();
            }
        }
        if events {
            self.take_events();
        }
        self.take_completions();
        self.check_device();
        if let Some(context) = &mut self.driver.context {
            if let Err(error) = context.registrations.follow() {
                self.lose_device(&error.to_string());
            }
        }
        self.expire_revocations();
    }

    fn take_events(&mut self) {
        while let Some(event) = self
            .driver
            .context
            .as_ref()
            .and_then(|context| context.device.next_async())
        {
            match event {
                AsyncEvent::QueuePair {
                    number,
                    fatal: true,
                    what,
                } => {
                    let has_it = |link: &Link| {
                        let queue_pair = link.as_deref();
                        queue_pair.is_some_and(|one| one.queue.number() == number)
                    };
                    let found = self.conns.iter().find(|(_, conn)| has_it(&conn.state));
                    if let Some(connection) = found.map(|(connection, _)| ConnectionId(*connection))
                    {
                        self.close(connection, CloseReason::Lost { detail: what });
                    }
                }
                AsyncEvent::Device { what } => return self.lose_device(&what),
                AsyncEvent::Port { up: false, what } => log::warn!(
                    "verbs: {what}; requests wait for the device's retries and then use TCP; check \
                     the cable or `ip link`"
                ),
                AsyncEvent::Port { up: true, what } => log::info!("verbs: {what}"),
                AsyncEvent::QueuePair { what, .. } | AsyncEvent::Other { what } => {
                    log::debug!("verbs: {what}");
                }
                // The GID table may change after this event; `check_device` reads it regularly.
                AsyncEvent::Gids => {}
            }
        }
    }

    /// Some drivers (rdma_rxe) remove a device without an event, and wait for all that have it open.
    fn check_device(&mut self) {
        let Some(context) = &mut self.driver.context else {
            return;
        };
        if context.checked.elapsed() < CHECK_EVERY {
            return;
        }
        context.checked = Instant::now();
        if !context.device.is_there() {
            self.lose_device("it was deleted");
        } else if !context.device.has_its_gid() {
            self.lose_device("its address (GID) changed");
        }
    }

    /// The device cannot be used any more: every connection ends, so that callers take another
    /// fabric; a later connect opens the device again.
    pub(super) fn lose_device(&mut self, what: &str) {
        log::warn!(
            "verbs: the RDMA device is lost: {what}; its peers are reached over TCP until it is back"
        );
        let open: Vec<ConnectionId> = self
            .conns
            .keys()
            .map(|connection| ConnectionId(*connection))
            .collect();
        for connection in open {
            let detail = format!("the RDMA device is lost: {what}");
            self.close(connection, CloseReason::Lost { detail });
        }
        let lingering: Vec<ConnectionId> = self
            .lingering
            .keys()
            .map(|connection| ConnectionId(*connection))
            .collect();
        for connection in lingering {
            self.end_linger(connection);
        }
        self.driver.close_context();
    }

    /// Closes the connection of a peer that does not answer REVOKE, to get our memory back.
    fn expire_revocations(&mut self) {
        let now = Instant::now();
        let late = self
            .driver
            .revoking
            .values()
            .find(|revoking| now.duration_since(revoking.since) > REVOKE_TIMEOUT)
            .map(|revoking| revoking.connection);
        if let Some(connection) = late {
            let reason = CloseReason::Bound {
                what: "seconds for letting go of memory",
                limit: REVOKE_TIMEOUT.as_secs(),
            };
            self.close(connection, reason);
        }
    }
}

/// An error of the device is one of the fabric.
impl From<VerbsError> for FabricError {
    fn from(error: VerbsError) -> Self {
        Self::Unavailable {
            fabric: "verbs",
            reason: error.to_string(),
            absent: matches!(error, VerbsError::NoDevice { .. }),
        }
    }
}
