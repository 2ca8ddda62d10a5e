//! All applications of this host: who may register, how many there are, and when their outputs go.

use crate::application::{Application, Copying};
use crate::connections::share_of_user;
use crate::directories::{descriptors, directory, locked, remove_directory};
use crate::error::ServiceError;
use crate::message::{Hello, Key, Refusal};
use crate::options::{Options, Users};
use crate::port::Port;
use crate::record::{Boot, Record};
use crate::replica::Throttle;
use crate::status::{Figures, Status};
use crate::store::{Held, Holding, KeptAs, OutputRecords, Store};
use faro_endpoint::Budget;
use faro_sync::lock;
use rustix::process::geteuid;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const APPLICATIONS: &str = "applications";
/// The part of the descriptors that this process may have for files of map outputs that cannot be linked.
const HELD_SHARE: u64 = 4;
/// The part for files that are on their way to readers.
const LENDING_SHARE: u64 = 8;

/// Why an executor is refused.
pub(crate) type Refused = (Refusal, String);

/// What an application is to the service.
enum Known {
    /// A service before this one has left its outputs; none of its executors has come yet.
    Left {
        record: Record,
        store: Arc<Store>,
        since: Instant,
    },
    Serving(Arc<Application>),
}

impl Known {
    fn owner(&self) -> u32 {
        match self {
            Self::Left { record, .. } => record.owner,
            Self::Serving(application) => application.owner,
        }
    }
}

/// What was counted since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) links: AtomicU64,
    pub(crate) descriptors: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) lent: AtomicU64,
    removed_outputs: AtomicU64,
    /// Of applications that have ended: blocks and bytes.
    served: [AtomicU64; 2],
}

/// The service of this host.
pub struct Service {
    options: Options,
    boot: Boot,
    held: Arc<Held>,
    records: Arc<OutputRecords>,
    pub(crate) lending: Arc<Held>,
    /// Of all applications' arenas.
    memory: Arc<Budget>,
    copying: Copying,
    /// Of all applications' endpoints.
    port: Port,
    applications: Mutex<HashMap<Key, Known>>,
    pub(crate) counters: Counters,
    /// Locked as long as this lives.
    _locks: [File; 2],
}

impl Service {
    /// Opens the directories and finds what was left in them.
    ///
    /// # Errors
    /// `Path`, `Foreign`, `InUse`, `Boot`, `Memory`, `Port`.
    pub fn open(options: Options) -> Result<Arc<Self>, ServiceError> {
        let open_to_all = options.users != Users::Own;
        directory(
            &options.socket_directory,
            if open_to_all { 0o755 } else { 0o700 },
        )?;
        directory(&options.data_directory, 0o700)?;
        let locks = [
            locked(&options.socket_directory)?,
            locked(&options.data_directory)?,
        ];
        let boot = Boot::current().map_err(ServiceError::Boot)?;
        let descriptors = descriptors();
        let held = Held::new((descriptors / HELD_SHARE) as usize);
        let lending = Held::new((descriptors / LENDING_SHARE) as usize);
        let port = Port::open(&options)?;
        let service = Self {
            boot,
            held,
            records: OutputRecords::new(options.outputs()),
            lending,
            memory: memory_of(&options)?,
            copying: Copying {
                throttle: Arc::new(Throttle::new(options.replica_bandwidth)),
                counts: Arc::default(),
            },
            port,
            applications: Mutex::default(),
            counters: Counters::default(),
            _locks: locks,
            options,
        };
        service.recover()?;
        Ok(Arc::new(service))
    }

    /// What readers connect to over TCP and RDMA, of all applications.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.shared().address()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Finds the applications of a service before this one.
    fn recover(&self) -> Result<(), ServiceError> {
        let place = self.options.data_directory.join(APPLICATIONS);
        directory(&place, 0o700)?;
        let of = |source| ServiceError::Path {
            path: place.clone(),
            source,
        };
        let mut all = Holding::default();
        for entry in fs::read_dir(&place).map_err(of)? {
            let entry = entry.map_err(of)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(key) = Key::of_name(&name) else {
                log::warn!(
                    "{name} in {} is not the service's and stays",
                    place.display()
                );
                continue;
            };
            match self.recover_one(&entry.path()) {
                Ok((record, store)) => {
                    let found = store.holding();
                    all.outputs += found.outputs;
                    all.bytes += found.bytes;
                    let since = Instant::now();
                    let left = Known::Left {
                        record,
                        store,
                        since,
                    };
                    lock(&self.applications).insert(key, left);
                }
                Err(why) => {
                    log::warn!("what {name} has left is removed: {why}");
                    remove_directory(&entry.path());
                }
            }
        }
        let applications = lock(&self.applications).len();
        if applications > 0 {
            log::info!(
                "found {} map outputs, {} bytes, of {applications} applications; each is served again when one of its \
                 executors has come",
                all.outputs,
                all.bytes
            );
        }
        Ok(())
    }

