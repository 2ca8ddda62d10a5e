//! The executor's endpoint: server and client side, progress threads, arena.
//!
//! ```text
//!  caller --fetch--> Router --route--> Progress (one per fabric) ==fabric==> Progress of the owner
//!     ^                                   | Reader                              | Owner
//!     |                                   v                                     v
//!     +------ completions <---- blocks in leases                       I/O threads: files -> frames
//! ```
//! A progress thread owns its fabric and all state of the fetches on it, so none of that needs a
//! lock; threads talk by queues. Nothing blocks a progress thread: files are read by I/O threads,
//! arena memory is asked for without waiting, and Java is asked (where does a map output lie) and
//! told (blocks are there) through queues that Java threads take from. No native thread ever
//! attaches to the JVM.

pub mod collective;
mod completion;
mod config;
mod counters;
mod exchange;
#[cfg(feature = "faults")]
mod faults;
mod files;
mod memory;
mod outbox;
mod owner;
mod progress;
#[cfg(test)]
mod progress_test;
mod reader;
mod router;
mod routes;
mod start;

pub use completion::{Completion, Delivery, FetchFailure, Piece};
pub use config::{limits, Config, EndpointError, FabricChoice, RegionMode, Staging};
pub use exchange::{ExchangeConfig, ExchangePolicy};
pub use faro_fabric::verbs::VerbsOptions;
pub use files::OutputFiles;

use counters::Counters;
use faro_pool::Pool;
use faro_wire::message::MAX_BLOCKS;
use faro_wire::{BlockId, Card, OutputId};
use files::Catalog;
use memory::Memory;
use owner::IoPool;
use progress::Command;
use router::Router;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// One per process; see the crate's comment.
pub struct Endpoint {
    card: Card,
    memory: Arc<Memory>,
    catalog: Arc<Catalog>,
    counters: Arc<Counters>,
    router: Arc<Router>,
    io: Arc<IoPool>,
    progress: Mutex<Vec<JoinHandle<()>>>,
}

impl Endpoint {
    /// The encoded card of this endpoint.
    #[must_use]
    pub fn card(&self) -> Vec<u8> {
        self.card.encode()
    }

    /// A handle for the endpoint behind `card`; the same endpoint always gets the same handle.
    /// Does not connect.
    ///
    /// # Errors
    /// `Card`.
    pub fn add_peer(&self, card: &[u8]) -> Result<u64, EndpointError> {
        Ok(self
            .router
            .add_peer(&Card::decode(card).map_err(EndpointError::Card)?))
    }

    /// Starts a fetch of 1 to 32,768 blocks; its completions come from `completions`. It may go
    /// `timeout` without progress. Never blocks.
    ///
    /// # Errors
    /// `BadRequest`, `UnknownPeer`, `Full`, `Closed`.
    pub fn fetch(
        &self,
        peer: u64,
        blocks: &[BlockId],
        timeout: Duration,
    ) -> Result<u64, EndpointError> {
        let max = MAX_BLOCKS as usize;
        if blocks.is_empty() || blocks.len() > max {
            return Err(EndpointError::BadRequest {
                got: blocks.len(),
                max,
            });
        }
        self.router.admit(peer, blocks.to_vec(), timeout)
    }

    /// Gives a request up; a last completion with `Cancelled` follows unless it had ended.
    pub fn cancel(&self, request: u64) {
        self.router.cancel(request);
    }

    /// Waits up to `timeout` for one completion and appends up to `max`.
    pub fn completions(&self, max: usize, timeout: Duration, out: &mut Vec<Completion>) {
        self.router.completions.take(max, timeout, out);
    }

    /// Waits up to `timeout` for map outputs whose files peers ask for and this endpoint does not
    /// know.
    pub fn unresolved(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        self.catalog.questions(max, timeout)
    }

    /// Answers an `unresolved`, opening the files; `None`: there is no such output.
    pub fn resolve(&self, output: OutputId, files: Option<OutputFiles>) {
        self.catalog.answer(output, files.as_ref());
    }

    /// Tells that a map output was written, so that it can be staged if that is wanted. Opens its
    /// files then; its bytes are read by other threads.
    pub fn committed(&self, output: OutputId, files: &OutputFiles) {
        if self.memory.staging == Staging::OnCommit {
            self.catalog.answer(output, Some(files));
            if let Some(output) = self.catalog.ready(output) {
                self.io.stage(output);
            }
        }
    }

