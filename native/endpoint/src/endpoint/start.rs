//! Setup of an endpoint: threads, services, card. Nothing here is on the datapath.

use super::fabrics::{open_fabrics, Fabrics};
use super::{Endpoint, EndpointError};
use crate::collective::{self, CollectiveService, Dispatch};
use crate::command::{CommandHandler, CommandInput, CommandQueue, CommandService};
use crate::config::Config;
use crate::counters::EndpointCounters;
use crate::fetch::{self, FetchService, PlaceInOrder, RequestQueue};
use crate::files::Catalog;
use crate::loans::LentOutputs;
use crate::memory::Memory;
use crate::net::{CardRoutes, CardSecrets, Doorbell, Inbox, Net, PeerTable};
use crate::progress::{Progress, ProgressShared};
use crate::schedule::{host_of, Exchange, ServerQueue};
use crate::serve::{IoPool, ReturnedWork, ServeService};
use crate::services::Services;
use crossbeam_channel::Receiver;
use faro_fabric::{EndpointId, Fabric, FabricKind, OwnIdentity, Waker};
use faro_pool::{Pool, PoolOptions, Purpose, PAGE_BYTES};
use faro_region::{ChunkCache, MAX_SLOTS};
use faro_secure::{Secret, StaticKey};
use faro_sync::lock;
use faro_wire::{Card, CardAddress};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of I/O threads. They wait for disks, not for processors.
const MAX_IO_THREADS: usize = 8;
/// The part of the memory beside the arena that requests may take.
const REQUESTS_SHARE: u64 = 2;

impl Endpoint {
    /// Opens fabrics, starts progress and I/O threads.
    ///
    /// # Errors
    /// A limit too small for the arena, an address that cannot be bound, threads that cannot start.
    pub fn start(config: Config) -> Result<Arc<Self>, EndpointError> {
        let key = StaticKey::random().map_err(EndpointError::NoRandomness)?;
        let secret = Secret::random().map_err(EndpointError::NoRandomness)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let io = |memory: &Arc<Memory>, catalog: &Arc<Catalog>| {
            let threads = cores.clamp(2, MAX_IO_THREADS);
            IoPool::start(threads, Arc::clone(memory), Arc::clone(catalog))
                .map_err(EndpointError::Thread)
        };
        let (endpoint, threads) = Self::assemble(config, key, secret, open_fabrics, io)?;
        for progress in threads {
            let thread = std::thread::Builder::new()
                .name(format!("faro-{}", progress.kind().name()))
                .spawn(move || progress.run())
                .map_err(EndpointError::Thread)?;
            lock(&endpoint.progress).push(thread);
        }
        Ok(endpoint)
    }

    /// An endpoint and its progress threads, which are not started. `open` opens the fabrics, best first; `io` makes
    /// what reads files.
    ///
    /// # Errors
    /// See `start`.
    pub(crate) fn assemble(
        config: Config,
        key: StaticKey,
        secret: Secret,
        open: impl FnOnce(&Config, &OwnIdentity, &Arc<Pool>) -> Result<Fabrics, EndpointError>,
        io: impl FnOnce(&Arc<Memory>, &Arc<Catalog>) -> Result<IoPool, EndpointError>,
    ) -> Result<(Arc<Self>, Vec<Progress>), EndpointError> {
        let pool = match &config.memory_budget {
            Some(budget) => Pool::in_budget(budget, config.idle_release)?,
            None => Pool::with_options(PoolOptions {
                idle_release: config.idle_release,
                ..PoolOptions::new(config.memory_limit)
            })?,
        };
        let memory_limit = pool.share_bytes(Purpose::Serve);
        let id = key.id();
        let shared = config.security.secret.as_ref();
        let identity = OwnIdentity::new(key, &secret, shared, &config.security.application)
            .map_err(EndpointError::NoKey)?;
        let fabrics = open(&config, &identity, &pool)?;
        let card = Card {
            endpoint: id,
            name: config.name.clone(),
            addresses: fabrics
                .iter()
                .map(|fabric| CardAddress {
                    scheme: fabric.kind().name().to_owned(),
                    location: fabric.location(),
                })
                .collect(),
            secret,
        };
        let shm = fabrics
            .iter()
            .find(|fabric| fabric.kind() == FabricKind::Shm)
            .map(|f| f.location());
        let kinds: Vec<FabricKind> = fabrics.iter().map(|fabric| fabric.kind()).collect();
        let threads: Vec<Thread> = fabrics.into_iter().map(Thread::new).collect();
        let counters = Arc::new(EndpointCounters::default());
        let beside = config.beside_bytes.unwrap_or(memory_limit / 2);
        let catalog = Arc::new(Catalog::new(beside));
        let cache = ChunkCache::new(Arc::clone(&pool), slots(memory_limit))?;
        let modes = (config.regions, config.stages_outputs);
        let memory = Memory::new(Arc::clone(&pool), cache, modes, beside / REQUESTS_SHARE);
        let io = io(&memory, &catalog)?;
        let (own_host, idle_timeout) = (host_of(&card), config.request_timeout);
        let connection_idle = config.connection_idle;
        let handler = config.commands;
        let exchange = Arc::new(Exchange::new(id, own_host, config.exchange, idle_timeout));
        let membership = CardSecrets::new(
            config.security.application.clone(),
            config.security.secret.clone(),
        );
        let peers = Arc::new(PeerTable::new(
            CardRoutes::new(kinds, shm, membership),
            Arc::clone(&exchange),
            Arc::clone(&counters),
        ));
        let endpoint = Arc::new(Self {
            card,
            memory,
            catalog,
            loans: LentOutputs::new(),
            queue: Arc::new(RequestQueue::new(
                Arc::clone(&peers),
                threads
                    .iter()
                    .map(|t| (t.kind, t.fetch.0.clone()))
                    .collect(),
                Arc::clone(&exchange),
                Arc::clone(&counters),
            )),
            collective: Arc::new(Dispatch::new(
                Arc::clone(&peers),
                threads
                    .iter()
                    .map(|t| (t.kind, t.collective.0.clone()))
                    .collect(),
            )),
            commands: Arc::new(CommandQueue::new(
                Arc::clone(&peers),
                threads
                    .iter()
                    .map(|t| (t.kind, t.command.0.clone()))
                    .collect(),
            )),
            peers,
            exchange,
            counters,
            io: Arc::new(io),
            doorbells: threads.iter().map(|t| Arc::clone(&t.doorbell)).collect(),
            progress: Mutex::default(),
        });
        for doorbell in &endpoint.doorbells {
            let doorbell = Arc::clone(doorbell);
            pool.on_release(Box::new(move || doorbell.memory_returned()));
        }
        let wakers = threads.iter().map(|thread| {
            let doorbell = Arc::clone(&thread.doorbell);
            Arc::new(move || doorbell.ring()) as Waker
        });
        let places = PlaceInOrder::of_each(wakers);
        let progress = |(thread, place)| {
            let handler = handler.clone();
            endpoint.progress_of(
                id,
                thread,
                (place, handler),
                (idle_timeout, connection_idle),
            )
        };
        let threads = threads.into_iter().zip(places).map(progress).collect();
        Ok((endpoint, threads))
    }

