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
//!
//! The word `newer` lets the process speak as the next release will (`faro_wire::VersionRange::spoken`).

use faro_fabric::{
    CloseReason, ConnectionId, Event, Fabric, FabricError, Intercept, InterceptedFabric, Message,
    RejectedPost, Write, WritePart, WriteSource,
};
use faro_pool::{Pool, Purpose};
use faro_wire::kind;
use std::sync::Arc;
use std::time::Duration;

/// Strikes at every n-th call; never for zero.
#[derive(Default)]
struct EveryNth {
    n: u64,
    calls: u64,
}

impl EveryNth {
    fn strikes(&mut self) -> bool {
        self.calls += 1;
        self.n > 0 && self.calls % self.n == 0
    }
}

/// The faults of one fabric.
struct FabricFaults {
    pool: Arc<Pool>,
    flip: EveryNth,
    drop: EveryNth,
    swallow: EveryNth,
    die: EveryNth,
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
        EveryNth {
            n: rate.and_then(|(_, n)| n.parse().ok()).unwrap_or(0),
            calls: 0,
        }
    };
    log::warn!("FAULT INJECTION IS ON: {plan}");
    let (flip, drop) = (every("flip"), every("drop"));
    let (swallow, die) = (every("swallow"), every("die"));
    let faults = FabricFaults {
        pool: Arc::clone(pool),
        flip,
        drop,
        swallow,
        die,
        dead: false,
    };
    Box::new(InterceptedFabric::new(fabric, faults))
}

impl Intercept for FabricFaults {
    fn send(
        &mut self,
        inner: &mut dyn Fabric,
        peer: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        if message.kind == kind::DATA_WRITTEN {
            self.dead |= self.die.strikes();
            if self.drop.strikes() {
                let detail = "fault injection".to_owned();
                inner.disconnect(peer, CloseReason::Lost { detail });
                return Ok(());
            }
            if self.swallow.strikes() {
                return Ok(());
            }
        }
        inner.send(peer, message)
    }

    fn write(
        &mut self,
        inner: &mut dyn Fabric,
        peer: ConnectionId,
        mut write: Write,
    ) -> Result<(), RejectedPost<Write>> {
        let length = write.source.length();
        if self.flip.strikes() && length > 0 {
            if let Ok(mut lie) = self.pool.try_lease(length, Purpose::Serve) {
                let truth: Vec<&[u8]> = write.source.parts().iter().map(WritePart::bytes).collect();
                lie.bytes_mut()[..length].copy_from_slice(&truth.concat());
                lie.bytes_mut()[length / 2] ^= 0x10;
                write.source = WriteSource::part(Arc::new(lie), 0, length);
            }
        }
        inner.write(peer, write)
    }

    fn poll(
        &mut self,
        inner: &mut dyn Fabric,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        if self.dead {
            let source = std::io::Error::other("fault injection");
            return Err(FabricError::Io {
                what: "poll".to_owned(),
                source,
            });
        }
        inner.poll(events, timeout)
    }
}
