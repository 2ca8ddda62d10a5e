//! All applications of this host: who may register, how many there are, and when their outputs go.

use crate::application::{Application, CopyContext};
use crate::application_state::{room_for, ApplicationState, Totals};
use crate::counters::Counters;
use crate::directories::{descriptors, directory, locked, DataDirectory};
use crate::disk::{Disk, DISK_WAIT};
use crate::error::ServiceError;
use crate::lending::LoanLimits;
use crate::lines::{Line, Lines};
use crate::message::{Hello, Key, Refusal, VERSIONS};
use crate::options::{Options, Users};
use crate::places::Places;
use crate::port::Port;
use crate::replica::Throttle;
use crate::status::{ApplicationStatus, Figures, Status};
use crate::store::{OpenFileCount, OutputRecords, StoredTotals};
use faro_endpoint::Budget;
use faro_fabric::verbs::port_counters;
use faro_sync::{clock, lock, wait_timeout, Condvar, Mutex};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// How long the end waits for applications' endpoints.
const CLOSE_WAIT: Duration = Duration::from_secs(10);
/// Said to an executor whose application cannot be started in time.
const TOO_LONG: &str = "the disk has not answered in time; the application is still being started";
/// Why an application ends that has nothing.
const MADE_ROOM: &str = "has handed nothing over and makes room for another one";

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
    pub(crate) lending: Arc<LoanLimits>,
    /// Of all applications' arenas.
    memory: Arc<Budget>,
    copying: CopyContext,
    /// Of all applications' endpoints.
    port: Port,
    /// Held for moments: nothing that may wait is done meanwhile.
    applications: Mutex<Applications>,
    /// An application has started, or could not.
    changed: Condvar,
    pub(crate) counters: Counters,
    lines: Lines,
    /// Locked as long as this lives.
    _socket_lock: File,
}

#[derive(Default)]
struct Applications {
    all: HashMap<Key, ApplicationState>,
    /// No more are served.
    is_closed: bool,
}

