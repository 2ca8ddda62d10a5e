//! Setup of an endpoint: fabrics, threads, card. Nothing here is on the datapath.

use crate::config::{fabric_name, Config, EndpointError, FabricChoice};
use crate::counters::Counters;
use crate::exchange::{host_of, Exchange};
use crate::files::Catalog;
use crate::memory::Memory;
use crate::owner::IoPool;
use crate::progress::{Command, Inbox, Parts, Progress};
use crate::router::Router;
use crate::Endpoint;
use faro_fabric::diagnose::{Host, SettingNames};
use faro_fabric::shm::{ShmConfig, ShmFabric};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::verbs::{VerbsConfig, VerbsFabric};
use faro_fabric::{EndpointId, Fabric, FabricError, FabricKind};
use faro_pool::{Pool, PoolOptions, PAGE_BYTES};
use faro_region::{ChunkCache, MAX_SLOTS};
use faro_wire::{Card, CardAddress};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Most I/O threads: they wait for disks, not for processors.
const MAX_IO_THREADS: usize = 8;
/// Ports after the one that was asked for that RDMA's pairing tries.
const PAIRING_PORTS: u16 = 32;

impl Endpoint {
    /// Opens fabrics, starts progress and I/O threads.
    ///
    /// # Errors
    /// A limit too small for the arena, an address that cannot be bound, threads that cannot start.
    pub fn start(config: Config) -> Result<Arc<Self>, EndpointError> {
        let pool = Pool::with_options(PoolOptions {
            idle_release: config.idle_release,
            ..PoolOptions::new(config.memory_limit)
        })?;
        let id = random_id()?;
        let fabrics = open_fabrics(&config, id, &pool)?;
        let card = Card {
            endpoint: id,
            name: config.name.clone(),
            addresses: fabrics
                .iter()
                .map(|fabric| CardAddress {
                    scheme: fabric_name(fabric.kind()).to_owned(),
                    location: fabric.location(),
                })
                .collect(),
        };
        let shm = fabrics
            .iter()
            .find(|fabric| fabric.kind() == FabricKind::Shm)
            .map(|f| f.location());
        let (counters, catalog) = (Arc::new(Counters::default()), Arc::new(Catalog::new()));
        let (inboxes, receivers): (Vec<_>, Vec<_>) = fabrics
            .iter()
            .map(|fabric| {
                let (inbox, receiver) = Inbox::new(fabric.waker());
                ((fabric.kind(), inbox), receiver)
            })
            .unzip();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let io_threads = cores.clamp(2, MAX_IO_THREADS);
        let cache = ChunkCache::new(Arc::clone(&pool), slots(config.memory_limit))?;
        let memory = Memory::new(Arc::clone(&pool), cache, config.regions, config.staging);
        let io = IoPool::start(io_threads, Arc::clone(&memory), Arc::clone(&catalog))
            .map_err(EndpointError::Thread)?;
        let (own_host, patience) = (host_of(&card), config.request_timeout);
        let exchange = Arc::new(Exchange::new(id, own_host, config.exchange, patience));
        let router = Arc::new(Router::new(inboxes, shm, Arc::clone(&counters), exchange));
        let endpoint = Arc::new(Self {
            card,
            memory: Arc::clone(&memory),
            catalog: Arc::clone(&catalog),
            counters,
            router: Arc::clone(&router),
            io: Arc::new(io),
            progress: Mutex::default(),
        });
        for (_, inbox) in router.inboxes() {
            let inbox = Arc::clone(inbox);
            pool.on_release(Box::new(move || inbox.send(Command::Memory)));
        }
        let parts = Parts {
            endpoint: id,
            router: Arc::clone(&router),
            memory,
            catalog,
            io: Arc::clone(&endpoint.io),
            question_age: config.request_timeout,
        };
        for ((fabric, receiver), (_, inbox)) in
            fabrics.into_iter().zip(receivers).zip(router.inboxes())
        {
            let name = format!("faro-{}", fabric_name(fabric.kind()));
            let progress = Progress::new(fabric, Arc::clone(inbox), receiver, parts.clone());
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || progress.run())
                .map_err(EndpointError::Thread)?;
            endpoint
                .progress
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .push(thread);
        }
        Ok(endpoint)
    }
}

