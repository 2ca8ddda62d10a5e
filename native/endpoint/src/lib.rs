//! The executor's endpoint: server and client side, progress threads, arena.
//!
//! API SKETCH, implementation under way; names and signatures stay.

use faro_pool::{Lease, PoolError};
use faro_wire::crossing::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use faro_wire::{BlockId, OutputId, WireError};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Which fabrics an endpoint opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FabricChoice {
    /// All that work here; the best one is taken per pair.
    Auto,
    /// TCP only.
    Tcp,
    /// Shared memory only (same host).
    Shm,
}

/// What an endpoint is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Executor id, for people.
    pub name: String,
    /// Fabrics.
    pub fabric: FabricChoice,
    /// Address to listen on.
    pub bind: IpAddr,
    /// Address that peers are told; an IP literal.
    pub advertise: IpAddr,
    /// Port to listen on; 0: any.
    pub port: u16,
    /// Hard cap of the arena, bytes.
    pub memory_limit: u64,
    /// Default deadline of a request.
    pub request_timeout: Duration,
}

/// Why an endpoint cannot do what was asked.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The arena.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A fabric could not be opened.
    #[error("{fabric} fabric: {reason}")]
    Fabric {
        fabric: &'static str,
        reason: String,
    },
    /// A card that cannot be read.
    #[error("endpoint card: {0}")]
    Card(WireError),
    /// No such peer handle.
    #[error("no peer {0}")]
    UnknownPeer(u64),
    /// A request that breaks a bound.
    #[error("a request of {got} blocks is not possible, 1 to {max} are")]
    BadRequest { got: usize, max: usize },
    /// As many requests are in flight as may be.
    #[error("{limit} requests are in flight already")]
    Full { limit: usize },
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    Closed,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Blocks that arrived, or an error for all that will not.
pub struct Completion {
    /// Request.
    pub request: u64,
    /// Position of the first block.
    pub first_block: u32,
    /// Number of blocks.
    pub block_count: u32,
    /// Where the bytes came from.
    pub fabric: FabricCode,
    /// Nothing follows for this request.
    pub last: bool,
    /// The bytes, or why not.
    pub outcome: Result<Delivery, FetchFailure>,
}

/// Delivered blocks: the pieces, one after the other, are the blocks' bytes, one after the other.
pub struct Delivery {
    /// Status and length of each block.
    pub blocks: Vec<BlockEntry>,
    /// Where the bytes are.
    pub pieces: Vec<Piece>,
}

/// A run of bytes in a lease.
#[derive(Clone)]
pub struct Piece {
    /// Shared with the deliveries before and after when a lease ends in mid-block.
    pub lease: Arc<Lease>,
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// Why blocks will not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchFailure {
    /// What kind.
    pub code: FetchErrorCode,
    /// For people.
    pub detail: String,
}

/// Where a map output lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFiles {
    /// Concatenated partitions.
    pub data: PathBuf,
    /// `partitions + 1` big-endian 64-bit offsets.
    pub index: PathBuf,
}

/// One per process.
pub struct Endpoint {}

impl Endpoint {
    /// Opens fabrics, starts progress and I/O threads.
    pub fn start(config: Config) -> Result<Arc<Self>, EndpointError> {
        todo!("{config:?}")
    }
    /// The encoded card of this endpoint.
    pub fn card(&self) -> Vec<u8> {
        todo!()
    }
    /// A handle for the endpoint behind `card`; the same endpoint always gets the same handle. Does not connect.
    pub fn add_peer(&self, card: &[u8]) -> Result<u64, EndpointError> {
        todo!("{card:?}")
    }
    /// Starts a fetch; its completions come from `completions`. Never blocks.
    pub fn fetch(
        &self,
        peer: u64,
        blocks: &[BlockId],
        timeout: Duration,
    ) -> Result<u64, EndpointError> {
        todo!("{peer}{blocks:?}{timeout:?}")
    }
    /// Gives a request up; a last completion with `Cancelled` follows unless it had ended.
    pub fn cancel(&self, request: u64) {
        todo!("{request}")
    }
    /// Waits up to `timeout` and appends up to `max` completions.
    pub fn completions(&self, max: usize, timeout: Duration, out: &mut Vec<Completion>) {
        todo!("{max}{timeout:?}{}", out.len())
    }
    /// Waits up to `timeout` for map outputs whose files peers ask for and this endpoint does not know.
    pub fn unresolved(&self, max: usize, timeout: Duration) -> Vec<OutputId> {
        todo!("{max}{timeout:?}")
    }
    /// Answers an `unresolved`; `None`: there is no such output.
    pub fn resolve(&self, output: OutputId, files: Option<OutputFiles>) {
        todo!("{output:?}{files:?}")
    }
    /// Forgets (and closes) all files of a shuffle.
    pub fn forget_shuffle(&self, shuffle: u32) {
        todo!("{shuffle}")
    }
    /// The arena.
    pub fn pool(&self) -> &Arc<faro_pool::Pool> {
        todo!()
    }
    /// Counters by name, e.g. `remoteBlocks.tcp`.
    pub fn counters(&self) -> Vec<(String, u64)> {
        todo!()
    }
    /// Ends all requests with `Closing`, stops all threads, releases waiting callers. Idempotent.
    pub fn close(&self) {
        todo!()
    }
}