    fn recover_one(&self, path: &Path) -> Result<(Record, Arc<Store>), String> {
        let record = Record::read(path).map_err(|error| error.to_string())?;
        let record = record.ok_or("its record is damaged")?;
        if record.boot != self.boot {
            return Err("it is of an earlier boot of this machine".to_owned());
        }
        let store = Store::open(path, self.options.quota, self.bounds());
        let store = store.map_err(|error| error.to_string())?;
        let removed = store.recover(record.owner).map_err(|e| e.to_string())?;
        if removed > 0 {
            log::warn!("{removed} files of {} were not whole", record.application);
        }
        Ok((record, Arc::new(store)))
    }

    /// Whether executors of that user are served.
    pub(crate) fn serves(&self, user: u32) -> bool {
        match &self.options.users {
            Users::Own => user == geteuid().as_raw(),
            Users::These(users) => users.contains(&user),
            Users::Any => true,
        }
    }

    /// The application of an executor, which is made if this is the first one.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn register(&self, hello: &Hello, owner: u32) -> Result<Arc<Application>, Refused> {
        let key = hello.token.key();
        let disagrees = || {
            let text = "another executor of the application has registered with another id, user or secret";
            (Refusal::User, text.to_owned())
        };
        let mut applications = lock(&self.applications);
        let max = self.options.applications;
        let is_full = applications.len() >= max;
        let of_owner = applications.values().filter(|a| a.owner() == owner).count();
        let max_of_owner = share_of_user(&self.options.users, max);
        let store = match applications.entry(key) {
            Entry::Occupied(known) => match known.get() {
                Known::Serving(application) if application.agrees(hello, owner) => {
                    return Ok(Arc::clone(application));
                }
                Known::Left { record, store, .. }
                    if (record.owner, &record.application) == (owner, &hello.application) =>
                {
                    Arc::clone(store)
                }
                Known::Serving(_) | Known::Left { .. } => return Err(disagrees()),
            },
            Entry::Vacant(_) if is_full => {
                let text = format!("there are {max} applications here, as many as may be");
                return Err((Refusal::Full, text));
            }
            Entry::Vacant(_) if of_owner >= max_of_owner => {
                let text = format!(
                    "user {owner} has {of_owner} applications here, as many as one user may have"
                );
                return Err((Refusal::Full, text));
            }
            Entry::Vacant(_) => Arc::new(self.make_store(key, hello, owner)?),
        };
        let now = Instant::now();
        let shared = (&self.options, &self.memory, &self.port);
        let (copying, outputs) = (self.copying.clone(), Arc::clone(&store));
        let started = Application::start(key, hello, owner, outputs, shared, copying, now);
        let application = started.map_err(|error| {
            if store.holding().outputs == 0 {
                remove_directory(&self.place_of(key));
            }
            (Refusal::System, error.to_string())
        })?;
        applications.insert(key, Known::Serving(Arc::clone(&application)));
        log::info!(
            "application {} of user {owner} is served; executor {} is its first here",
            application.name,
            hello.executor
        );
        Ok(application)
    }

    fn make_store(&self, key: Key, hello: &Hello, owner: u32) -> Result<Store, Refused> {
        let place = self.place_of(key);
        let record = Record {
            application: hello.application.clone(),
            owner,
            boot: self.boot.clone(),
        };
        let make = || {
            DirBuilder::new().mode(0o700).create(&place)?;
            record.write(&place)?;
            Store::open(&place, self.options.quota, self.bounds())
        };
        make().map_err(|error: io::Error| {
            remove_directory(&place);
            (Refusal::System, format!("{}: {error}", place.display()))
        })
    }

    fn bounds(&self) -> (Arc<OutputRecords>, Arc<Held>) {
        (Arc::clone(&self.records), Arc::clone(&self.held))
    }

    fn place_of(&self, key: Key) -> PathBuf {
        let place = self.options.data_directory.join(APPLICATIONS);
        place.join(key.to_string())
    }

    pub(crate) fn count_kept(&self, how: KeptAs) {
        let counter = match how {
            KeptAs::Links => &self.counters.links,
            KeptAs::Descriptors => &self.counters.descriptors,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_removed(&self, gone: Holding) {
        let removed = &self.counters.removed_outputs;
        removed.fetch_add(gone.outputs as u64, Ordering::Relaxed);
    }

    /// The application has ended, or nothing was heard of it: its outputs go.
    pub(crate) fn end(&self, key: Key, why: &str) {
        let known = lock(&self.applications).remove(&key);
        let (name, gone, served) = match known {
            Some(Known::Serving(application)) => {
                let served = application.served();
                let gone = application.end();
                for (sum, more) in self.counters.served.iter().zip(served) {
                    sum.fetch_add(more, Ordering::Relaxed);
                }
                (application.name.clone(), gone, served[0])
            }
            Some(Known::Left { record, store, .. }) => (record.application, store.end(), 0),
            None => return,
        };
        remove_directory(&self.place_of(key));
        self.count_removed(gone);
        log::info!(
            "application {name} {why}: {} map outputs, {} bytes removed; {served} blocks were served",
            gone.outputs,
            gone.bytes
        );
    }

    /// Does what members have told, and ends the applications that nothing was heard of for too long.
    pub fn tick(&self, now: Instant) {
        self.do_told();
        let idle = self.options.idle;
        let is_over = |since: Instant| now.saturating_duration_since(since) >= idle;
        let applications = lock(&self.applications);
        let over = applications.iter().filter(|(_, known)| match known {
            Known::Left { since, .. } => is_over(*since),
            Known::Serving(application) => application.idle_since(now).is_some_and(is_over),
        });
        let over: Vec<Key> = over.map(|(key, _)| *key).collect();
        drop(applications);
        for key in over {
            let why = format!("was not heard of for {} s", idle.as_secs());
            self.end(key, &why);
        }
    }

    fn do_told(&self) {
        let serving: Vec<Arc<Application>> = lock(&self.applications)
            .values()
            .filter_map(|known| match known {
                Known::Serving(application) => Some(Arc::clone(application)),
                Known::Left { .. } => None,
            })
            .collect();
        for application in serving {
            let news = application.told();
            if news.ended {
                self.end(application.key, "has ended");
                continue;
            }
            for shuffle in news.removed {
                self.count_removed(application.forget(shuffle));
            }
        }
    }

    /// What it has and did, by name.
    pub fn figures(&self) -> Figures {
        self.status().figures()
    }

    /// What it has and did.
    pub fn status(&self) -> Status {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (mut executors, mut behind, mut tables) = (0, 0, 0);
        let port = self.port.shared().counts();
        let mut served = [0, 1].map(|at| get(&self.counters.served[at]));
        let mut holding = Holding::default();
        let applications = lock(&self.applications);
        for known in applications.values() {
            let more = match known {
                Known::Left { store, .. } => store.holding(),
                Known::Serving(application) => {
                    let more = application.served();
                    served = [served[0] + more[0], served[1] + more[1]];
                    executors += application.executors() as u64;
                    behind += application.replicas_behind();
                    tables += application.table_bytes();
                    application.holding()
                }
            };
            holding.outputs += more.outputs;
            holding.bytes += more.bytes;
            holding.replicas += more.replicas;
        }
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            applications: applications.len() as u64,
            executors,
            outputs: holding.outputs as u64,
            output_bytes: holding.bytes,
            linked: get(&self.counters.links),
            kept_open: get(&self.counters.descriptors),
            refused: get(&self.counters.refused),
            removed: get(&self.counters.removed_outputs),
            lent: get(&self.counters.lent),
            served_blocks: served[0],
            served_bytes: served[1],
            replicas: holding.replicas as u64,
            replicas_behind: behind,
            copied_bytes: get(&self.copying.counts.bytes),
            copies_refused: get(&self.copying.counts.refused),
            memory: self.memory.held_bytes(),
            memory_limit: self.memory.limit_bytes(),
            tables,
            tables_limit: self.options.table_bytes(),
            outputs_limit: self.options.outputs() as u64,
            passed_on: port.passed_on,
            connections_refused: port.refused,
            handshakes_failed: port.failed,
        }
    }

    /// Ends all endpoints; outputs stay for the next service.
    pub fn close(&self) {
        self.port.close();
        let known = std::mem::take(&mut *lock(&self.applications));
        for known in known.into_values() {
            match known {
                Known::Serving(application) => application.close(),
                Known::Left { .. } => {}
            }
        }
    }
}

fn memory_of(options: &Options) -> Result<Arc<Budget>, ServiceError> {
    let Options {
        memory: got,
        applications,
        ..
    } = *options;
    let pools = u32::try_from(applications).unwrap_or(u32::MAX);
    Budget::new(got, pools).map_err(|error| ServiceError::Memory {
        got,
        applications,
        each: Budget::OWN_BYTES,
        error,
    })
}
