//! The conformance suite on an RDMA device, both ends in this process; and somebody on the control channel.
//!
//! Needs a device, and so is run by `tests/softroce/run`: `... -- verbs --ignored`.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

mod front;
mod middle;

use faro_conformance::{fabric_conformance, Bench, Site};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric, VerbsOptions};
use faro_fabric::OwnIdentity;
use faro_pool::Pool;
use faro_secure::Protection;
use front::Front;
use middle::{identity, pass, Side, Stage, Tamper, Way};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

struct Verbs {
    protection: Protection,
    /// The port that all fabrics share; without it, each has its own.
    front: Option<Front>,
}

impl Verbs {
    fn with(protection: Protection) -> Self {
        Self {
            protection,
            front: None,
        }
    }

    fn behind_one_port() -> Self {
        Self {
            front: Some(Front::on([127, 0, 0, 1].into())),
            ..Self::with(Protection::Clear)
        }
    }
}

impl Bench for Verbs {
    fn site(&self) -> Site {
        let pool = Pool::new(128 << 20).unwrap();
        let id = u128::from(NEXT.fetch_add(1, Ordering::Relaxed)) << 64 | 0xfa20;
        let identity = OwnIdentity::public(id);
        let config = VerbsConfig {
            bind: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: String::new(),
            identity: identity.clone(),
            protection: self.protection,
            pool: pool.clone(),
            options: VerbsOptions::default(),
        };
        let fabric = match &self.front {
            Some(front) => VerbsFabric::behind(&front.port, config),
            None => VerbsFabric::new(config),
        };
        Site {
            fabric: Box::new(fabric.unwrap()),
            pool,
            identity,
        }
    }

    fn nowhere(&self) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().to_string()
    }

    fn learns_refusals(&self) -> bool {
        self.protection == Protection::Clear
    }
}

fabric_conformance!(
    #[ignore = "needs an RDMA device: tests/softroce/run"]
    verbs,
    Verbs::with(Protection::Clear)
);
fabric_conformance!(
    #[ignore = "needs an RDMA device: tests/softroce/run"]
    verbs_sealed,
    Verbs::with(Protection::Sealed)
);

fabric_conformance!(
    #[ignore = "needs an RDMA device: tests/softroce/run"]
    verbs_behind_one_port,
    Verbs::behind_one_port()
);

/// The bytes of all frames' first field.
const MAGIC: &[u8] = b"FARO";
/// Units of an introduction, each way: the handshake, and what names a queue pair.
const UNITS: [usize; 2] = [3, 2];

fn pair(protection: Protection) -> Stage {
    let side = |endpoint| Side::verbs(identity(endpoint, "spark's"), protection);
    Stage::new(side(10), side(20))
}

/// Connects a sealed pair and drives it until a message has passed, or until one side knows why it
/// cannot. `dropped` is the direction in which nothing follows a missing unit.
fn introduced(stage: &mut Stage, tamper: &mut Tamper<'_>, dropped: Option<Way>) -> Option<String> {
    stage.again();
    let mut said = false;
    while stage.acceptor.messages().is_empty() && stage.told().is_none() {
        stage.step(tamper);
        let open = stage.connector.connection.is_some() && stage.connector.closed().is_none();
        if open && !said {
            stage.connector.say(b"a message");
            said = true;
        }
        let seen = |way| match way {
            Way::Up => stage.middle.up.seen.len(),
            Way::Down => stage.middle.down.seen.len(),
        };
        if let Some(way) = dropped.filter(|way| seen(*way) == UNITS[*way as usize]) {
            stage.middle.end(way);
        }
    }
    stage.told().map(|reason| reason.to_string())
}

fn positions(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|b| *b == wanted).count()
}

/// The names of a queue pair and its port are in frames that a sealed control channel does not show.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn sealed_queue_pairs_are_introduced_in_records() {
    for protection in [Protection::Clear, Protection::Sealed] {
        let mut stage = pair(protection);
        stage.open();
        // The frames that make no unit in the clear are in one here.
        let [up, down] = [&stage.middle.up, &stage.middle.down].map(|way| way.bytes());
        let frames = [&up, &down].map(|bytes| positions(bytes, MAGIC));
        // The port's address, as an IPv6 address that stands for one of IPv4.
        let gids = positions(&up, &[0, 0, 0xff, 0xff, 10, 77, 0, 1]);
        match protection {
            // HELLO, PROOF and QP_INFO; WELCOME and QP_INFO.
            Protection::Clear => assert_eq!((frames, gids), ([3, 2], 1)),
            // HELLO and PROOF; WELCOME.
            Protection::Sealed => assert_eq!((frames, gids), ([2, 1], 0)),
        }
    }
}

/// Somebody on the control channel flips bits in the records that name the queue pairs, drops and repeats them, and
/// takes those of another connection. No byte of that connection arrives.
#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_tampered_introduction_connects_no_queue_pairs() {
    let mut stage = pair(Protection::Sealed);
    introduced(&mut stage, &mut pass, None);
    assert_eq!(stage.acceptor.messages(), [b"a message"]);
    let [up, down] = [&stage.middle.up, &stage.middle.down].map(|way| way.seen.clone());
    assert_eq!([up.len(), down.len()], UNITS);
    for (way, unit, other) in [
        (Way::Up, 1, &up[1]),
        (Way::Up, 2, &up[2]),
        (Way::Down, 1, &down[1]),
    ] {
        for place in [4, other.len() / 2, other.len() - 1] {
            let told = introduced(
                &mut stage,
                &mut |this, number, mut bytes| {
                    if (this, number) == (way, unit) {
                        bytes[place] ^= 1;
                    }
                    vec![bytes]
                },
                None,
            );
            refused(&stage, told, &format!("{way:?}, byte {place}"));
        }
        let told = introduced(
            &mut stage,
            &mut |this, number, bytes| match (this, number) == (way, unit) {
                true => vec![],
                false => vec![bytes],
            },
            Some(way),
        );
        refused(&stage, told, &format!("{way:?} dropped"));
        let told = introduced(
            &mut stage,
            &mut |this, number, bytes| match (this, number) == (way, unit) {
                true => vec![other.clone()],
                false => vec![bytes],
            },
            None,
        );
        refused(&stage, told, &format!("{way:?} of another connection"));
        // The first copy is good, and the second one ends the connection.
        stage.again();
        stage.until(
            "the end of the connection",
            &mut |this, number, bytes| {
                let copies = if (this, number) == (way, unit) { 2 } else { 1 };
                vec![bytes; copies]
            },
            |stage| stage.told().is_some(),
        );
        let told = stage.told().map(|reason| reason.to_string());
        let text = told.unwrap();
        let late = text.contains("bytes on the control connection after the queue pairs");
        let proof = text.contains("it has from 17 to 65552");
        assert!(
            late || proof || text.contains("changed, left out or repeated"),
            "{way:?} repeated: {text}"
        );
    }
}

/// Checks that the pair never opened for the acceptor's user, that nothing arrived, and that one
/// side gives the reason.
fn refused(stage: &Stage, told: Option<String>, what: &str) {
    assert!(stage.acceptor.messages().is_empty(), "{what}");
    assert!(stage.acceptor.connection.is_none(), "{what}");
    let text = told.unwrap_or_else(|| panic!("{what}: not refused"));
    let ended = text.contains("the peer ended the stream") || text.contains("PROOF does not prove");
    assert!(
        ended || text.contains("changed, left out or repeated"),
        "{what}: {text}"
    );
}
