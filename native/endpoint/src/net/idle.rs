//! Tracks when each open connection was last used, and which ones to close because they are unused.
//!
//! A connection that neither side used for the idle time is closed by the side that made it, so that
//! the two sides do not both do it. While the fabric wants fewer connections (`verbs`: most of the
//! rings' share of the arena is taken), either side closes the least recently used eighth, if nothing
//! used them for [`CROWDED_IDLE`].
//!
//! Trade-off: a request that leaves just as the other side closes the connection is lost with it and
//! asked for again, as after every loss. There is no handshake about it, because it is as rare as a
//! request in the last round trip of a minute without any.

use faro_fabric::ConnectionId;
use faro_sync::HashMap;
use std::time::{Duration, Instant};

/// Time for which a connection is unused before it may be closed for the sake of others.
const CROWDED_IDLE: Duration = Duration::from_secs(1);
/// Divisor of the number of connections: that part is closed at once for the sake of others, at least one.
const CROWDED_PARTS: usize = 8;
/// Looks for idle connections in one idle time.
const LOOKS: u32 = 8;

struct ConnectionUsage {
    last: Instant,
    /// This side made the connection.
    outgoing: bool,
}

/// The open connections of one progress thread, by their last use.
pub(super) struct Idleness {
    by_connection: HashMap<ConnectionId, ConnectionUsage>,
    /// After which time unused connections are closed; zero: never.
    idle: Duration,
    /// The time, as of the last poll: precise enough, and cheaper than a clock for each message.
    now: Instant,
    looked: Instant,
}

impl Idleness {
    pub(super) fn new(idle: Duration, now: Instant) -> Self {
        Self {
            by_connection: HashMap::default(),
            idle,
            now,
            looked: now,
        }
    }

    pub(super) fn set_time(&mut self, now: Instant) {
        self.now = now;
    }

    /// Adds an open connection.
    pub(super) fn opened(&mut self, connection: ConnectionId, outgoing: bool) {
        let last = self.now;
        self.by_connection
            .insert(connection, ConnectionUsage { last, outgoing });
    }

    /// Notes that something was sent or has arrived.
    pub(super) fn used(&mut self, connection: ConnectionId) {
        if let Some(usage) = self.by_connection.get_mut(&connection) {
            usage.last = self.now;
        }
    }

    pub(super) fn closed(&mut self, connection: ConnectionId) {
        self.by_connection.remove(&connection);
    }

    /// Returns the least recently used of these connections.
    pub(super) fn least_used(&self, of: &[ConnectionId]) -> Option<ConnectionId> {
        let last = |id: &&ConnectionId| self.by_connection.get(id).map(|usage| (usage.last, id.0));
        of.iter().min_by_key(last).copied()
    }

    /// Returns the connections to close unless a service keeps them, least recently used first.
    pub(super) fn expired(&mut self, crowded: bool) -> Vec<ConnectionId> {
        let now = self.now;
        let every = self.idle / LOOKS;
        let never = self.idle.is_zero();
        if !crowded && (never || now.duration_since(self.looked) < every) {
            return Vec::new();
        }
        self.looked = now;
        let age = |usage: &ConnectionUsage| now.duration_since(usage.last);
        let mut unused: Vec<_> = self.by_connection.iter().collect();
        unused.sort_unstable_by_key(|(id, usage)| (usage.last, id.0));
        let for_others = match crowded {
            true => unused.len().div_ceil(CROWDED_PARTS),
            false => 0,
        };
        let expired = |at: usize, usage: &ConnectionUsage| {
            !never && usage.outgoing && age(usage) >= self.idle
                || at < for_others && age(usage) >= CROWDED_IDLE
        };
        unused
            .into_iter()
            .enumerate()
            .filter(|(at, (_, usage))| expired(*at, usage))
            .map(|(_, (id, _))| *id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(60);

    /// Returns connections 1 to 16. Number n was last used at second n; those with even numbers are
    /// outgoing.
    fn sixteen(idle: Duration) -> (Idleness, Instant) {
        let start = Instant::now();
        let mut idleness = Idleness::new(idle, start);
        for n in 1..=16 {
            idleness.set_time(start + Duration::from_secs(n));
            idleness.opened(ConnectionId(n), n % 2 == 0);
        }
        (idleness, start)
    }

    fn expired(idleness: &mut Idleness, at: Instant, crowded: bool) -> Vec<u64> {
        idleness.set_time(at);
        let ids = idleness.expired(crowded);
        ids.into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn the_maker_closes_what_was_not_used_for_the_idle_time() {
        let (mut idleness, start) = sixteen(IDLE);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(expired(&mut idleness, at(61), false).is_empty());
        assert_eq!(expired(&mut idleness, at(69), false), [2, 4, 6, 8]);
        // The connection is not looked at again so soon.
        assert!(expired(&mut idleness, at(70), false).is_empty());
        idleness.used(ConnectionId(4));
        idleness.closed(ConnectionId(2));
        let late = expired(&mut idleness, at(80), false);
        assert_eq!(late, [6, 8, 10, 12, 14, 16]);
        assert!(expired(&mut idleness, at(129), false)
            .iter()
            .all(|id| *id != 4));
        assert_eq!(expired(&mut idleness, at(138), false).last(), Some(&4));
    }

    #[test]
    fn a_crowded_fabric_loses_the_least_recently_used_of_either_side() {
        let (mut idleness, start) = sixteen(IDLE);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(expired(&mut idleness, at(17), true), [1, 2]);
        idleness.used(ConnectionId(1));
        assert_eq!(expired(&mut idleness, at(17), true), [2, 3]);
        assert_eq!(expired(&mut idleness, at(65), true), [2, 3, 4]);
        for n in 1..=16 {
            idleness.used(ConnectionId(n));
        }
        assert!(
            expired(&mut idleness, at(65), true).is_empty(),
            "all are in use"
        );
    }

    #[test]
    fn without_an_idle_time_only_a_crowded_fabric_loses_connections() {
        let (mut idleness, start) = sixteen(Duration::ZERO);
        let late = start + Duration::from_secs(3_600);
        assert!(expired(&mut idleness, late, false).is_empty());
        assert_eq!(expired(&mut idleness, late, true), [1, 2]);
    }
}