    fn progress_of(
        &self,
        id: EndpointId,
        thread: Thread,
        (place, handler): (PlaceInOrder, Option<Arc<dyn CommandHandler>>),
        (request_timeout, connection_idle): (Duration, Duration),
    ) -> Progress {
        let (memory, counters) = (&self.memory, &self.counters);
        let fetch = FetchService::new(
            Arc::clone(&self.queue),
            thread.fetch.1,
            Arc::clone(memory),
            place,
            Arc::clone(counters),
        );
        let serve = ServeService::new(
            Arc::clone(&self.io),
            thread.serve,
            Arc::clone(counters),
            Arc::clone(memory),
            ServerQueue::new(Arc::clone(&self.exchange)),
            request_timeout,
        );
        let collective = CollectiveService::new(
            Arc::clone(&self.collective),
            thread.collective.1,
            Arc::clone(counters),
        );
        let command = CommandService::new(
            Arc::clone(&self.commands),
            thread.command,
            handler,
            Arc::clone(counters),
        );
        let services = Services {
            fetch,
            serve,
            collective,
            command,
        };
        let shared = ProgressShared {
            queue: Arc::clone(&self.queue),
            peers: Arc::clone(&self.peers),
            memory: Arc::clone(memory),
            catalog: Arc::clone(&self.catalog),
            question_timeout: request_timeout,
        };
        let (peers, counters) = (Arc::clone(&self.peers), Arc::clone(counters));
        let net = Net::new(id, thread.fabric, peers, counters, connection_idle);
        Progress::new(net, thread.doorbell, services, shared)
    }
}

/// A progress thread that has not been started: its fabric and the queues to its services.
struct Thread {
    kind: FabricKind,
    fabric: Box<dyn Fabric>,
    doorbell: Arc<Doorbell>,
    fetch: (Inbox<fetch::FetchCommand>, Receiver<fetch::FetchCommand>),
    serve: (Inbox<ReturnedWork>, Receiver<ReturnedWork>),
    collective: (
        Inbox<collective::CollectiveCommand>,
        Receiver<collective::CollectiveCommand>,
    ),
    command: (Inbox<CommandInput>, Receiver<CommandInput>),
}

impl Thread {
    fn new(fabric: Box<dyn Fabric>) -> Self {
        let doorbell = Doorbell::new(fabric.waker());
        Self {
            kind: fabric.kind(),
            fetch: Inbox::new(&doorbell),
            serve: Inbox::new(&doorbell),
            collective: Inbox::new(&doorbell),
            command: Inbox::new(&doorbell),
            fabric,
            doorbell,
        }
    }
}

/// Chunks that may be cached: half of the arena's pages at most.
fn slots(memory_limit: u64) -> usize {
    let pages = memory_limit / PAGE_BYTES as u64;
    (pages / 2).clamp(1, MAX_SLOTS as u64) as usize
}