/// An application that is to be served.
struct NewApplication {
    key: Key,
    hello: Hello,
    owner: u32,
    /// Its state before.
    before: Option<ApplicationState>,
    /// One that makes room for it.
    goes: Option<Arc<Application>>,
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
        let socket_lock = locked(&options.socket_directory)?;
        let data = DataDirectory::open(&options.data_directory)?;
        let descriptors = descriptors();
        let held = OpenFileCount::new((descriptors / HELD_SHARE) as usize);
        let lending = LoanLimits::new((descriptors / LENDING_SHARE) as usize);
        let records = OutputRecords::new(options.outputs());
        let places = Places::open(data, options.quota, records, held)?;
        let port = Port::open(&options)?;
        let memory = memory_of(&options)?;
        let all = places.left()?;
        all.values().for_each(look_at);
        Ok(Arc::new(Self {
            places,
            lending,
            memory,
            copying: CopyContext {
                throttle: Arc::new(Throttle::new(options.replica_bandwidth)),
                counts: Arc::default(),
            },
            port,
            applications: Mutex::new(Applications {
                all,
                is_closed: false,
            }),
            changed: Condvar::default(),
            counters: Counters::default(),
            lines: Lines::default(),
            _socket_lock: socket_lock,
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

    /// Whether that user may ask for anything at all: executors who are served, and who administers the service.
    pub(crate) fn may_ask(&self, user: u32) -> bool {
        user == 0 || user == geteuid().as_raw() || self.serves(user)
    }

    /// A line of the log that a user can cause as often as he likes.
    pub(crate) fn say(&self, user: u32, what: fmt::Arguments<'_>) {
        match self.lines.ask(user, clock::now()) {
            Line::Write { left_out: 0 } => log::info!("{what}"),
            Line::Write { left_out } => {
                log::info!("{left_out} lines about executors were left out");
                log::info!("{what}");
            }
            Line::LeaveOut => {}
        }
    }

    /// An executor is refused.
    pub(crate) fn refuses(&self, user: u32, why: &str) {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        self.say(
            user,
            format_args!("an executor of user {user} is refused: {why}"),
        );
    }

    /// The application of an executor, which is made if this is the first one.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn register(
        self: &Arc<Self>,
        hello: &Hello,
        owner: u32,
    ) -> Result<Arc<Application>, Refused> {
        let key = hello.token.key();
        let disagrees = || {
            let text = "another executor of the application has registered with another id, user or secret";
            (Refusal::User, text.to_owned())
        };
        let system = |text: &str| (Refusal::System, text.to_owned());
        let deadline = clock::now() + DISK_WAIT;
        let mut applications = lock(&self.applications);
        let goes = loop {
            if applications.is_closed {
                return Err(system("the service ends"));
            }
            match applications.all.get(&key) {
                Some(ApplicationState::Serving(application)) => {
                    return match application.agrees(hello, owner) {
                        true => Ok(Arc::clone(application)),
                        false => Err(disagrees()),
                    };
                }
                Some(ApplicationState::Starting { .. }) => {
                    let left = deadline.saturating_duration_since(clock::now());
                    if left.is_zero() {
                        return Err(system(TOO_LONG));
                    }
                    applications = wait_timeout(&self.changed, applications, left);
                }
                Some(ApplicationState::Ending { .. }) => {
                    return Err(system("an application of this key is just being removed"));
                }
                Some(ApplicationState::Left(left))
                    if !ApplicationState::may_have(left, hello, owner) =>
                {
                    return Err(disagrees());
                }
                Some(ApplicationState::Left(_) | ApplicationState::Unread { .. }) => break None,
                None => {
                    let (users, max) = (&self.options.users, self.options.applications);
                    let goes = room_for(owner, &applications.all, users, max)?;
                    // Otherwise it has something since, and counts.
                    if goes.as_ref().is_none_or(|goes| goes.makes_room()) {
                        break goes;
                    }
                }
            }
        };
        if let Some(goes) = &goes {
            let owner = Some(goes.owner);
            applications
                .all
                .insert(goes.key, ApplicationState::Ending { owner });
        }
        let before = applications
            .all
            .insert(key, ApplicationState::Starting { owner });
        drop(applications);
        let disk = match &before {
            Some(ApplicationState::Left(left)) => Arc::clone(&left.disk),
            _ => Disk::new(DISK_WAIT),
        };
        let coming = NewApplication {
            key,
            hello: hello.clone(),
            owner,
            before,
            goes,
        };
        self.starts(coming, disk)
    }

    /// Starts an application on its threads for the disk, and waits for it for a bounded time. It goes on starting after
    /// that, and its executors come again.
    fn starts(
        self: &Arc<Self>,
        coming: NewApplication,
        disk: Arc<Disk>,
    ) -> Result<Arc<Application>, Refused> {
        let (done, is_done) = mpsc::channel();
        let (service, on) = (Arc::clone(self), Arc::clone(&disk));
        let (key, goes, before) = (coming.key, coming.goes.clone(), coming.before.clone());
        let put = disk.put(move || {
            let started = Self::start(&service, coming, on);
            // Before the word: then nothing of the service is in use here.
            drop(service);
            let _ = done.send(started);
        });
        if let Err(error) = put {
            let mut applications = lock(&self.applications);
            applications.all.remove(&key);
            if let Some(before) = before {
                applications.all.insert(key, before);
            }
            drop(applications);
            self.changed.notify_all();
            if let Some(goes) = goes {
                self.ends(goes.key, ApplicationState::Serving(goes), MADE_ROOM);
            }
            return Err((Refusal::System, error.to_string()));
        }
        drop(goes);
        let too_long = |_| Err((Refusal::System, TOO_LONG.to_owned()));
        is_done.recv_timeout(DISK_WAIT).unwrap_or_else(too_long)
    }

    fn start(
        self: &Arc<Self>,
        mut coming: NewApplication,
        disk: Arc<Disk>,
    ) -> Result<Arc<Application>, Refused> {
        if let Some(goes) = coming.goes.take() {
            let ends = self.ends(goes.key, ApplicationState::Serving(goes), MADE_ROOM);
            // Mostly its memory is back then. If its disk hangs, it is not waited for.
            let _ = ends.map(|ends| ends.recv_timeout(DISK_WAIT / 2));
        }
        let NewApplication {
            key,
            hello,
            owner,
            before,
            ..
        } = coming;
        let started = self.started(key, &hello, owner, &before, disk);
        let mut applications = lock(&self.applications);
        let is_closed = applications.is_closed;
        match (&started, before) {
            (Ok(application), _) if !is_closed => {
                let serving = ApplicationState::Serving(Arc::clone(application));
                applications.all.insert(key, serving);
            }
            (Err(_), Some(before)) => {
                applications.all.insert(key, before);
            }
            (Ok(_) | Err(_), _) => {
                applications.all.remove(&key);
            }
        }
        drop(applications);
        self.changed.notify_all();
        match &started {
            Ok(application) if is_closed => application.close(),
            Ok(application) => log::info!(
                "application {} of user {owner} is served; executor {} is its first here",
                application.name,
                hello.executor
            ),
            Err(_) => {}
        }
        started
    }

    fn started(
        &self,
        key: Key,
        hello: &Hello,
        owner: u32,
        before: &Option<ApplicationState>,
        disk: Arc<Disk>,
    ) -> Result<Arc<Application>, Refused> {
        let system = |text: String| (Refusal::System, text);
        let store = match before {
            Some(ApplicationState::Left(left)) => Arc::clone(&left.store),
            Some(ApplicationState::Unread { .. }) => {
                let left = self.places.left_by(key);
                let left = left.map_err(|error| system(error.to_string()))?;
                if !ApplicationState::may_have(&left, hello, owner) {
                    return Err((Refusal::User, "it is another executor's".to_owned()));
                }
                left.store
            }
            _ => {
                let made = self.places.make(key, &hello.application, owner);
                Arc::new(made.map_err(system)?)
            }
        };
        let now = clock::now();
        let shared = (&self.options, &self.memory, &self.port);
        let (copying, outputs) = (self.copying.clone(), (Arc::clone(&store), disk));
        Application::start(key, hello, owner, outputs, shared, copying, now).map_err(|error| {
            if before.is_none() {
                self.places.remove(key);
            }
            system(error.to_string())
        })
    }

    /// The application has ended, or is idle for too long: its outputs go. Returns where to wait for that; `None`: there
    /// is nothing to wait for.
    pub(crate) fn end(self: &Arc<Self>, key: Key, why: &str) -> Option<mpsc::Receiver<()>> {
        let mut applications = lock(&self.applications);
        let known = applications.all.get(&key)?.clone();
        if matches!(
            known,
            ApplicationState::Starting { .. } | ApplicationState::Ending { .. }
        ) {
            return None;
        }
        let owner = known.owner();
        applications
            .all
            .insert(key, ApplicationState::Ending { owner });
        drop(applications);
        self.ends(key, known, why)
    }

    /// Ends an application that is `Ending`. It gives its memory back now, and its outputs go on a thread of its own: all of
    /// its threads for the disk may wait. If there is no thread it is as before.
    fn ends(
        self: &Arc<Self>,
        key: Key,
        known: ApplicationState,
        why: &str,
    ) -> Option<mpsc::Receiver<()>> {
        let (done, is_done) = mpsc::channel();
        let (service, why, of) = (Arc::clone(self), why.to_owned(), known.clone());
        let removes = move || {
            service.remove(key, &of, &why);
            drop((service, of));
            let _ = done.send(());
        };
        let thread = std::thread::Builder::new().name("faro-end".to_owned());
        if let Err(error) = thread.spawn(removes) {
            log::warn!("an application is removed later, there is no thread: {error}");
            lock(&self.applications).all.insert(key, known);
            return None;
        }
        if let Some(application) = known.serving() {
            application.retires();
        }
        Some(is_done)
    }

    fn remove(&self, key: Key, known: &ApplicationState, why: &str) {
        let (name, gone, served) = match known {
            ApplicationState::Serving(application) => {
                let served = application.served();
                let gone = application.end();
                self.counters.has_served(served);
                (application.name.as_str(), gone, served[0])
            }
            ApplicationState::Left(left) => (left.record.application.as_str(), left.store.end(), 0),
            ApplicationState::Unread { .. } => {
                ("that could not be read", StoredTotals::default(), 0)
            }
            ApplicationState::Starting { .. } | ApplicationState::Ending { .. } => return,
        };
        self.places.remove(key);
        lock(&self.applications).all.remove(&key);
        self.counters.removed(gone);
        log::info!(
            "application {name} {why}: {} map outputs, {} bytes removed; {served} blocks were served",
            gone.outputs,
            gone.bytes
        );
    }

    /// What there is now. Whatever is asked of them then is asked without the lock of all.
    fn known(&self) -> Vec<(Key, ApplicationState)> {
        let applications = lock(&self.applications);
        let all = applications.all.iter();
        all.map(|(key, known)| (*key, known.clone())).collect()
    }

    /// Carries members' commands out, ends the applications that are idle for too long, and the connections of
    /// readers that do not take what they have borrowed.
    pub fn tick(self: &Arc<Self>, now: Instant) {
        self.lending.look(now);
        let idle = self.options.idle;
        for (key, known) in self.known() {
            if let Some(application) = known.serving() {
                self.carry_out(application);
            }
            if known.is_idle_for(idle, now) {
                let why = format!("was not heard of for {} s", idle.as_secs());
                self.end(key, &why);
            }
        }
    }

    fn carry_out(self: &Arc<Self>, application: &Arc<Application>) {
        if application.inbox.has_ended() {
            self.end(application.key, "has ended");
            return;
        }
        let Some(removed) = application.inbox.take_removed() else {
            return;
        };
        let (service, of) = (Arc::clone(self), Arc::clone(application));
        let put = application.disk().put(move || {
            for shuffle in &removed.all {
                service.counters.removed(of.forget(*shuffle));
            }
        });
        if let Err(error) = put {
            log::warn!("shuffles of {} are not removed: {error}", application.name);
        }
    }

    /// What it has and did, by name.
    pub fn figures(&self) -> Figures {
        self.figures_of(&self.known())
    }

    /// What it has and did, as that user may see it.
    pub fn status(&self, user: u32) -> Status {
        let known = self.known();
        let sees_all = user == 0 || user == geteuid().as_raw();
        let of = |(key, one): &(Key, ApplicationState)| {
            let mut status = one.status(key);
            let loans = self.lending.on_their_way_of(*key) as u64;
            status.figures.push(("loans".into(), loans));
            let quota = self.options.quota;
            status.figures.push(("quota_bytes".into(), quota));
            status
        };
        let seen = known.iter();
        let seen = seen.filter(|(_, one)| sees_all || one.owner() == Some(user));
        let mut applications: Vec<ApplicationStatus> = seen.map(of).collect();
        applications.sort_by(|a, b| a.name.cmp(&b.name));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocols: VERSIONS.spoken(),
            figures: self.figures_of(&known),
            applications,
        }
    }

    fn figures_of(&self, applications: &[(Key, ApplicationState)]) -> Figures {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let port = self.port.shared().counts();
        let ended = self.counters.served();
        let mut totals = Totals::default();
        applications.iter().for_each(|(_, known)| totals.add(known));
        let (counters, copies) = (&self.counters, &self.copying.counts);
        let [retransmits, out_of_sequence, not_ready] = port_counters();
        let figures = [
            ("applications", applications.len() as u64),
            ("executors", totals.executors),
            ("outputs", totals.holding.outputs as u64),
            ("output_bytes", totals.holding.bytes),
            ("linked_total", get(&counters.links)),
            ("kept_open_total", get(&counters.descriptors)),
            ("refused_total", get(&counters.refused)),
            ("removed_total", get(&counters.removed_outputs)),
            ("served_blocks_total", ended[0] + totals.served[0]),
            ("served_bytes_total", ended[1] + totals.served[1]),
            ("lent_total", get(&counters.lent)),
            ("loans", self.lending.on_their_way() as u64),
            ("replicas", totals.holding.replicas as u64),
            ("replicas_behind", totals.behind),
            ("copied_bytes_total", get(&copies.bytes)),
            ("copies_refused_total", get(&copies.refused)),
            ("memory_bytes", self.memory.held_bytes()),
            ("memory_limit_bytes", self.memory.limit_bytes()),
            ("table_bytes", totals.tables),
            ("table_limit_bytes", self.options.table_bytes()),
            ("outputs_limit", self.options.outputs() as u64),
            ("applications_limit", self.options.applications as u64),
            ("connections_passed_on_total", port.passed_on),
            ("connections_refused_total", port.refused),
            ("handshakes_failed_total", port.failed),
            ("rdma_retransmits_total", retransmits),
            ("rdma_out_of_sequence_total", out_of_sequence),
            ("rdma_not_ready_total", not_ready),
        ];
        let figures = figures.into_iter();
        figures.map(|(name, value)| (name.into(), value)).collect()
    }

    /// Ends all endpoints; outputs stay for the next service. Waits for them for a bounded time: a disk that hangs keeps no
    /// process from its end.
    pub fn close(&self) {
        self.port.close();
        let mut applications = lock(&self.applications);
        applications.is_closed = true;
        let known = std::mem::take(&mut applications.all);
        drop(applications);
        self.changed.notify_all();
        let (done, is_done) = mpsc::channel();
        for application in known
            .into_values()
            .filter_map(|known| known.serving().cloned())
        {
            let (done, disk) = (done.clone(), Arc::clone(application.disk()));
            let put = disk.put(move || {
                application.close();
                drop(application);
                let _ = done.send(());
            });
            if let Err(error) = put {
                log::warn!("an application is not ended: {error}");
            }
        }
        drop(done);
        let deadline = clock::now() + CLOSE_WAIT;
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            match is_done.recv_timeout(left) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    log::warn!("a disk does not answer, and is not waited for");
                    return;
                }
            }
        }
    }
}

/// Checks the outputs that an earlier service has left, in the background. An output that is needed earlier is checked then.
fn look_at(known: &ApplicationState) {
    let ApplicationState::Left(left) = known else {
        return;
    };
    let of = Arc::clone(left);
    let put = left.disk.put(move || {
        let (removed, later) = of.store.look();
        let name = &of.record.application;
        if removed > 0 {
            log::warn!("{removed} files of {name} were not whole");
        }
        if later > 0 {
            log::warn!("{later} map outputs of {name} cannot be looked at now; they stay");
        }
    });
    if let Err(error) = put {
        log::warn!(
            "what {} has left is looked at when it is wanted: {error}",
            left.record.application
        );
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

#[cfg(test)]
#[path = "service_test.rs"]
mod tests;
