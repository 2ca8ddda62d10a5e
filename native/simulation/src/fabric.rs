//! The simulated fabric, through which a progress thread uses the network.

use crate::core::Core;
use crate::network::{Network, ProcessSpeed};
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, FabricError, FabricKind, Identity, Message,
    Read, RejectedPost, RemoteRange, RevokeStatus, Waker, Write, WriteSources,
};
use faro_sync::lock;
use faro_wire::header::MAX_MESSAGE_BYTES;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The state that all fabrics of a simulation share. Only one thread uses it; the lock is there
/// because `Fabric` must be `Send`.
pub(crate) struct World {
    pub(crate) core: Core,
    pub(crate) network: Network,
}

/// Returns whether a text has the form of a location: `node-NUMBER:NUMBER`.
fn is_location(text: &str) -> bool {
    let numbers = text
        .strip_prefix("node-")
        .and_then(|rest| rest.split_once(':'));
    numbers.is_some_and(|(node, place)| {
        node.parse::<usize>().is_ok() && place.parse::<usize>().is_ok()
    })
}

/// The fabric of one site.
pub(crate) struct SimulatedFabric {
    world: Arc<Mutex<World>>,
    site: usize,
    kind: FabricKind,
    location: String,
    waker: Waker,
}

impl SimulatedFabric {
    /// Returns a fabric for the node's progress thread number `place`.
    pub(crate) fn new(
        world: &Arc<Mutex<World>>,
        (node, place): (usize, usize),
        kind: FabricKind,
        identity: &Identity,
        pace: ProcessSpeed,
    ) -> Self {
        let location = format!("node-{node}:{place}");
        let network = &mut lock(world).network;
        let site = network.add_site((node, place), kind, identity.clone(), location.clone());
        network.sites[site].pace = pace;
        let waker = network.waker(site);
        Self {
            world: Arc::clone(world),
            site,
            kind,
            location,
            waker,
        }
    }

    pub(crate) fn site(&self) -> usize {
        self.site
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }
}

impl Fabric for SimulatedFabric {
    fn kind(&self) -> FabricKind {
        self.kind
    }

    fn location(&self) -> String {
        self.location.clone()
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.waker)
    }

    fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        if !is_location(location) {
            return Err(FabricError::BadLocation {
                fabric: "simulated",
                location: location.to_owned(),
                detail: "expected node-NUMBER:NUMBER".to_owned(),
            });
        }
        let World { core, network } = &mut *self.world();
        let deadline = core.time_of(deadline);
        Ok(network.dial(core, self.site, location, expected, deadline))
    }

    fn disconnect(&mut self, connection: ConnectionId, reason: CloseReason) {
        let World { core, network } = &mut *self.world();
        network.disconnect(core, self.site, connection, reason);
    }

    fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, RejectedPost<Exposure>> {
        let World { network, .. } = &mut *self.world();
        if !network.is_open(self.site, connection) {
            return Err(RejectedPost::NotConnected(exposure, connection));
        }
        if network.exposures_of(self.site, connection) >= network.conditions.exposures {
            return Err(RejectedPost::Full(exposure));
        }
        Ok(network.expose(self.site, connection, exposure))
    }

    fn revoke(&mut self, key: u64) -> RevokeStatus {
        let World { core, network } = &mut *self.world();
        let revoked = network.revoke(self.site, key);
        if let RevokeStatus::Later = revoked {
            network.let_go_later(core, self.site, key);
        }
        revoked
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        let limit = MAX_MESSAGE_BYTES as usize;
        if message.body.len() > limit {
            return Err(RejectedPost::TooLarge(message, limit as u64));
        }
        let World { core, network } = &mut *self.world();
        network.send(core, (self.site, connection), message)
    }

    fn write_sources(&mut self, _connection: ConnectionId) -> WriteSources {
        WriteSources {
            by_device: self.kind.is_by_device(),
            ..WriteSources::FRAMES
        }
    }

    fn write(&mut self, connection: ConnectionId, write: Write) -> Result<(), RejectedPost<Write>> {
        if let Err(limit) = self.write_sources(connection).check(&write.source) {
            return Err(RejectedPost::TooLarge(write, limit));
        }
        let World { core, network } = &mut *self.world();
        network.write(core, (self.site, connection), write)
    }

    fn read(&mut self, connection: ConnectionId, read: Read) -> Result<(), RejectedPost<Read>> {
        let limit = read.target.capacity();
        if read.source.length as usize > limit {
            return Err(RejectedPost::TooLarge(read, limit as u64));
        }
        let World { core, network } = &mut *self.world();
        network.read(core, (self.site, connection), read)
    }

    fn flush(&mut self) {}

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Duration) -> Result<(), FabricError> {
        let World { core, network } = &mut *self.world();
        match network.poll(core, self.site, events, timeout) {
            false => Ok(()),
            true => Err(FabricError::Unavailable {
                fabric: "simulated",
                reason: "the device is gone".to_owned(),
                absent: false,
            }),
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.world().network.counters(self.site)
    }
}

impl Drop for SimulatedFabric {
    fn drop(&mut self) {
        let World { core, network } = &mut *self.world();
        network.drop_site(core, self.site);
    }
}