    /// Endpoints that will read from this one in the next round, in the order in which they are
    /// expected. Empty when there is no schedule.
    #[must_use]
    pub fn upcoming(&self) -> Vec<faro_fabric::EndpointId> {
        self.router.exchange.upcoming()
    }

    /// Forgets (and closes) all files of a shuffle.
    pub fn forget_shuffle(&self, shuffle: u32) {
        self.catalog.forget(shuffle);
        self.memory.cache.forget(shuffle);
        if self.memory.regions != RegionMode::Unpinned {
            // A mapping lives as long as a peer was shown it.
            self.memory.recall();
        }
    }

    /// A seat in a team that is to be: tell the others its invitation, then join.
    ///
    /// # Errors
    /// The endpoint is closed.
    pub fn seat(&self) -> Result<collective::Seat, EndpointError> {
        let (router, pool) = (Arc::clone(&self.router), Arc::clone(&self.memory.pool));
        Ok(collective::Seat::new(router, pool, self.card.clone())?)
    }

    /// The arena.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.memory.pool
    }

    /// Counters by name, e.g. `remoteBlocks.tcp`.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let mut all = self.counters.list();
        all.push(("openOutputs".to_owned(), self.catalog.open_outputs() as u64));
        for (name, value) in self.router.exchange.counters() {
            all.push((name.to_owned(), value));
        }
        let tally = &self.router.hub.tally;
        for (name, counter) in [
            ("collectiveRounds", &tally.rounds),
            ("collectiveRoundsFailed", &tally.rounds_failed),
            ("collectiveBytes", &tally.bytes),
        ] {
            all.push((name.to_owned(), counter.get()));
        }
        let pool = self.memory.pool.counters();
        let region = self.memory.cache.counters();
        for (name, value) in [
            ("pool.limitBytes", pool.limit_bytes),
            ("pool.mappedBytes", pool.mapped_bytes),
            ("pool.idleBytes", pool.resting_bytes),
            ("pool.hugeSlabs", pool.huge_slabs),
            ("pool.externalBytes", pool.wrapped_bytes),
            ("pool.pageBytes", pool.held_bytes),
            ("pool.fragmentationBytes", pool.fragmentation_bytes()),
            ("pool.leasedBytes", pool.leased_bytes),
            ("pool.highWaterBytes", pool.high_water_bytes),
            ("pool.acquisitions", pool.acquisitions),
            ("pool.reuseHits", pool.reuse_hits),
            ("pool.exhausted", pool.exhausted),
            ("pool.waits", pool.waits),
            ("pool.slabsMapped", pool.slabs_mapped),
            ("pool.mapNanos", pool.map_ns),
            ("pool.slabsReleased", pool.given_back),
            ("pool.registrations", pool.registrations),
            ("pool.registrationNanos", pool.registration_ns),
            ("pool.deregistrations", pool.deregistrations),
            ("pool.registeredBytes", pool.registered_bytes),
            (
                "pool.registeredHighWaterBytes",
                pool.registered_high_water_bytes,
            ),
            ("region.hits", region.exits.resident),
            ("region.minorFaults", region.exits.minor),
            ("region.majorFaults", region.exits.major),
            ("region.prefetched", region.staged),
            ("region.prefetchHits", region.staged_hits),
            ("region.evictions", region.evictions),
            ("region.pagesReleased", region.given_back),
            ("region.cachedChunks", region.resident_chunks),
            ("region.cachedBytes", region.held_bytes),
        ] {
            all.push((name.to_owned(), value));
        }
        all
    }

    /// `close` was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.router.is_closing()
    }

    /// Ends all requests with `Closing` and stops all threads. Delivered blocks stay valid.
    /// Idempotent; a caller that waits in `completions` or `unresolved` returns at its timeout.
    pub fn close(&self) {
        self.router.close();
        self.router.hub.close();
        for (_, inbox) in self.router.inboxes() {
            inbox.send(Command::Close);
        }
        let mut threads = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                log::error!("a progress thread panicked");
            }
        }
        self.io.stop();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}
