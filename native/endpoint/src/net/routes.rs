//! The routes to one peer: one for each fabric that both sides have, best first.
//!
//! A route that failed is in back-off for a while (doubling up to a minute), so that requests do not
//! queue behind connects that time out; when all routes are in back-off, a request fails at once and
//! Spark fetches its blocks. When the back-off is over the route is tried again. Only blocks that
//! arrive by it end its failure: a path that connects and never carries (a filtered UDP port, an
//! MTU that is too small) would otherwise be tried again every few seconds for ever.
//!
//! The user has to know that a pair is slower than it could be: one warning, when blocks do arrive
//! by a lesser route (a peer that has ended is no reason to look at a cable), and not again before
//! the better route has worked in between. Every other change is a line at `info`.
//!
//! A fabric may reach a peer at several addresses: a host name can have more than one, and a network
//! can make of one address another (NAT, split DNS, two links). They are tried in their order, each
//! with a time of its own, before the route counts as failed; the one that carried blocks is kept.
//!
//! Pure: the time comes in, log lines go out.

use crate::limits::{BACKOFF_MAX, BACKOFF_MIN, CONNECT_TIMEOUT, LAST_CONNECT_TIMEOUT};
use faro_fabric::{FabricKind, Identity};
use log::Level;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Way to one peer by one fabric.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) fabric: FabricKind,
    /// Address in the fabric's form.
    pub(crate) location: String,
    pub(crate) peer: Arc<Identity>,
}

/// Health of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// It has not failed since it carried blocks.
    Good,
    /// It failed. From `until` on it is tried again; it is `Good` when it carries blocks.
    BackOff {
        until: Instant,
        /// The warning about the lesser route was logged.
        warned: bool,
    },
    /// This endpoint's fabric has failed for good.
    FabricLost,
}

/// Consequence of a failure.
#[derive(Debug)]
pub(crate) enum RouteFailure {
    /// Another address of the same fabric is tried at once.
    Elsewhere(LogEntry),
    /// The route's back-off begins.
    BackOff(LogEntry),
}

struct RouteEntry {
    /// Its location is `locations[at]`.
    route: Route,
    /// All that this fabric has, best first; never empty.
    locations: Vec<String>,
    at: usize,
    /// Locations that have failed since one carried blocks or the last back-off began.
    failed: usize,
    health: Health,
    /// Length of the next back-off.
    next: Duration,
    /// The last failure.
    cause: String,
}

impl RouteEntry {
    fn is_usable(&self, now: Instant) -> bool {
        match self.health {
            Health::Good => true,
            Health::BackOff { until, .. } => until <= now,
            Health::FabricLost => false,
        }
    }

    fn is_last_location(&self) -> bool {
        self.failed + 1 >= self.locations.len()
    }

    fn go_to_next_location(&mut self) {
        self.at = (self.at + 1) % self.locations.len();
        if let Some(location) = self.locations.get(self.at) {
            location.clone_into(&mut self.route.location);
        }
    }

    fn recover(&mut self) {
        self.health = Health::Good;
        self.next = BACKOFF_MIN;
    }
}

/// A line for the log.
pub(crate) type LogEntry = (Level, String);

/// All routes to one peer.
pub(crate) struct Routes {
    /// The peer's name, for log lines.
    name: String,
    entries: Vec<RouteEntry>,
}

impl Routes {
    /// Returns the routes of a peer. `routes` must have the best first, each with the other
    /// locations of its fabric, the best of them first too.
    pub(crate) fn new(name: String, routes: Vec<(Route, Vec<String>)>) -> Self {
        let entry = |(route, others): (Route, Vec<String>)| RouteEntry {
            locations: std::iter::once(route.location.clone())
                .chain(others)
                .collect(),
            at: 0,
            failed: 0,
            route,
            health: Health::Good,
            next: BACKOFF_MIN,
            cause: String::new(),
        };
        let entries = routes.into_iter().map(entry).collect();
        Self { name, entries }
    }

    /// Returns how long connecting by that fabric may take: little where another route or address
    /// is tried afterwards.
    pub(crate) fn connect_timeout(&self, fabric: FabricKind) -> Duration {
        match self.entries.last() {
            Some(last) if last.route.fabric == fabric && last.is_last_location() => {
                LAST_CONNECT_TIMEOUT
            }
            Some(_) | None => CONNECT_TIMEOUT,
        }
    }

