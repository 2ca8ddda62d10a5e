//! Limits the connections that peers make and hold: each known peer has a share, unknown ones share one.

use crate::limits::{MAX_CONNECTIONS_OF_PEER, MAX_UNKNOWN_PEER_CONNECTIONS};
use faro_fabric::{ConnectionId, EndpointId};
use faro_sync::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The accepted connections of one progress thread.
#[derive(Default)]
pub(super) struct AcceptedConnections {
    /// Ids rise, so the first of a peer is its oldest. No entry is empty.
    by_peer: HashMap<EndpointId, BTreeSet<ConnectionId>>,
    /// Connections of peers whose card was not here.
    unknown: BTreeMap<ConnectionId, EndpointId>,
}

impl AcceptedConnections {
    /// Adds a connection that a peer made. Returns a connection of the same peer to close: a peer
    /// makes another one only after it has lost the last, so its oldest one is the least useful.
    pub(super) fn came(
        &mut self,
        endpoint: EndpointId,
        connection: ConnectionId,
        is_unknown: bool,
    ) -> Option<ConnectionId> {
        if is_unknown {
            self.unknown.insert(connection, endpoint);
        }
        let of_peer = self.by_peer.entry(endpoint).or_default();
        of_peer.insert(connection);
        // It is counted no more: its end may take a while, and others may come meanwhile.
        let oldest = match of_peer.len() > MAX_CONNECTIONS_OF_PEER {
            true => of_peer.pop_first()?,
            false => return None,
        };
        self.unknown.remove(&oldest);
        Some(oldest)
    }

    /// Returns the connections of unknown peers if there are too many, so that one of them must be closed.
    /// `is_unknown` says whether an endpoint's card is still missing.
    pub(super) fn too_many_unknown(
        &mut self,
        is_unknown: impl Fn(EndpointId) -> bool,
    ) -> Vec<ConnectionId> {
        if self.unknown.len() > MAX_UNKNOWN_PEER_CONNECTIONS {
            self.unknown.retain(|_, endpoint| is_unknown(*endpoint));
        }
        match self.unknown.len() > MAX_UNKNOWN_PEER_CONNECTIONS {
            true => self.unknown.keys().copied().collect(),
            false => Vec::new(),
        }
    }

    /// Removes a connection that has ended or is about to.
    pub(super) fn ended(&mut self, endpoint: EndpointId, connection: ConnectionId) {
        self.unknown.remove(&connection);
        if let Some(of_peer) = self.by_peer.get_mut(&endpoint) {
            of_peer.remove(&connection);
            if of_peer.is_empty() {
                self.by_peer.remove(&endpoint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_its_share_and_loses_the_oldest() {
        let mut accepted = AcceptedConnections::default();
        let max = MAX_CONNECTIONS_OF_PEER as u64;
        for number in 1..=max {
            assert_eq!(accepted.came(7, ConnectionId(number), false), None);
        }
        let next = ConnectionId(max + 1);
        assert_eq!(accepted.came(7, next, false), Some(ConnectionId(1)));
        let other = ConnectionId(max + 2);
        assert_eq!(accepted.came(8, other, false), None, "it is another peer");
        let again = ConnectionId(max + 3);
        assert_eq!(accepted.came(7, again, false), Some(ConnectionId(2)));
    }

    #[test]
    fn unknown_peers_share_what_those_who_became_known_do_not_take() {
        let mut accepted = AcceptedConnections::default();
        let max = MAX_UNKNOWN_PEER_CONNECTIONS as u64;
        for number in 1..=max {
            accepted.came(number.into(), ConnectionId(number), true);
        }
        assert!(accepted.too_many_unknown(|_| true).is_empty());
        accepted.came(u128::MAX, ConnectionId(max + 1), true);
        assert_eq!(accepted.too_many_unknown(|_| true).len(), max as usize + 1);
        let known = |endpoint: EndpointId| endpoint != 5;
        assert!(accepted.too_many_unknown(known).is_empty());
        accepted.came(u128::MAX - 1, ConnectionId(max + 2), true);
        let candidates = accepted.too_many_unknown(known);
        assert!(!candidates.is_empty() && !candidates.contains(&ConnectionId(5)));
    }
}
