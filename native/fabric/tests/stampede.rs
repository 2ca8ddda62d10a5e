//! Many members behind one address connect at once, as when a stage begins.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use faro_fabric::tcp::{Bounds, TcpConfig, TcpFabric};
use faro_fabric::{Event, Fabric, Identity, OwnIdentity};
use faro_pool::{Pool, MIN_LIMIT_BYTES};
use std::time::{Duration, Instant};

const MEMBERS: u128 = 400;
/// Of the test, and of a connection that says nothing: one thread works for all, maybe with a small
/// share of a processor.
const TIMEOUT: Duration = Duration::from_secs(3_600);

fn fabric(endpoint: u128) -> TcpFabric {
    let config = TcpConfig {
        bind: ([127, 0, 0, 1], 0).into(),
        advertise: String::new(),
        identity: OwnIdentity::public(endpoint),
        protection: faro_secure::Protection::Clear,
        pool: Pool::new(MIN_LIMIT_BYTES).unwrap(),
    };
    let bounds = Bounds {
        hello_timeout: TIMEOUT,
        ..Bounds::default()
    };
    TcpFabric::with_bounds(config, bounds).unwrap()
}

/// All of them say nothing until all have connected, so that the server has them as unauthenticated at once.
#[test]
fn members_behind_one_address_do_not_displace_each_other() {
    const SERVER: u128 = 1;
    let mut server = fabric(SERVER);
    let location = server.location();
    let deadline = Instant::now() + TIMEOUT;
    let mut members: Vec<_> = (0..MEMBERS).map(|n| fabric(SERVER + 1 + n)).collect();
    let mut events = Vec::new();
    for member in &mut members {
        let identity = Identity::public(SERVER);
        member.connect(&location, &identity, deadline).unwrap();
        // It has accepted all so far, and has nothing of them yet.
        server.poll(&mut events, Duration::ZERO).unwrap();
    }
    let mut open = 0;
    while open < MEMBERS {
        server.poll(&mut events, Duration::ZERO).unwrap();
        for member in &mut members {
            member.poll(&mut events, Duration::ZERO).unwrap();
        }
        for event in events.drain(..) {
            match event {
                Event::Connected { .. } => open += 1,
                Event::Closed { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
    }
}
