//! What an endpoint is started with, and why it may refuse.

use faro_pool::PoolError;
use faro_wire::codes::FabricCode;
use faro_wire::WireError;
use std::net::IpAddr;
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
    /// RDMA only.
    Verbs,
}

/// When bytes of map outputs are brought into frames of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Staging {
    /// What is asked for often.
    #[default]
    OnDemand,
    /// Also what was just written, while there is room.
    OnCommit,
    /// Also what a peer waits for whose turn has not come: the exchange makes the future known.
    Planned,
}

impl Staging {
    /// By name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("onDemand", Self::OnDemand),
        ("onCommit", Self::OnCommit),
        ("planned", Self::Planned),
    ];
}

/// How map outputs are made readable for devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegionMode {
    /// Not at all: their bytes pass through frames of the arena.
    #[default]
    Unpinned,
    /// Each is mapped and registered as a whole, on demand: the device faults pages in.
    Odp,
    /// Each is mapped and registered as a whole, which pins all of it.
    Pinned,
}

impl RegionMode {
    /// By name.
    pub const ALL: [(&'static str, Self); 3] = [
        ("unpinned", Self::Unpinned),
        ("odp", Self::Odp),
        ("pinned", Self::Pinned),
    ];
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
    /// Address that peers are told.
    pub advertise: IpAddr,
    /// Port to listen on; 0: any. RDMA pairs on the first free port after it.
    pub port: u16,
    /// RDMA's device, port and retries, where the choice is not to be Faro's.
    pub verbs: faro_fabric::verbs::VerbsOptions,
    /// Hard cap of the arena, bytes.
    pub memory_limit: u64,
    /// How long a slab of the arena goes unused before it is de-registered and its memory given
    /// back; zero: never.
    pub idle_release: Duration,
    /// What is brought into frames, and when.
    pub staging: Staging,
    /// How map outputs are made readable for devices.
    pub regions: RegionMode,
    /// How long a request may go without progress.
    pub request_timeout: Duration,
    /// Whom to read from and to serve first.
    pub exchange: crate::ExchangeConfig,
}

/// Why an endpoint cannot do what was asked.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The arena.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The residency.
    #[error(transparent)]
    Region(#[from] faro_region::RegionError),
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
    /// A team of a collective, or its round.
    #[error(transparent)]
    Collective(crate::collective::CollectiveError),
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    Closed,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Bounds and sizes that are not worth a key. Each says what it bounds.
pub mod limits {
    use std::time::Duration;

    /// Requests of this process in flight, over all peers.
    pub const MAX_REQUESTS: usize = 65_536;
    /// Requests an owner holds per fabric; more are answered `Busy`.
    pub const MAX_SERVING: usize = 4_096;
    /// Credits an owner keeps for one request.
    pub const MAX_CREDITS_HELD: usize = 8_192;
    /// Bytes of credit a reader has outstanding for one request: enough to cover the
    /// bandwidth-delay product of 100 Gb/s at 500 us, little enough that requests share an arena.
    pub const CREDIT_WINDOW_BYTES: u64 = 8 << 20;
    /// Credits filled in one turn of an I/O thread (1 MiB of frames: fits a core's cache).
    pub const TURN_CREDITS: usize = 4;
    /// Writes of one request on their way, before its next turn waits.
    pub const STAGED_WINDOW: usize = 8;
    /// Blocks and bytes of a request that a progress thread serves by itself if they are in memory:
    /// less work than to hand it to an I/O thread and back.
    pub const AT_ONCE_BLOCKS: usize = 32;
    /// See `AT_ONCE_BLOCKS`.
    pub const AT_ONCE_BYTES: u64 = 64 << 10;
    /// Replies from this size on may be left to the reader to pull, if frames have all of it, in
    /// pieces of `PULL_MEAN_BYTES` on average. A pull takes one round trip more than a push.
    pub const PULL_BYTES: u64 = 64 << 10;
    /// See `PULL_BYTES`.
    pub const PULL_MEAN_BYTES: u64 = 16 << 10;
    /// Blocks of a request that waits for its turn that are brought into frames.
    pub const PREPARED_BLOCKS: usize = 256;
    /// Bytes that a reader pulls at a time; their versions are read with one read.
    pub const PULL_WINDOW_BYTES: u64 = 4 << 20;
    /// Frames that a peer is shown at most.
    pub const MAX_SHOWN: usize = 4_096;
    /// Replies up to this many bytes move to a small lease, so that they do not hold a frame.
    pub const COMPACT_BYTES: usize = 16 << 10;
    /// How often deadlines are looked at.
    pub const TICK: Duration = Duration::from_millis(50);
    /// Longest sleep of an idle progress thread.
    pub const IDLE: Duration = Duration::from_secs(1);
    /// How long one fabric may take to connect.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
    /// How long a request without any credit may wait for the arena.
    pub const MEMORY_WAIT: Duration = Duration::from_secs(5);
    /// Rest of a route after its first failure; doubles up to `BACKOFF_MAX`.
    pub const BACKOFF_MIN: Duration = Duration::from_secs(2);
    /// See `BACKOFF_MIN`.
    pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
    /// Map outputs whose paths Java was asked for and has not told.
    pub const MAX_UNRESOLVED: usize = 65_536;
    /// Open data files.
    pub const MAX_OPEN_OUTPUTS: usize = 1_024;
    /// Bytes of offset tables kept in memory.
    pub const MAX_OFFSET_BYTES: usize = 64 << 20;
}

/// The fabric's code in records and counters.
#[must_use]
pub fn fabric_code(kind: faro_fabric::FabricKind) -> FabricCode {
    match kind {
        faro_fabric::FabricKind::Tcp => FabricCode::Tcp,
        faro_fabric::FabricKind::Shm => FabricCode::Shm,
        faro_fabric::FabricKind::Verbs => FabricCode::Verbs,
    }
}

/// The fabric's name in cards, counters and logs.
#[must_use]
pub fn fabric_name(kind: faro_fabric::FabricKind) -> &'static str {
    match kind {
        faro_fabric::FabricKind::Tcp => "tcp",
        faro_fabric::FabricKind::Shm => "shm",
        faro_fabric::FabricKind::Verbs => "verbs",
    }
}
