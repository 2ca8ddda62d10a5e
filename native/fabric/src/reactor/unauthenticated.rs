//! Accepted connections whose peers have not authenticated. Their number is bounded. A new one
//! displaces the oldest of the address that has most, so that an attacker cannot keep members out:
//! a member authenticates within milliseconds. An address has no limit of its own, because a
//! thousand members behind one address connect at once when a stage begins.

use crate::ConnectionId;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// Origin of a connection: an IPv4 address, the /64 network of an IPv6 address (one host may use
/// all its addresses), or this host.
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

/// The unauthenticated connections of one fabric.
pub(crate) struct UnauthenticatedConnections {
    max: usize,
    /// Ids rise, so the first is the oldest.
    origins: BTreeMap<ConnectionId, Origin>,
    counts: HashMap<Origin, usize>,
}

impl UnauthenticatedConnections {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            origins: BTreeMap::new(),
            counts: HashMap::new(),
        }
    }

    /// Returns the connection that must make room for a new one: the oldest of the origin that has
    /// most.
    pub(crate) fn displaced(&self) -> Option<ConnectionId> {
        if self.origins.len() < self.max {
            return None;
        }
        let (most, _) = self.counts.iter().max_by_key(|(_, count)| **count)?;
        let mut all = self.origins.iter();
        all.find(|(_, origin)| *origin == most).map(|(id, _)| *id)
    }

    pub(crate) fn insert(&mut self, connection: ConnectionId, origin: Origin) {
        self.origins.insert(connection, origin);
        *self.counts.entry(origin).or_default() += 1;
    }

    /// Removes a connection that authenticated, ended or moved to another reactor. Returns its
    /// origin; `None` if it was authenticated.
    pub(crate) fn remove(&mut self, connection: ConnectionId) -> Option<Origin> {
        let origin = self.origins.remove(&connection)?;
        if let Some(count) = self.counts.get_mut(&origin) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&origin);
            }
        }
        Some(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(address: &str) -> Origin {
        Origin::of(address.parse().unwrap())
    }

    #[test]
    fn the_oldest_of_the_origin_with_most_makes_room() {
        let mut unauthenticated = UnauthenticatedConnections::new(5);
        let (one, two) = (origin("10.0.0.1"), origin("10.0.0.2"));
        for id in 1..=5 {
            assert_eq!(unauthenticated.displaced(), None);
            unauthenticated.insert(ConnectionId(id), if id == 2 { two } else { one });
        }
        assert_eq!(unauthenticated.displaced(), Some(ConnectionId(1)));
        unauthenticated.remove(ConnectionId(1));
        assert_eq!(unauthenticated.displaced(), None);
        unauthenticated.insert(ConnectionId(6), two);
        assert_eq!(unauthenticated.displaced(), Some(ConnectionId(3)));
        for id in 0..=6 {
            unauthenticated.remove(ConnectionId(id));
        }
        assert!(unauthenticated.origins.is_empty() && unauthenticated.counts.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_origin() {
        assert_eq!(origin("2001:db8::1"), origin("2001:db8::ffff:2"));
        assert_ne!(origin("2001:db8::1"), origin("2001:db8:0:1::1"));
        assert_eq!(origin("::ffff:10.0.0.1"), origin("10.0.0.1"));
    }
}