    /// The best route that is not in back-off.
    ///
    /// # Errors
    /// There is none: why.
    pub(crate) fn choose(&self, now: Instant) -> Result<&Route, String> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.is_usable(now)) {
            return Ok(&entry.route);
        }
        if self.entries.is_empty() {
            return Err(format!("no fabric in common with {}", self.name));
        }
        let cause = |entry: &RouteEntry| format!("{}: {}", entry.route.fabric.name(), entry.cause);
        let causes: Vec<String> = self.entries.iter().map(cause).collect();
        let (name, causes) = (&self.name, causes.join("; "));
        Err(format!("{name} cannot be reached: {causes}"))
    }

    fn find(&mut self, fabric: FabricKind) -> Option<&mut RouteEntry> {
        self.entries
            .iter_mut()
            .find(|entry| entry.route.fabric == fabric)
    }

    /// Notes that the route failed at the location that `choose` returned. Returns `None` if there
    /// is no such route, or if its fabric is lost.
    pub(crate) fn failed(
        &mut self,
        fabric: FabricKind,
        cause: &str,
        now: Instant,
    ) -> Option<RouteFailure> {
        let name = self.name.clone();
        let entry = self.find(fabric)?;
        let warned = match entry.health {
            Health::Good => false,
            Health::BackOff { warned, .. } => warned,
            Health::FabricLost => return None,
        };
        entry.cause = match entry.failed {
            0 => cause.to_owned(),
            _ => format!("{}, then {cause}", entry.cause),
        };
        let (is_last, failed_at) = (entry.is_last_location(), entry.route.location.clone());
        entry.go_to_next_location();
        let fabric = fabric.name();
        if !is_last {
            entry.failed += 1;
            let next = &entry.route.location;
            let line =
                format!("{name}: {fabric} failed at {failed_at} and is tried at {next}: {cause}");
            return Some(RouteFailure::Elsewhere((Level::Info, line)));
        }
        let pause = entry.next;
        let until = now + pause;
        entry.health = Health::BackOff { until, warned };
        entry.next = (pause * 2).min(BACKOFF_MAX);
        entry.failed = 0;
        let (pause, cause) = (pause.as_secs(), &entry.cause);
        let line = format!("{name}: {fabric} failed and is not tried for {pause} s: {cause}");
        Some(RouteFailure::BackOff((Level::Info, line)))
    }

    /// Notes that this endpoint's fabric is lost: the route is never used again.
    pub(crate) fn fabric_lost(&mut self, fabric: FabricKind, cause: &str) {
        if let Some(entry) = self.find(fabric) {
            entry.health = Health::FabricLost;
            cause.clone_into(&mut entry.cause);
        }
    }

    /// Notes that blocks arrived by the route.
    pub(crate) fn carried(&mut self, fabric: FabricKind, now: Instant) -> Option<LogEntry> {
        let is_this = |entry: &RouteEntry| entry.route.fabric == fabric;
        let at = self.entries.iter().position(is_this)?;
        let (better, rest) = self.entries.split_at_mut(at);
        if let Some(entry) = rest.first_mut() {
            entry.failed = 0;
            match entry.health {
                // A message that arrives during the back-off was sent before the failure, and proves nothing.
                Health::BackOff { until, .. } if until <= now => {
                    entry.recover();
                    let line = format!("{}: {} works again", self.name, fabric.name());
                    return Some((Level::Info, line));
                }
                Health::BackOff { .. } | Health::Good | Health::FabricLost => {}
            }
        }
        let (failed, warned) = better
            .iter_mut()
            .find_map(|entry| match &mut entry.health {
                Health::BackOff { warned, .. } if !*warned => {
                    Some((&entry.route, &entry.cause, warned))
                }
                Health::BackOff { .. } | Health::Good | Health::FabricLost => None,
            })
            .map(|(route, cause, warned)| ((route.fabric, cause), warned))?;
        *warned = true;
        let (failed, cause) = failed;
        let line = format!(
            "{}: blocks arrive over {} because {} failed ({cause}); it is tried again, at first after {} s, \
             later every {} s; {}",
            self.name,
            fabric.name(),
            failed.name(),
            BACKOFF_MIN.as_secs(),
            BACKOFF_MAX.as_secs(),
            failed.remedy()
        );
        Some((Level::Warn, line))
    }
}

#[cfg(test)]
#[path = "routes_test.rs"]
mod tests;
