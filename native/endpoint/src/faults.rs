//! Injects faults: a fabric that changes, loses and delays messages on purpose. It is compiled only
//! with the feature `faults`, which no released library has; tests of whole Spark jobs load a
//! library that was built with it (`tests/spark`).
//!
//! `FARO_FAULTS` names the faults and their frequency n, e.g. `flip=7,drop=50,swallow=90`:
//! - `flip` flips one bit of every n-th write;
//! - `drop` ends the connection instead of every n-th `DATA_WRITTEN`;
//! - `swallow` does not send every n-th `DATA_WRITTEN`, so that its client's deadline passes;
//! - `die` makes the fabric fail for good at the n-th `DATA_WRITTEN`, as if its device were gone,
//!   while the process lives on.

use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, FabricError, FabricKind, Identity, Message,
    Read, Rejected, RemoteRange, Revoked, Waker, Write,
};
use faro_pool::{Lease, Pool, Purpose};
use faro_wire::kind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Strikes at every n-th call; never for zero.
#[derive(Default)]
struct Every {
    n: u64,
    calls: u64,
}

impl Every {
    fn strikes(&mut self) -> bool {
        self.calls += 1;
        self.n > 0 && self.calls % self.n == 0
    }
}

/// A fabric with faults, around a real one.
pub(crate) struct FaultyFabric {
    inner: Box<dyn Fabric>,
    pool: Arc<Pool>,
    flip: Every,
    drop: Every,
    swallow: Every,
    die: Every,
    dead: bool,
}

/// Wraps `fabric` if the environment asks for it.
pub(crate) fn wrap(fabric: Box<dyn Fabric>, pool: &Arc<Pool>) -> Box<dyn Fabric> {
    let Ok(plan) = std::env::var("FARO_FAULTS") else {
        return fabric;
    };
    let every = |name: &str| {
        let rate = plan
            .split(',')
            .filter_map(|part| part.split_once('='))
            .find(|(key, _)| *key == name);
        Every {
            n: rate.and_then(|(_, n)| n.parse().ok()).unwrap_or(0),
            calls: 0,
        }
    };
    log::warn!("FAULT INJECTION IS ON: {plan}");
    let (flip, drop) = (every("flip"), every("drop"));
    let (swallow, die) = (every("swallow"), every("die"));
    Box::new(FaultyFabric {
        inner: fabric,
        pool: Arc::clone(pool),
        flip,
        drop,
        swallow,
        die,
        dead: false,
    })
}

impl Fabric for FaultyFabric {
    fn kind(&self) -> FabricKind {
        self.inner.kind()
    }
    fn location(&self) -> String {
        self.inner.location()
    }
    fn connection_bytes(&self) -> u64 {
        self.inner.connection_bytes()
    }
    fn wants_fewer_connections(&self) -> bool {
        self.inner.wants_fewer_connections()
    }
    fn waker(&self) -> Waker {
        self.inner.waker()
    }
    fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        self.inner.connect(location, expected, deadline)
    }
    fn disconnect(&mut self, peer: ConnectionId, reason: CloseReason) {
        self.inner.disconnect(peer, reason);
    }
    fn register(&mut self, lease: &Lease) -> Result<(), FabricError> {
        self.inner.register(lease)
    }
    fn expose(
        &mut self,
        peer: ConnectionId,
        what: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        self.inner.expose(peer, what)
    }
    fn revoke(&mut self, key: u64) -> Revoked {
        self.inner.revoke(key)
    }
    fn send(&mut self, peer: ConnectionId, message: Message) -> Result<(), Rejected<Message>> {
        if message.kind == kind::DATA_WRITTEN {
            self.dead |= self.die.strikes();
            if self.drop.strikes() {
                let detail = "fault injection".to_owned();
                self.inner.disconnect(peer, CloseReason::Lost { detail });
                return Ok(());
            }
            if self.swallow.strikes() {
                return Ok(());
            }
        }
        self.inner.send(peer, message)
    }
    fn write(&mut self, peer: ConnectionId, mut write: Write) -> Result<(), Rejected<Write>> {
        if self.flip.strikes() && write.length > 0 {
            if let Ok(mut lie) = self.pool.try_lease(write.length, Purpose::Serve) {
                let truth = &write.source.bytes()[write.offset..write.offset + write.length];
                lie.bytes_mut()[..write.length].copy_from_slice(truth);
                lie.bytes_mut()[write.length / 2] ^= 0x10;
                write.source = Arc::new(lie);
                write.offset = 0;
            }
        }
        self.inner.write(peer, write)
    }
    fn read(&mut self, peer: ConnectionId, read: Read) -> Result<(), Rejected<Read>> {
        self.inner.read(peer, read)
    }
    fn flush(&mut self) {
        self.inner.flush();
    }
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Duration) -> Result<(), FabricError> {
        if self.dead {
            let source = std::io::Error::other("fault injection");
            return Err(FabricError::Io {
                what: "poll".to_owned(),
                source,
            });
        }
        self.inner.poll(events, timeout)
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}
