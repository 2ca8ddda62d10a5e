//! One application of this host: its outputs, and the endpoint that serves them to its members.

use crate::control_inbox::{ControlInbox, MemberCommands};
use crate::disk::Disk;
use crate::handed_over::HandedOverFiles;
use crate::lend::Loans;
use crate::lending::LoanLimits;
use crate::message::{Hello, Key};
use crate::options::Options;
use crate::port::Port;
use crate::replica::{Copier, CopyCounts, ListServer, Pages, Replicas, Throttle};
use crate::serving::{answer, open, resolver};
use crate::store::{KeepError, KeptNow, Store, StoredTotals};
use faro_endpoint::{Budget, Endpoint, EndpointError};
use faro_sync::lock;
use faro_wire::OutputId;
use ring::digest;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// The endpoint's counters of memory beside its arena.
const TABLES: [&str; 3] = [
    "memory.requestBytes",
    "memory.pathBytes",
    "memory.offsetBytes",
];

/// An application that is served.
pub(crate) struct Application {
    pub(crate) key: Key,
    /// Spark's id.
    pub(crate) name: String,
    /// The user of its executors.
    pub(crate) owner: u32,
    sealed: bool,
    secret: SecretHash,
    store: Arc<Store>,
    card: Vec<u8>,
    /// `None`: it was closed. Its memory is another application's then, whoever still has this value.
    endpoint: Mutex<Option<Arc<Endpoint>>>,
    replicas: Arc<Replicas>,
    pages: Arc<Pages>,
    pub(crate) inbox: Arc<ControlInbox>,
    copying: CopyContext,
    threads: Mutex<Vec<JoinHandle<()>>>,
    connections: AtomicUsize,
    activity: Mutex<Activity>,
    /// When it came.
    pub(crate) since: Instant,
    /// For what its disk may keep waiting.
    disk: Arc<Disk>,
    /// It has handed nothing over and made room for another one: its executors connect again when they need it.
    has_made_room: AtomicBool,
}

/// What all applications' copies have in common.
#[derive(Clone)]
pub(crate) struct CopyContext {
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) counts: Arc<CopyCounts>,
}

/// The last activity of an application.
struct Activity {
    at: Instant,
    /// Blocks that its endpoint had served then. Not requests: services ask each other for more all the time.
    served: u64,
}

/// Says whether two executors have the same secret, and nothing else of it.
#[derive(PartialEq, Eq)]
struct SecretHash([u8; 32]);

impl SecretHash {
    fn of(secret: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, secret);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(hash.as_ref());
        Self(bytes)
    }
}

impl Application {
    /// Opens the endpoint, behind the port of all applications, and starts to answer.
    ///
    /// # Errors
    /// The endpoint's.
    pub(crate) fn start(
        key: Key,
        hello: &Hello,
        owner: u32,
        (store, disk): (Arc<Store>, Arc<Disk>),
        shared: (&Options, &Arc<Budget>, &Port),
        copying: CopyContext,
        now: Instant,
    ) -> Result<Arc<Self>, EndpointError> {
        let inbox: Arc<ControlInbox> = Arc::default();
        let pages = Arc::new(Pages::new(Arc::clone(&store)));
        let commands = MemberCommands {
            inbox: Arc::clone(&inbox),
            lists: Arc::new(ListServer {
                store: Arc::clone(&store),
                pages: Arc::clone(&pages),
                disk: Arc::clone(&disk),
            }),
        };
        let endpoint = open(hello, shared, Arc::new(commands))?;
        let resolver = resolver(Arc::clone(&endpoint), Arc::clone(&store));
        let resolver = resolver.inspect_err(|_| endpoint.close())?;
        Ok(Arc::new(Self {
            key,
            name: hello.application.clone(),
            owner,
            sealed: hello.sealed,
            secret: SecretHash::of(&hello.secret),
            store,
            card: endpoint.card(),
            endpoint: Mutex::new(Some(endpoint)),
            replicas: Arc::default(),
            pages,
            inbox,
            copying,
            threads: Mutex::new(vec![resolver]),
            connections: AtomicUsize::new(0),
            activity: Mutex::new(Activity { at: now, served: 0 }),
            since: now,
            disk,
            has_made_room: AtomicBool::new(false),
        }))
    }

    /// Whether an executor that has the application's token says the rest of it as the first one did.
    pub(crate) fn agrees(&self, hello: &Hello, owner: u32) -> bool {
        self.name == hello.application
            && self.owner == owner
            && self.sealed == hello.sealed
            && self.secret == SecretHash::of(&hello.secret)
    }

    pub(crate) fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// Whether nothing is kept for it, nor just being handed over.
    pub(crate) fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    pub(crate) fn has_made_room(&self) -> bool {
        self.has_made_room.load(Ordering::Acquire)
    }

    /// Makes room for another one, if it has nothing: from then on nothing is kept for it, and its executors' connections
    /// end. Returns whether it does.
    pub(crate) fn makes_room(&self) -> bool {
        let makes = self.store.end_if_empty();
        if makes {
            self.has_made_room.store(true, Ordering::Release);
        }
        makes
    }

    pub(crate) fn card(&self) -> Vec<u8> {
        self.card.clone()
    }

