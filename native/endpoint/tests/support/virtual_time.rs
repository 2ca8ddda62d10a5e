//! Endpoints whose time is virtual: a timeout, a back-off or a rate takes none, and what a test sees of it does not depend
//! on the machine's speed.

#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use crate::support::{write_output, CollectedBlocks, FetchOutcome, TIMEOUT};
use faro_endpoint::{Config, Endpoint, OutputFiles};
use faro_simulation::{Resolver, VirtualNetwork};
use faro_wire::{BlockId, OutputId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What runs endpoints, and only while a test waits.
pub trait EndpointDriver {
    /// Starts an endpoint. `resolver` says where its map outputs are.
    fn endpoint(&self, config: Config, resolver: Resolver) -> Arc<Endpoint>;

    /// Runs all of them until the condition holds.
    fn until(&self, what: &str, condition: &mut dyn FnMut() -> bool);
}

impl EndpointDriver for VirtualNetwork {
    fn endpoint(&self, config: Config, resolver: Resolver) -> Arc<Endpoint> {
        Self::endpoint(self, config, resolver).unwrap()
    }

    fn until(&self, what: &str, condition: &mut dyn FnMut() -> bool) {
        Self::until(self, what, condition);
    }
}

/// A server: an endpoint, its files, and a Java side that says where they are.
pub struct VirtualServer {
    pub endpoint: Arc<Endpoint>,
    dir: tempfile::TempDir,
    files: Rc<RefCell<HashMap<OutputId, OutputFiles>>>,
}

impl VirtualServer {
    pub fn start(theatre: &impl EndpointDriver, config: Config) -> Self {
        Self::with(|resolver| theatre.endpoint(config, resolver))
    }

    /// Starts a server on the endpoint that `start` makes.
    pub fn with(start: impl FnOnce(Resolver) -> Arc<Endpoint>) -> Self {
        let files: Rc<RefCell<HashMap<OutputId, OutputFiles>>> = Rc::default();
        let known = Rc::clone(&files);
        let resolver = move |id| Some(known.borrow().get(&id).cloned());
        Self {
            endpoint: start(Box::new(resolver)),
            dir: tempfile::tempdir().unwrap(),
            files,
        }
    }

    /// Writes a map output with the given partitions, as Spark would.
    pub fn put(&self, shuffle: u32, map: i64, partitions: &[Vec<u8>]) -> OutputFiles {
        let id = OutputId {
            shuffle_id: shuffle,
            map_id: map,
        };
        let files = write_output(self.dir.path(), id, partitions);
        self.files.borrow_mut().insert(id, files.clone());
        files
    }

    pub fn peer_of(&self, client: &Endpoint) -> u64 {
        client.add_peer(&self.endpoint.card()).unwrap()
    }
}

/// Starts an endpoint that has no map outputs, and whose Java side never answers.
pub fn endpoint(theatre: &impl EndpointDriver, config: Config) -> Arc<Endpoint> {
    theatre.endpoint(config, Box::new(|_| None))
}

/// Collects the completions of `requests` until each has had its last one.
pub fn collect(
    theatre: &impl EndpointDriver,
    client: &Endpoint,
    requests: &[u64],
) -> HashMap<u64, FetchOutcome> {
    let mut collected = CollectedBlocks::of(requests);
    theatre.until("the end of all requests", &mut || {
        collected.take(client, Duration::ZERO);
        collected.all_have_ended()
    });
    collected.done
}

pub fn fetch(
    theatre: &impl EndpointDriver,
    client: &Endpoint,
    peer: u64,
    blocks: &[BlockId],
) -> FetchOutcome {
    fetch_within(theatre, client, peer, blocks, TIMEOUT)
}

pub fn fetch_within(
    theatre: &impl EndpointDriver,
    client: &Endpoint,
    peer: u64,
    blocks: &[BlockId],
    timeout: Duration,
) -> FetchOutcome {
    let request = client.fetch(peer, blocks, timeout).unwrap();
    let mut collected = collect(theatre, client, &[request]);
    collected.remove(&request).unwrap()
}
