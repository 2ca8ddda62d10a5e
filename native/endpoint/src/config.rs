//! Configuration of an endpoint.

use crate::command::CommandHandler;
use crate::memory::RegionMode;
use crate::schedule::ExchangeConfig;
use faro_fabric::tcp::SharedPort;
use faro_fabric::verbs::VerbsOptions;
use faro_fabric::FabricKind;
use faro_pool::Budget;
use faro_secure::{Protection, SharedSecret};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Fabrics that an endpoint opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FabricChoice {
    /// All that work here; the best one is taken for each pair of endpoints.
    Auto,
    /// TCP only.
    Tcp,
    /// Shared memory only (same host).
    Shm,
    /// RDMA only.
    Verbs,
}

impl FabricChoice {
    /// All values, by the names that settings have.
    pub const ALL: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("verbs", Self::Verbs),
        ("tcp", Self::Tcp),
        ("shm", Self::Shm),
    ];

    /// Returns whether an endpoint opens this fabric, if it works on the host.
    pub(crate) fn opens(self, kind: FabricKind) -> bool {
        match self {
            Self::Auto => true,
            Self::Tcp => kind == FabricKind::Tcp,
            Self::Shm => kind == FabricKind::Shm,
            Self::Verbs => kind == FabricKind::Verbs,
        }
    }
}

/// Proof of membership in an application, and protection of the bytes between its members.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// True if bytes are sealed. A peer with another setting is refused.
    pub protection: Protection,
    /// The application's id; endpoints of another one are refused.
    pub application: String,
    /// The secret of Spark's authentication; without it, a peer's card is what proves the membership.
    pub secret: Option<SharedSecret>,
}

/// Configuration of an endpoint.
#[derive(Debug, Clone)]
pub struct Config {
    /// Executor id, for log lines.
    pub name: String,
    /// Fabrics to open.
    pub fabric: FabricChoice,
    /// Address to listen on.
    pub bind: IpAddr,
    /// Address in the card, which peers connect to.
    pub advertise: IpAddr,
    /// The port to listen on; 0 takes any. RDMA's control channel takes the first free port after
    /// it.
    pub port: u16,
    /// A port that this endpoint shares with others of this process, in place of `bind`, `advertise`
    /// and `port`: TCP's connections and RDMA's control connections come by it.
    pub shared_port: Option<SharedPort>,
    /// The user's overrides of RDMA's device, port and retries.
    pub verbs: VerbsOptions,
    /// Hard cap of the arena, bytes.
    pub memory_limit: u64,
    /// Memory that the arena shares with those of other endpoints of this process, in place of a cap of its own.
    pub memory_budget: Option<Arc<Budget>>,
    /// Bound of the memory beside the arena: half of it for requests that are being served, a quarter for paths of map
    /// outputs and a quarter for their offsets. `None`: half of the arena's cap.
    pub beside_bytes: Option<u64>,
    /// Time for which a slab of the arena goes unused before it is de-registered and its memory
    /// returned to the system; zero: never.
    pub idle_release: Duration,
    /// Map outputs are brought into the chunk cache when they are written, while there is room, and not only when they are
    /// asked for often.
    pub stages_outputs: bool,
    /// Way in which the bytes of map outputs reach a peer's memory.
    pub regions: RegionMode,
    /// Time for which a connection goes unused before it is closed; zero: as long as there is room for more.
    pub connection_idle: Duration,
    /// Time for which a request may go without progress.
    pub request_timeout: Duration,
    /// Order in which peers are read from and served.
    pub exchange: ExchangeConfig,
    /// Proves the members of the application to each other; protects the bytes between them.
    pub security: Security,
    /// Takes the commands of peers. `None`: they are answered with `Unsupported`.
    pub commands: Option<Arc<dyn CommandHandler>>,
}

/// The defaults of the keys in Spark's configuration, except for the name, the addresses and the memory
/// limit, which Spark's executors always give.
impl Default for Config {
    fn default() -> Self {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Self {
            name: "faro".to_owned(),
            fabric: FabricChoice::Auto,
            bind: local,
            advertise: local,
            port: 0,
            shared_port: None,
            verbs: VerbsOptions::default(),
            memory_limit: 256 << 20,
            memory_budget: None,
            beside_bytes: None,
            idle_release: Duration::from_secs(60),
            stages_outputs: false,
            regions: RegionMode::default(),
            connection_idle: Duration::from_secs(60),
            request_timeout: Duration::from_secs(30),
            exchange: ExchangeConfig::default(),
            security: Security::default(),
            commands: None,
        }
    }
}
