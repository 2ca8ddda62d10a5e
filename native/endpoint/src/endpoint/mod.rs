//! The public face of the crate: one [`Endpoint`] per process.

mod error;
mod fabrics;
#[cfg(feature = "simulation")]
mod manual_endpoint;
mod metrics;
mod start;

pub use error::EndpointError;
#[cfg(feature = "simulation")]
pub use manual_endpoint::{ManualEndpoint, Turn};
pub use metrics::rdma_port_counters;

use crate::collective::{Dispatch, TeamMember};
use crate::command::{CommandAnswer, CommandQueue};
use crate::counters::EndpointCounters;
use crate::fetch::{Completion, RequestQueue};
use crate::files::{Catalog, OutputFiles};
use crate::loans::{LentOutputs, LoanError};
use crate::local::{LocalBlock, LocalError};
use crate::memory::Memory;
use crate::net::{Doorbell, PeerTable};
use crate::schedule::Exchange;
use crate::serve::IoPool;
use faro_pool::Pool;
use faro_region::StagedFile;
use faro_sync::lock;
use faro_wire::message::{MemberCommand, MAX_BLOCKS};
use faro_wire::{BlockId, Card, OutputId};
use std::fs::File;
use std::net::IpAddr;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The endpoint of this process; see the crate's comment.
pub struct Endpoint {
    card: Card,
    memory: Arc<Memory>,
    catalog: Arc<Catalog>,
    loans: LentOutputs,
    counters: Arc<EndpointCounters>,
    exchange: Arc<Exchange>,
    peers: Arc<PeerTable>,
    queue: Arc<RequestQueue>,
    collective: Arc<Dispatch>,
    commands: Arc<CommandQueue>,
    io: Arc<IoPool>,
    doorbells: Vec<Arc<Doorbell>>,
    progress: Mutex<Vec<JoinHandle<()>>>,
}

impl Endpoint {
    /// Returns the encoded card of this endpoint.
    #[must_use]
    pub fn card(&self) -> Vec<u8> {
        self.card.encode()
    }

    /// A handle for the endpoint behind `card`, the same one for the same endpoint. Does not connect. A
    /// peer that is asked for nothing for an hour is forgotten, and has to be added again.
    ///
    /// # Errors
    /// `Card`, `NoKey`.
    pub fn add_peer(&self, card: &[u8]) -> Result<u64, EndpointError> {
        self.add_peer_at(card, &[])
    }

    /// Adds a peer with other addresses. `known_at` are addresses of the peer's host as this host
    /// sees them, for example those of its name. They are tried in their order, and then the
    /// card's.
    ///
    /// # Errors
    /// `Card`, `NoKey`.
    pub fn add_peer_at(&self, card: &[u8], known_at: &[IpAddr]) -> Result<u64, EndpointError> {
        let card = Card::decode(card).map_err(EndpointError::Card)?;
        self.peers
            .add(&card, known_at)
            .map_err(EndpointError::NoKey)
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
        self.start_fetch(peer, blocks, timeout, false)
    }

    /// Like `fetch`, for a caller that verifies each block by checksums in it: the bytes may arrive without being checked
    /// on the way.
    ///
    /// # Errors
    /// As `fetch`.
    pub fn fetch_to_verify(
        &self,
        peer: u64,
        blocks: &[BlockId],
        timeout: Duration,
    ) -> Result<u64, EndpointError> {
        self.start_fetch(peer, blocks, timeout, true)
    }

    fn start_fetch(
        &self,
        peer: u64,
        blocks: &[BlockId],
        timeout: Duration,
        reader_verifies: bool,
    ) -> Result<u64, EndpointError> {
        let max = MAX_BLOCKS as usize;
        if blocks.is_empty() || blocks.len() > max {
            return Err(EndpointError::BadRequest {
                got: blocks.len(),
                max,
            });
        }
        Ok(self
            .queue
            .admit(peer, blocks.to_vec(), timeout, reader_verifies)?)
    }

    /// Returns whether requests to the peer failed a short time ago, so that a new one is likely to
    /// cost a timeout. `fetch` sends one anyway: only the caller knows whether its blocks can come
    /// another way.
    #[must_use]
    pub fn is_backed_off(&self, peer: u64) -> bool {
        self.peers.is_backed_off(peer)
    }

    /// Begins the peer's back-off because of a failure that only the caller could see, for example
    /// that a request never ended.
    pub fn blame(&self, peer: u64) {
        self.peers.blame(peer);
    }

    /// Cancels a request; a last completion with `Cancelled` follows unless it had ended.
    pub fn cancel(&self, request: u64) {
        self.queue.cancel(request);
    }

    /// Waits up to `timeout` for one completion and appends up to `max`. With several queues (see
    /// `split_completions`) those of the first one.
    pub fn completions(&self, max: usize, timeout: Duration, out: &mut Vec<Completion>) {
        self.completions_of(0, max, timeout, out);
    }

