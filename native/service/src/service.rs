//! All applications of this host: who may register, how many there are, and when their outputs go.

use crate::application::{Application, Copying};
use crate::connections::share_of_user;
use crate::counters::Counters;
use crate::directories::{descriptors, directory, locked};
use crate::error::ServiceError;
use crate::known::{Known, Totals};
use crate::message::{Hello, Key, Refusal};
use crate::options::{Options, Users};
use crate::places::{Left, Places};
use crate::port::Port;
use crate::replica::Throttle;
use crate::status::{Figures, Status};
use crate::store::{Held, OutputRecords};
use faro_endpoint::Budget;
use faro_sync::lock;
use rustix::process::geteuid;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The part of the descriptors that this process may have for files of map outputs that cannot be linked.
const HELD_SHARE: u64 = 4;
/// The part for files that are on their way to readers.
const LENDING_SHARE: u64 = 8;

/// Why an executor is refused.
pub(crate) type Refused = (Refusal, String);

/// The service of this host.
pub struct Service {
    options: Options,
    places: Places,
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
        let descriptors = descriptors();
        let held = Held::new((descriptors / HELD_SHARE) as usize);
        let lending = Held::new((descriptors / LENDING_SHARE) as usize);
        let records = OutputRecords::new(options.outputs());
        let places = Places::open(&options.data_directory, options.quota, records, held)?;
        let port = Port::open(&options)?;
        let memory = memory_of(&options)?;
        let left = places.left()?.into_iter();
        let applications = left.map(|(key, left)| (key, Known::Left(left))).collect();
        Ok(Arc::new(Self {
            places,
            lending,
            memory,
            copying: Copying {
                throttle: Arc::new(Throttle::new(options.replica_bandwidth)),
                counts: Arc::default(),
            },
            port,
            applications: Mutex::new(applications),
            counters: Counters::default(),
            _locks: locks,
            options,
        }))
    }

    /// What readers connect to over TCP and RDMA, of all applications.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.port.shared().address()
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
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
                Known::Left(Left { record, store, .. })
                    if (record.owner, &record.application) == (owner, &hello.application) =>
                {
                    Arc::clone(store)
                }
                Known::Serving(_) | Known::Left(_) => return Err(disagrees()),
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
            Entry::Vacant(_) => {
                let made = self.places.make(key, &hello.application, owner);
                Arc::new(made.map_err(|text| (Refusal::System, text))?)
            }
        };
        let now = Instant::now();
        let shared = (&self.options, &self.memory, &self.port);
        let (copying, outputs) = (self.copying.clone(), Arc::clone(&store));
        let started = Application::start(key, hello, owner, outputs, shared, copying, now);
        let application = started.map_err(|error| {
            if store.holding().outputs == 0 {
                self.places.remove(key);
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

    /// The application has ended, or nothing was heard of it: its outputs go.
    pub(crate) fn end(&self, key: Key, why: &str) {
        let known = lock(&self.applications).remove(&key);
        let (name, gone, served) = match known {
            Some(Known::Serving(application)) => {
                let served = application.served();
                let gone = application.end();
                self.counters.has_served(served);
                (application.name.clone(), gone, served[0])
            }
            Some(Known::Left(Left { record, store, .. })) => (record.application, store.end(), 0),
            None => return,
        };
        self.places.remove(key);
        self.counters.removed(gone);
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
        let applications = lock(&self.applications);
        let over = applications.iter();
        let over = over.filter(|(_, known)| known.is_idle_for(idle, now));
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
            .filter_map(Known::serving)
            .cloned()
            .collect();
        for application in serving {
            let news = application.told();
            if news.ended {
                self.end(application.key, "has ended");
                continue;
            }
            for shuffle in news.removed {
                self.counters.removed(application.forget(shuffle));
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
        let port = self.port.shared().counts();
        let ended = self.counters.served();
        let mut totals = Totals::default();
        let applications = lock(&self.applications);
        applications.values().for_each(|known| totals.add(known));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            applications: applications.len() as u64,
            executors: totals.executors,
            outputs: totals.holding.outputs as u64,
            output_bytes: totals.holding.bytes,
            linked: get(&self.counters.links),
            kept_open: get(&self.counters.descriptors),
            refused: get(&self.counters.refused),
            removed: get(&self.counters.removed_outputs),
            lent: get(&self.counters.lent),
            served_blocks: ended[0] + totals.served[0],
            served_bytes: ended[1] + totals.served[1],
            replicas: totals.holding.replicas as u64,
            replicas_behind: totals.behind,
            copied_bytes: get(&self.copying.counts.bytes),
            copies_refused: get(&self.copying.counts.refused),
            memory: self.memory.held_bytes(),
            memory_limit: self.memory.limit_bytes(),
            tables: totals.tables,
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
        for application in known.values().filter_map(Known::serving) {
            application.close();
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
