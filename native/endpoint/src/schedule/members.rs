//! The endpoints that take part in the exchange, as far as this one knows.

use faro_fabric::EndpointId;
use faro_sync::HashMap;
use faro_wire::Card;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// This endpoint and the peers that it has met, with the hosts that they are on.
pub(super) struct Members {
    own: EndpointId,
    members: BTreeMap<EndpointId, String>,
    /// Peers that have gone; one whose connection was only lost comes back.
    away: HashMap<EndpointId, String>,
    /// Time when the members were last looked at.
    looked: Option<Instant>,
}

impl Members {
    pub(super) fn new(own: EndpointId, host: String) -> Self {
        Self {
            own,
            members: BTreeMap::from([(own, host)]),
            away: HashMap::default(),
            looked: None,
        }
    }

    pub(super) fn own(&self) -> EndpointId {
        self.own
    }

    /// Adds a member. Returns whether it is new.
    pub(super) fn join(&mut self, peer: EndpointId, host: String) -> bool {
        self.away.remove(&peer);
        self.members.insert(peer, host).is_none()
    }

    /// Removes a member. Returns whether it was one.
    pub(super) fn leave(&mut self, peer: EndpointId) -> bool {
        if peer == self.own {
            return false;
        }
        let Some(host) = self.members.remove(&peer) else {
            return false;
        };
        self.away.insert(peer, host);
        true
    }

    /// Forgets a peer that has left and will not come back under this id.
    pub(super) fn forget(&mut self, peer: EndpointId) {
        self.away.remove(&peer);
    }

    /// Adds a member that had left. Returns whether it had.
    pub(super) fn back(&mut self, peer: EndpointId) -> bool {
        let host = self.away.remove(&peer);
        host.is_some_and(|host| self.join(peer, host))
    }

    /// Returns the members, but not twice within `pause`.
    pub(super) fn due(
        &mut self,
        now: Instant,
        pause: Duration,
    ) -> Option<&BTreeMap<EndpointId, String>> {
        if self
            .looked
            .is_some_and(|looked| now.duration_since(looked) < pause)
        {
            return None;
        }
        self.looked = Some(now);
        Some(&self.members)
    }
}

/// Returns the host on a card, which is the same for every endpoint that has the card: the address
/// of a network fabric, or the identity of the host for shared memory.
pub(crate) fn host_of(card: &Card) -> String {
    let of = |scheme: &str| card.addresses.iter().find(|a| a.scheme == scheme);
    let network = of("tcp").or_else(|| of("verbs"));
    let host = match network {
        Some(address) => address.location.rsplit_once(':'),
        None => card
            .addresses
            .first()
            .and_then(|a| a.location.split_once('/')),
    };
    host.map_or_else(String::new, |(host, _)| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_wire::CardAddress;

    #[test]
    fn members_come_go_and_come_back() {
        let mut members = Members::new(1, "a".to_owned());
        assert!(members.join(2, "b".to_owned()));
        assert!(!members.join(2, "b".to_owned()), "it is here");
        assert!(
            !members.leave(1) && !members.leave(3),
            "itself, and an unknown peer"
        );
        assert!(!members.back(2) && !members.back(3));
        assert!(members.leave(2));
        let start = Instant::now();
        let pause = Duration::from_millis(10);
        assert_eq!(members.due(start, pause).unwrap().len(), 1);
        assert!(members.back(2));
        assert!(members.due(start + pause / 2, pause).is_none());
        let members = members.due(start + pause, pause).unwrap();
        assert_eq!(members.get(&2).map(String::as_str), Some("b"));
    }

    #[test]
    fn the_host_is_the_same_for_all_who_read_the_card() {
        let host = |addresses: &[(&str, &str)]| {
            let address = |(scheme, location): &(&str, &str)| CardAddress {
                scheme: (*scheme).to_owned(),
                location: (*location).to_owned(),
            };
            host_of(&Card {
                endpoint: 1,
                name: "executor-1".to_owned(),
                addresses: addresses.iter().map(address).collect(),
                secret: faro_secure::Secret::new([0; 32]),
            })
        };
        let shm = ("shm", "0123abcd/socket");
        assert_eq!(
            host(&[shm, ("verbs", "10.0.0.7:9"), ("tcp", "10.0.0.8:41")]),
            "10.0.0.8"
        );
        assert_eq!(host(&[shm, ("verbs", "10.0.0.7:9")]), "10.0.0.7");
        assert_eq!(host(&[("tcp", "[fd00::7]:41")]), "[fd00::7]");
        assert_eq!(host(&[shm]), "0123abcd");
        assert_eq!(host(&[]), "");
    }
}