    /// Completions come in `queues` queues (at most 8), so that several threads can take them. All
    /// completions of a request are in one of them. To be called before the first fetch.
    pub fn split_completions(&self, queues: usize) {
        self.queue.completions().split(queues);
    }

    /// Takes completions like `completions`, from one queue.
    pub fn completions_of(
        &self,
        queue: usize,
        max: usize,
        timeout: Duration,
        out: &mut Vec<Completion>,
    ) {
        self.queue.completions().take(queue, max, timeout, out);
    }

    /// Waits up to `timeout` for map outputs that peers ask for and whose files this endpoint does not
    /// know.
    pub fn unresolved(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        self.catalog.questions(max, timeout)
    }

    /// Answers an output of `unresolved`, and opens its files. `None` means that there is no such
    /// output.
    pub fn resolve(&self, output: OutputId, files: Option<OutputFiles>) {
        self.catalog.answer(output, files.as_ref());
    }

    /// Partitions `start` to `end` (exclusive) of an own map output, to be read on the caller's thread.
    /// May sleep.
    ///
    /// # Errors
    /// `Unresolved`: `resolve` it and ask again. `Status`.
    pub fn local(&self, output: OutputId, start: u32, end: u32) -> Result<LocalBlock, LocalError> {
        LocalBlock::find(&self.catalog, &self.loans, output, start, end)
    }

    /// Takes the files of another process's map output, which the node service of this host has lent.
    /// `local` reads them from then on, until there are too many or the shuffle is forgotten. They are
    /// not served to peers.
    ///
    /// # Errors
    /// They are not files that this process may only read, or no map output.
    pub fn lend(&self, output: OutputId, index: File, data: Option<File>) -> Result<(), LoanError> {
        self.loans.keep(output, index, data)
    }

    /// Returns whether `local` finds the map output without being told of its files.
    #[must_use]
    pub fn has_local(&self, output: OutputId) -> bool {
        self.catalog.ready(output).is_some() || self.loans.find(output).is_some()
    }

    /// Returns the most map outputs that are lent at a time.
    #[must_use]
    pub fn max_lent(&self) -> usize {
        self.loans.max()
    }

    /// Starts to stage a map output that is being written: it takes the data file's bytes, for
    /// `committed`. Returns `None` if outputs are not staged when they are written.
    #[must_use]
    pub fn stage(&self) -> Option<StagedFile> {
        let stages = self.memory.stages_outputs;
        stages.then(|| self.memory.cache.stage())
    }

    /// Announces a map output that was written. If outputs are staged, opens its files and brings
    /// it into the chunk cache: from `staged`, which has the front of its data file, and the rest
    /// by other threads from the file.
    pub fn committed(&self, output: OutputId, files: &OutputFiles, staged: Option<StagedFile>) {
        if self.memory.stages_outputs {
            self.catalog.answer(output, Some(files));
            if let Some(output) = self.catalog.ready(output) {
                if let (Some(staged), Some(region)) = (staged, output.region()) {
                    staged.publish(region);
                }
                self.io.prefetch(output);
            }
        }
    }

    /// Forgets (and closes) all files of a shuffle.
    pub fn forget_shuffle(&self, shuffle: u32) {
        self.catalog.forget(shuffle);
        self.loans.forget(shuffle);
        self.memory.cache.forget(shuffle);
        #[cfg(feature = "research")]
        if self.memory.regions.maps_files() {
            // A mapping lives as long as it is exposed to a peer.
            self.memory.recall_all();
        }
    }

    /// Makes a member of a future team: send its bootstrap id to the others, then join.
    ///
    /// # Errors
    /// The endpoint is closed.
    pub fn member(&self) -> Result<TeamMember, EndpointError> {
        let (dispatch, pool) = (Arc::clone(&self.collective), Arc::clone(&self.memory.pool));
        Ok(TeamMember::new(dispatch, pool, self.card.clone())?)
    }

    /// Sends a command to a peer and does not block. The answer, or the reason why none came within `timeout`, goes to
    /// `answers`.
    /// If this endpoint closes meanwhile, `answers` may be dropped without one.
    ///
    /// # Errors
    /// `UnknownPeer`, `Full`, `Closed`.
    pub fn command(
        &self,
        peer: u64,
        command: MemberCommand,
        timeout: Duration,
        answers: Sender<CommandAnswer>,
    ) -> Result<(), EndpointError> {
        Ok(self.commands.admit(peer, command, timeout, answers)?)
    }

    /// Returns the arena.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.memory.pool
    }

    /// Returns whether `close` was called.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closing()
    }

    /// Ends all requests with `Closing` and stops all threads. Delivered blocks stay valid.
    /// Idempotent; a caller that waits in `completions` or `unresolved` returns at its timeout.
    pub fn close(&self) {
        self.queue.close();
        self.collective.close();
        self.commands.close();
        for doorbell in &self.doorbells {
            doorbell.close();
        }
        let mut threads = lock(&self.progress);
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                log::error!("a progress thread panicked");
            }
        }
        self.io.stop();
        self.catalog.close();
        self.loans.close();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close();
    }
}
