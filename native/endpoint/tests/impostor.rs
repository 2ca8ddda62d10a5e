//! A member that claims to be another one: it has a card, and with it all that a card can prove.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
mod support;
#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;

use faro_endpoint::{Config, Endpoint, FabricChoice, Protection, Security};
use faro_fabric::OwnIdentity;
use faro_wire::Card;
use scripted::ScriptedPeer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use support::{block, config, fetch, pattern, until, Server};

/// Returns a configuration without a secret of Spark's: only the card proves the membership.
fn with(protection: Protection, name: &str, fabric: FabricChoice) -> Config {
    let security = Security {
        protection,
        ..Security::default()
    };
    Config {
        security,
        ..config(name, fabric)
    }
}

over_every_fabric!(
    what_a_claimed_id_answers_is_not_asked_for,
    a_member_in_the_place_of_another_is_refused,
);

/// A process with A's card connects to A and claims to be B. A then fetches from B.
fn what_a_claimed_id_answers_is_not_asked_for(fabric: FabricChoice) {
    for protection in [Protection::Clear, Protection::Sealed] {
        let a = Endpoint::start(with(protection, "a", fabric)).unwrap();
        let b = Server::start(with(protection, "b", fabric));
        b.put(0, 0, &[pattern(1, 5_000)]);
        let card_of_b = b.endpoint.card();
        let mut own = OwnIdentity::public(66);
        own.identity.endpoint = Card::decode(&card_of_b).unwrap().endpoint;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let impostor = ScriptedPeer::start_on(
            fabric,
            own,
            protection,
            Some(a.card()),
            Box::new(move |stage, peer, id, fetch, _| {
                if let Some(fetch) = fetch {
                    count.fetch_add(1, Ordering::AcqRel);
                    stage.answer(peer, id, &fetch, &[0xbb; 5_000]);
                }
            }),
        );
        until("the impostor's connection", || {
            impostor.connected.load(Ordering::Acquire)
        });
        let peer = a.add_peer(&card_of_b).unwrap();
        let fetched = fetch(&a, peer, &[block(0, 0, 0, 1)]);
        assert!(fetched.bytes() == [pattern(1, 5_000)], "{protection:?}");
        assert_eq!(asked.load(Ordering::Acquire), 0, "{protection:?}");
    }
}

/// A process with B's card listens in B's place. A's fetch from B must fail, without a forged byte.
fn a_member_in_the_place_of_another_is_refused(fabric: FabricChoice) {
    for protection in [Protection::Clear, Protection::Sealed] {
        let a = Endpoint::start(with(protection, "a", fabric)).unwrap();
        let b = Endpoint::start(with(protection, "b", fabric)).unwrap();
        let mut card = Card::decode(&b.card()).unwrap();
        let mut own = OwnIdentity::public(66);
        own.identity = support::identity(&card);
        let impostor = ScriptedPeer::start_on(
            fabric,
            own,
            protection,
            None,
            Box::new(|stage, peer, id, fetch, _| {
                if let Some(fetch) = fetch {
                    stage.answer(peer, id, &fetch, &[0xbb; 5_000]);
                }
            }),
        );
        let there = Card::decode(&impostor.card).unwrap();
        let scheme = card.addresses[0].scheme.clone();
        card.addresses = there.addresses;
        card.addresses[0].scheme = scheme;
        let peer = a.add_peer(&card.encode()).unwrap();
        let fetched = fetch(&a, peer, &[block(0, 0, 0, 1)]);
        let failure = fetched.failure.expect("a failure");
        let cause = "has not the key of the one on the card";
        assert!(failure.detail.contains(cause), "{}", failure.detail);
    }
}
