//! Endpoints that seal their bytes, and endpoints that do not belong together.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[macro_use]
mod support;

use faro_endpoint::{Config, Endpoint, FabricChoice, Protection, Security, SharedSecret};
use faro_wire::codes::FetchErrorCode;
use faro_wire::Card;
use support::{block, config, counter, fetch, name_of, pattern, FetchOutcome, Server};

fn secured(name: &str, fabric: FabricChoice, secret: &str) -> Config {
    Config {
        security: Security {
            protection: Protection::Sealed,
            application: "app-20261122-0001".to_owned(),
            secret: Some(SharedSecret::new(secret.as_bytes().to_vec())),
        },
        ..config(name, fabric)
    }
}

/// Returns a server with one map output of a small, an empty and a large partition.
fn server(config: Config) -> (Server, [Vec<u8>; 3]) {
    let server = Server::start(config);
    let parts = [pattern(1, 500), vec![], pattern(2, 3_000_000)];
    server.put(0, 0, &parts);
    (server, parts)
}

fn refusal(fetched: FetchOutcome) -> String {
    let failure = fetched.failure.expect("a failure");
    assert_eq!(failure.code, FetchErrorCode::Unreachable);
    failure.detail
}

over_every_fabric!(sealed_endpoints_fetch_from_each_other);

fn sealed_endpoints_fetch_from_each_other(fabric: FabricChoice) {
    let connections = format!("connections.{}", name_of(fabric));
    let (server, parts) = server(secured("server", fabric, "spark's"));
    let client = Endpoint::start(secured("client", fabric, "spark's")).unwrap();
    let peer = server.peer_of(&client);
    let blocks: Vec<_> = (0..3).map(|part| block(0, 0, part, part + 1)).collect();
    // The chunk cache has the bytes after some times, and would offer them to be read.
    for _ in 0..6 {
        let fetched = fetch(&client, peer, &blocks);
        assert_eq!(fetched.bytes(), parts);
    }
    assert_eq!(counter(&client, &connections), 1);
}

#[test]
fn endpoints_that_do_not_belong_together_say_so() {
    let fabric = FabricChoice::Tcp;
    let (server, _) = server(secured("server", fabric, "spark's"));
    let other_application = {
        let mut config = secured("client", fabric, "spark's");
        config.security.application.push('2');
        config
    };
    let unproven = "does not prove membership in this application";
    for (config, cause) in [
        (secured("client", fabric, "another"), unproven),
        (other_application, unproven),
        (
            self::config("client", fabric),
            "the security settings differ",
        ),
    ] {
        let client = Endpoint::start(config).unwrap();
        let peer = server.peer_of(&client);
        let detail = refusal(fetch(&client, peer, &[block(0, 0, 0, 1)]));
        assert!(detail.contains(cause), "{detail}");
        assert!(!detail.contains("spark's"), "{detail}");
    }
    // A card on which somebody changed the secret.
    let client = Endpoint::start(secured("client", fabric, "spark's")).unwrap();
    let mut card = Card::decode(&server.endpoint.card()).unwrap();
    card.secret = faro_secure::Secret::new([0; 32]);
    let peer = client.add_peer(&card.encode()).unwrap();
    let detail = refusal(fetch(&client, peer, &[block(0, 0, 0, 1)]));
    assert!(detail.contains(unproven), "{detail}");
}
