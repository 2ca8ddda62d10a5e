//! The routes that a card gives to the endpoint which it describes.

use super::routes::{Route, Routes};
use crate::limits::MAX_LOCATIONS;
use faro_fabric::shm::same_host;
use faro_fabric::{FabricKind, Identity};
use faro_secure::{KeyError, SharedSecret};
use faro_wire::{Card, CardAddress};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The application's secrets, which make keys of cards.
#[derive(Default)]
pub(crate) struct CardSecrets {
    application: String,
    secret: Option<SharedSecret>,
}

impl CardSecrets {
    pub(crate) fn new(application: String, secret: Option<SharedSecret>) -> Self {
        Self {
            application,
            secret,
        }
    }

    /// Makes the identity of the endpoint with that card.
    ///
    /// # Errors
    /// `KeyError`.
    fn identity(&self, card: &Card) -> Result<Identity, KeyError> {
        let shared = self.secret.as_ref();
        Identity::new(card.endpoint, &card.secret, shared, &self.application)
    }
}

/// Makes the routes to an endpoint from its card.
pub(crate) struct CardRoutes {
    /// This endpoint's fabrics, best first.
    fabrics: Vec<FabricKind>,
    /// The location at which shm peers reach this endpoint, if it has that fabric.
    shm_location: Option<String>,
    membership: CardSecrets,
}

impl CardRoutes {
    pub(crate) fn new(
        fabrics: Vec<FabricKind>,
        shm_location: Option<String>,
        membership: CardSecrets,
    ) -> Self {
        Self {
            fabrics,
            shm_location,
            membership,
        }
    }

    /// Returns the routes to the endpoint on `card`. `known_at` are addresses of its host as this
    /// host sees them; they are tried before the card's.
    ///
    /// # Errors
    /// `KeyError`.
    pub(super) fn of(&self, card: &Card, known_at: &[IpAddr]) -> Result<Routes, KeyError> {
        let peer = Arc::new(self.membership.identity(card)?);
        let routes = self.fabrics.iter();
        let routes = routes.filter_map(|fabric| self.route(*fabric, card, known_at, &peer));
        Ok(Routes::new(card.name.clone(), routes.collect()))
    }

    /// Returns a route, with the other locations that the fabric has.
    fn route(
        &self,
        fabric: FabricKind,
        card: &Card,
        known_at: &[IpAddr],
        peer: &Arc<Identity>,
    ) -> Option<(Route, Vec<String>)> {
        let is_this = |address: &&CardAddress| address.scheme == fabric.name();
        let of_card = card.addresses.iter().filter(is_this);
        let of_card: Vec<&str> = of_card.map(|address| address.location.as_str()).collect();
        let first = of_card.first()?;
        let mut locations = if fabric.stays_on_host() {
            // Shared memory of another host is no route that fails: it is none.
            let near = |own: &String| same_host(own, first);
            self.shm_location.as_ref().filter(|own| near(own))?;
            vec![(*first).to_owned()]
        } else {
            locations(&of_card, known_at)
        };
        let route = Route {
            fabric,
            location: locations.remove(0),
            peer: Arc::clone(peer),
        };
        Some((route, locations))
    }
}

/// Returns the card's port at the addresses that this host knows, and then the card's own
/// locations. `of_card` must not be empty, and neither is the result.
fn locations(of_card: &[&str], known_at: &[IpAddr]) -> Vec<String> {
    let ports = of_card.first().and_then(|first| first.parse().ok());
    let known = ports.map_or(Vec::new(), |first: SocketAddr| {
        let known = known_at.iter();
        known
            .map(|ip| SocketAddr::new(*ip, first.port()).to_string())
            .collect()
    });
    let mut all: Vec<String> = Vec::new();
    // The card's own first one keeps its place among them.
    let known = known.into_iter().take(MAX_LOCATIONS - 1);
    for location in known.chain(of_card.iter().map(|&location| location.to_owned())) {
        if all.len() < MAX_LOCATIONS && !all.contains(&location) {
            all.push(location);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_host_knows_comes_before_what_the_card_says() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let of_card = ["10.0.0.7:41234"];
        assert_eq!(locations(&of_card, &[]), of_card);
        assert_eq!(locations(&of_card, &[ip("10.0.0.7")]), of_card, "once");
        assert_eq!(
            locations(&of_card, &[ip("192.168.9.7"), ip("fd00::7")]),
            ["192.168.9.7:41234", "[fd00::7]:41234", "10.0.0.7:41234"]
        );
        let many: Vec<IpAddr> = (1..9).map(|n| ip(&format!("10.1.0.{n}"))).collect();
        let max = locations(&of_card, &many);
        assert_eq!(max.len(), MAX_LOCATIONS);
        assert_eq!(max.last().unwrap(), of_card[0]);
        assert_eq!(locations(&["@x"], &many), ["@x"], "no address with a port");
    }
}