/// Chunks that may be resident: half of the arena's frames at most.
fn slots(memory_limit: u64) -> usize {
    let frames = memory_limit / PAGE_BYTES as u64;
    (frames / 2).clamp(1, MAX_SLOTS as u64) as usize
}

/// Best first. With `Auto`, what does not work here is left out; TCP always has to.
fn open_fabrics(
    config: &Config,
    id: EndpointId,
    pool: &Arc<Pool>,
) -> Result<Vec<Box<dyn Fabric>>, EndpointError> {
    let mut fabrics: Vec<Box<dyn Fabric>> = Vec::new();
    let wanted = |kind| matches!(config.fabric, FabricChoice::Auto) || config.fabric == kind;
    if wanted(FabricChoice::Shm) {
        match ShmFabric::new(ShmConfig {
            endpoint: id,
            pool: Arc::clone(pool),
        }) {
            Ok(fabric) => fabrics.push(Box::new(fabric)),
            Err(error) if config.fabric == FabricChoice::Auto => {
                log::info!("shm fabric is not available: {error}");
            }
            Err(error) => return Err(fault("shm", &error)),
        }
    }
    if wanted(FabricChoice::Verbs) {
        match open_verbs(config, id, pool) {
            Ok(fabric) => fabrics.push(Box::new(fabric)),
            Err(error) if config.fabric == FabricChoice::Auto => match &error {
                FabricError::Unavailable { absent: true, .. } => log::info!("{error}; TCP is used"),
                // There is a device, and somebody will wonder why it is idle.
                _ => {
                    let error = error.to_string();
                    let also = host(config).also(&error);
                    log::warn!("{error}{also}; TCP is used until then, `faro doctor` tells more");
                }
            },
            Err(error) => return Err(fault("verbs", &error)),
        }
    }
    if wanted(FabricChoice::Tcp) {
        let tcp = TcpConfig {
            bind: SocketAddr::new(config.bind, config.port),
            advertise: config.advertise.to_string(),
            endpoint: id,
            pool: Arc::clone(pool),
        };
        fabrics.push(Box::new(
            TcpFabric::new(tcp).map_err(|error| fault("tcp", &error))?,
        ));
    }
    #[cfg(feature = "faults")]
    let fabrics = fabrics
        .into_iter()
        .map(|fabric| crate::faults::wrap(fabric, pool))
        .collect();
    Ok(fabrics)
}

/// This host as the checks of `faro doctor` look at it.
fn host(config: &Config) -> Host<'_> {
    Host {
        root: Path::new("/"),
        wishes: &config.verbs,
        near: config.advertise,
        memory_limit: config.memory_limit,
        // For commands, which the log does not print.
        names: SettingNames::default(),
    }
}

/// TCP has the port that was asked for, so that pairing takes the next that is free.
fn open_verbs(
    config: &Config,
    id: EndpointId,
    pool: &Arc<Pool>,
) -> Result<VerbsFabric, FabricError> {
    let open = |port| {
        VerbsFabric::new(VerbsConfig {
            bind: SocketAddr::new(config.bind, port),
            advertise: config.advertise.to_string(),
            endpoint: id,
            pool: Arc::clone(pool),
            wishes: config.verbs.clone(),
        })
    };
    if config.port == 0 {
        return open(0);
    }
    let last = config.port.saturating_add(PAIRING_PORTS);
    let mut port = config.port.saturating_add(1);
    loop {
        match open(port) {
            Err(FabricError::Io { source, .. })
                if source.kind() == ErrorKind::AddrInUse && port < last =>
            {
                port += 1;
            }
            result => return result,
        }
    }
}

fn fault(fabric: &'static str, error: &faro_fabric::FabricError) -> EndpointError {
    EndpointError::Fabric {
        fabric,
        reason: error.to_string(),
    }
}

fn random_id() -> Result<EndpointId, EndpointError> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| EndpointError::Thread(error.into()))?;
    Ok(EndpointId::from_le_bytes(bytes))
}
