//! Accepted connections that have not proven who they are. Their number is bounded, in all and from
//! one address, and a new one takes the place of the oldest: so they keep no member of the
//! application out, which needs a few milliseconds for its proof.

use crate::ConnectionId;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// Origin of a connection: an IPv4 address, the network of an IPv6 address (64 bits, of which one
/// host may use all addresses), or this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Origin(Option<IpAddr>);

impl Origin {
    /// A peer on this host, of the same user.
    pub(crate) const HERE: Self = Self(None);

    pub(crate) fn of(address: IpAddr) -> Self {
        Self(Some(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                let network = u128::from(address) >> 64 << 64;
                Ipv6Addr::from(network).into()
            }
        }))
    }
}

/// The strangers of one fabric.
pub(crate) struct Strangers {
    max: usize,
    max_of_one: usize,
    /// Ids rise, so the first is the oldest.
    origins: BTreeMap<ConnectionId, Origin>,
    counts: HashMap<Origin, usize>,
}

impl Strangers {
    /// Allows at most `max` strangers in all, and `max_of_one` from one origin.
    pub(crate) fn new(max: usize, max_of_one: usize) -> Self {
        Self {
            max,
            max_of_one,
            origins: BTreeMap::new(),
            counts: HashMap::new(),
        }
    }

    /// Returns the stranger that must make room for another from that origin: the oldest of the
    /// origin if that has its share, otherwise the oldest of the origin that has most.
    pub(crate) fn displaced_by(&self, origin: Origin) -> Option<ConnectionId> {
        let of = if self
            .counts
            .get(&origin)
            .is_some_and(|n| *n >= self.max_of_one)
        {
            origin
        } else if self.origins.len() >= self.max {
            *self.counts.iter().max_by_key(|(_, count)| **count)?.0
        } else {
            return None;
        };
        let mut all = self.origins.iter();
        all.find(|(_, origin)| **origin == of).map(|(id, _)| *id)
    }

    pub(crate) fn came(&mut self, connection: ConnectionId, origin: Origin) {
        self.origins.insert(connection, origin);
        *self.counts.entry(origin).or_default() += 1;
    }

    /// Removes a connection that has proven its identity or has ended. Does nothing if it was no
    /// stranger.
    pub(crate) fn left(&mut self, connection: ConnectionId) {
        let Some(origin) = self.origins.remove(&connection) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::of(address.parse().unwrap())
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut strangers = Strangers::new(5, 3);
        let (one, two) = (origin("10.0.0.1"), origin("10.0.0.2"));
        for id in 1..=3 {
            assert_eq!(strangers.displaced_by(one), None);
            strangers.came(ConnectionId(id), one);
        }
        assert_eq!(
            strangers.displaced_by(one),
            Some(ConnectionId(1)),
            "its share"
        );
        strangers.left(ConnectionId(1));
        strangers.came(ConnectionId(4), one);
        for id in 5..=6 {
            assert_eq!(strangers.displaced_by(two), None);
            strangers.came(ConnectionId(id), two);
        }
        assert_eq!(
            strangers.displaced_by(two),
            Some(ConnectionId(2)),
            "of the origin with most"
        );
        for id in 0..=6 {
            strangers.left(ConnectionId(id));
        }
        assert!(strangers.origins.is_empty() && strangers.counts.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:2"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
    }
}