    /// `None`: it was closed.
    fn endpoint(&self) -> Option<Arc<Endpoint>> {
        lock(&self.endpoint).clone()
    }

    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Executors that are connected now.
    pub(crate) fn executors(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The last call of a connection.
    pub(crate) fn disconnected(&self) {
        lock(&self.activity).at = Instant::now();
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// # Errors
    /// See `Store::keep`.
    pub(crate) fn keep(&self, id: OutputId, handed: HandedOverFiles) -> Result<KeptNow, KeepError> {
        let kept = self.store.keep(id, handed)?;
        // The endpoint may know the older files.
        if let Some(endpoint) = self.endpoint().filter(|_| kept.replaced) {
            answer(&endpoint, &self.store, id);
        }
        self.replicas.kept(id);
        Ok(kept)
    }

    /// Another service of the application, or this one, has that card. The first of these messages that wants copies
    /// starts to make them.
    ///
    /// # Errors
    /// The message says what cannot be, or there is no thread.
    pub(crate) fn host(&self, place: (u8, u32, u32), card: Vec<u8>) -> Result<(), String> {
        if !self.replicas.set_host(place, card, &self.store)? {
            return Ok(());
        }
        let endpoint = self.endpoint();
        let endpoint = endpoint.ok_or_else(|| KeepError::Ended.to_string())?;
        let copier = Copier {
            application: self.name.clone(),
            endpoint,
            store: Arc::clone(&self.store),
            replicas: Arc::clone(&self.replicas),
            pages: Arc::clone(&self.pages),
            throttle: Arc::clone(&self.copying.throttle),
            counts: Arc::clone(&self.copying.counts),
            has_said: AtomicBool::new(false),
        };
        let thread = std::thread::Builder::new()
            .name("faro-copier".to_owned())
            .spawn(move || copier.run());
        lock(&self.threads).push(thread.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Copies of its outputs that other services do not have yet.
    pub(crate) fn replicas_behind(&self) -> u64 {
        self.replicas.behind(&self.store)
    }

    /// What there is of these outputs for a reader of this host.
    pub(crate) fn lend(
        &self,
        lending: &Arc<LoanLimits>,
        shuffle: u32,
        maps: &[i64],
        files: bool,
    ) -> Loans {
        Loans::of(&self.store, (lending, self.key), shuffle, maps, files)
    }

    /// Removes a shuffle's outputs.
    pub(crate) fn forget(&self, shuffle: u32) -> StoredTotals {
        let close = || {
            if let Some(endpoint) = self.endpoint() {
                endpoint.forget_shuffle(shuffle);
            }
        };
        close();
        let gone = self.store.forget(shuffle);
        // A question between the two has opened files that are deleted now, and would keep their disk space.
        close();
        self.replicas.removed(shuffle);
        gone
    }

    pub(crate) fn holding(&self) -> StoredTotals {
        self.store.holding()
    }

    /// The endpoint's. The lock is held meanwhile, so that nobody has the endpoint when it is closed.
    fn counters(&self) -> Vec<(String, u64)> {
        let endpoint = lock(&self.endpoint);
        endpoint.as_ref().map_or_else(Vec::new, |of| of.counters())
    }

    /// Blocks and bytes that readers got.
    pub(crate) fn served(&self) -> [u64; 2] {
        let counters = self.counters();
        ["servedBlocks.", "servedBytes."].map(|prefix| {
            let of = counters.iter().filter(|(name, _)| name.starts_with(prefix));
            of.map(|(_, value)| value).sum()
        })
    }

    /// Bytes of the tables of its outputs, and of readers' requests.
    pub(crate) fn table_bytes(&self) -> u64 {
        let counters = self.counters();
        let of = counters
            .iter()
            .filter(|(name, _)| TABLES.contains(&name.as_str()));
        of.map(|(_, value)| value).sum()
    }

    /// Since when there was neither an executor nor a reader; `None`: one is there.
    pub(crate) fn idle_since(&self, now: Instant) -> Option<Instant> {
        let [served, _] = self.served();
        let mut activity = lock(&self.activity);
        if self.connections.load(Ordering::Relaxed) > 0 || served != activity.served {
            *activity = Activity { at: now, served };
            return None;
        }
        Some(activity.at)
    }

    /// Leaves its part of the memory to another application, as far as that is possible before its endpoint has ended: a disk
    /// that hangs may keep it from its end.
    pub(crate) fn retires(&self) {
        if let Some(endpoint) = self.endpoint() {
            endpoint.pool().retire();
        }
    }

    /// Ends the endpoint, and gives its memory back. Idempotent.
    pub(crate) fn close(&self) {
        let endpoint = lock(&self.endpoint).take();
        if let Some(endpoint) = &endpoint {
            endpoint.close();
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread of {} panicked", self.name);
            }
        }
    }

    /// What a disk that hangs keeps from its end: an output that is being kept, and memory that is being read into.
    #[cfg(test)]
    pub(crate) fn hangs(&self) -> (crate::store::BeingKept, faro_pool::Lease) {
        let endpoint = self.endpoint().expect("it is served");
        let lease = endpoint
            .pool()
            .try_lease(1 << 10, faro_pool::Purpose::Serve);
        let being_kept = crate::store::BeingKept::new(&self.store);
        (being_kept, lease.expect("its own part is free"))
    }

    /// Ends the endpoint and removes all outputs; what that was.
    pub(crate) fn end(&self) -> StoredTotals {
        self.close();
        self.store.end()
    }
}
