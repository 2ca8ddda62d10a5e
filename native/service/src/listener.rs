//! The socket of the service: who connects is asked for, one thread answers each connection.

use crate::application::Application;
use crate::connections::{Connections, Counted, TooMany};
use crate::handed::Handed;
use crate::lend::Loans;
use crate::message::{MessageError, Refusal, Reply, Request};
use crate::options::{Users, SOCKET};
use crate::service::{Refused, Service, ServiceError};
use crate::socket::{receive, send, Received, SocketError};
use crate::store::KeepError;
use faro_fabric::peer_user;
use faro_sync::lock;
use rustix::fs::{chmod, Mode};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    accept_with, bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections beyond the most there may be that are told so at a time; further ones are closed without a word.
const MAX_TURNED_AWAY: usize = 64;
/// Connections that the kernel keeps until they are taken.
const BACKLOG: i32 = 128;
/// How long an executor may take for its first message.
const HELLO_WAIT: Duration = Duration::from_secs(5);
/// How often a thread that waits looks whether the service stops.
const LOOK: Duration = Duration::from_millis(500);
/// How long the end waits for what connections are doing.
const END_WAIT: Duration = Duration::from_secs(10);
/// How often it looks for applications that nothing was heard of.
const TICK: Duration = Duration::from_secs(1);

/// Listens as long as it lives.
pub struct Listener {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    connections: Arc<Connections>,
}

impl Listener {
    /// Listens at the service's socket, and looks for idle applications.
    ///
    /// # Errors
    /// `Socket`, `Thread`.
    pub fn start(service: &Arc<Service>) -> Result<Self, ServiceError> {
        let path = service.options().socket_directory.join(SOCKET);
        let open_to_all = service.options().users != Users::Own;
        let of = |source: io::Error| ServiceError::Socket {
            path: path.clone(),
            source,
        };
        let socket = open(&path, open_to_all).map_err(of)?;
        let stop = Arc::new(AtomicBool::new(false));
        let connections = Connections::new(&service.options().users, service.options().connections);
        let listener = Self {
            path: path.clone(),
            stop: Arc::clone(&stop),
            threads: Mutex::default(),
            connections: Arc::clone(&connections),
        };
        let accepts = {
            let (service, stop) = (Arc::clone(service), Arc::clone(&stop));
            move || accept_all(&service, &socket, &stop, &connections)
        };
        let service = Arc::clone(service);
        let ticks = move || {
            let mut last = Instant::now();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
                let now = Instant::now();
                if now.saturating_duration_since(last) >= TICK {
                    last = now;
                    service.tick(now);
                }
            }
        };
        let mut threads = lock(&listener.threads);
        threads.push(thread("faro-accept", accepts)?);
        threads.push(thread("faro-tick", ticks)?);
        drop(threads);
        Ok(listener)
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    /// Waits for all threads of it, which look every half second; not for one that a file system keeps.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in lock(&self.threads).drain(..) {
            if thread.join().is_err() {
                log::error!("a thread of the service panicked");
            }
        }
        let deadline = Instant::now() + END_WAIT;
        while !self.connections.are_none() {
            if Instant::now() >= deadline {
                log::warn!("an executor's files do not answer, and are not waited for");
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

fn thread(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ServiceError> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder.spawn(body).map_err(ServiceError::Thread)
}

/// In the place of the socket of a service before this one: its directory is locked.
fn open(path: &Path, open_to_all: bool) -> io::Result<OwnedFd> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    chmod(
        path,
        Mode::from_raw_mode(if open_to_all { 0o666 } else { 0o600 }),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(LOOK))?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn accept_all(
    service: &Arc<Service>,
    socket: &OwnedFd,
    stop: &Arc<AtomicBool>,
    connections: &Arc<Connections>,
) {
    let turned_away = Connections::new(&service.options().users, MAX_TURNED_AWAY);
    while !stop.load(Ordering::Relaxed) {
        let connection = match accept_with(socket, SocketFlags::CLOEXEC) {
            Ok(connection) => connection,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => continue,
            Err(error) => {
                log::warn!("an executor cannot connect: {error}");
                // Without descriptors this would repeat at once.
                std::thread::sleep(LOOK);
                continue;
            }
        };
        let user = match peer_user(&connection) {
            Ok(user) => user,
            Err(error) => {
                log::debug!("the kernel does not say which user connects: {error}");
                continue;
            }
        };
        let counted = match connections.take(user) {
            Ok(counted) => counted,
            Err(too_many) => {
                service.counters.refused.fetch_add(1, Ordering::Relaxed);
                log::info!("an executor of user {user} is refused: {too_many}");
                if let Ok(counted) = turned_away.take(user) {
                    turn_away(connection, counted, too_many);
                }
                continue;
            }
        };
        let serves = {
            let (service, stop) = (Arc::clone(service), Arc::clone(stop));
            move || {
                let _counted = counted;
                // Dropped before it: when none is counted, nothing of the service is in use here.
                let (service, stop, connection) = (service, stop, connection);
                Connection {
                    user,
                    service: &service,
                    socket: &connection,
                    stop: &stop,
                }
                .serve();
            }
        };
        if let Err(error) = thread("faro-executor", serves) {
            log::warn!("an executor cannot be served: {error}");
        }
    }
}

/// Reads the greeting before it refuses: closing with a message unread would take the answer from the other side.
fn turn_away(connection: OwnedFd, counted: Counted, why: TooMany) {
    let refuses = move || {
        let _counted = counted;
        let refused = hello_waits(&connection)
            .and_then(|()| receive(connection.as_fd()))
            .and_then(|_| refuse(&connection, (Refusal::Full, why.to_string())));
        if let Err(error) = refused {
            log::debug!("an executor does not hear that it is refused: {error}");
        }
    };
    if let Err(error) = thread("faro-refuse", refuses) {
        log::debug!("an executor is not told that it is refused: {error}");
    }
}

/// The first message and its answer have little time.
fn hello_waits(socket: &OwnedFd) -> Result<(), SocketError> {
    set_socket_timeout(socket, Timeout::Send, Some(HELLO_WAIT))?;
    set_socket_timeout(socket, Timeout::Recv, Some(HELLO_WAIT))?;
    Ok(())
}

fn refuse(socket: &OwnedFd, (why, text): Refused) -> Result<(), SocketError> {
    let bytes = Reply::Refused { why, text }.encode();
    send(socket.as_fd(), &bytes, &[])
}

/// What a first message wants.
enum First {
    Executor(Arc<Application>),
    Status,
}

/// To a message of an executor.
enum Answer {
    Plain(Reply),
    Lent(Loans),
}

/// One executor.
struct Connection<'a> {
    user: u32,
    service: &'a Service,
    socket: &'a OwnedFd,
    stop: &'a AtomicBool,
}

impl Connection<'_> {
    fn serve(&self) {
        let served = self.greet().and_then(|application| {
            application.connected();
            let served = self.answer_all(&application);
            application.disconnected();
            served
        });
        match served {
            Ok(()) | Err(SocketError::Closed) => {}
            Err(error) => log::info!("an executor's connection ends: {error}"),
        }
    }

    /// The first message; `Closed` after a refusal, and after the status.
    fn greet(&self) -> Result<Arc<Application>, SocketError> {
        hello_waits(self.socket)?;
        let greeted = self.greeted()?;
        let first = greeted.map_err(|refused| {
            log::info!(
                "an executor of user {} is refused: {}",
                self.user,
                refused.1
            );
            self.service
                .counters
                .refused
                .fetch_add(1, Ordering::Relaxed);
            refuse(self.socket, refused)
                .err()
                .unwrap_or(SocketError::Closed)
        })?;
        let application = match first {
            First::Executor(application) => application,
            First::Status => {
                send(self.socket.as_fd(), &self.service.status().encode(), &[])?;
                return Err(SocketError::Closed);
            }
        };
        set_socket_timeout(self.socket, Timeout::Recv, Some(LOOK))?;
        let card = application.card();
        self.reply(&Reply::Welcome { card })?;
        Ok(application)
    }

    fn greeted(&self) -> Result<Result<First, Refused>, SocketError> {
        // Also of a user who is refused: closing with a message unread would take the answer from the other side.
        let received = receive(self.socket.as_fd())?;
        let request = Request::decode(&received.bytes);
        let administers = self.user == 0 || self.user == geteuid().as_raw();
        if administers && matches!(request, Ok(Request::Status)) {
            return Ok(Ok(First::Status));
        }
        if !self.service.serves(self.user) {
            let text = format!("executors of user {} are not served here", self.user);
            return Ok(Err((Refusal::User, text)));
        }
        Ok(match request {
            Ok(Request::Hello(hello)) => self
                .service
                .register(&hello, self.user)
                .map(First::Executor),
            Ok(Request::Status) => Ok(First::Status),
            Ok(
                Request::Output { .. }
                | Request::Lend { .. }
                | Request::Forget { .. }
                | Request::End
                | Request::Host { .. }
                | Request::Behind,
            ) => {
                let text = "the first message is no greeting".to_owned();
                Err((Refusal::Message, text))
            }
            Err(error @ MessageError::Version { .. }) => Err((Refusal::Version, error.to_string())),
            Err(error) => Err((Refusal::Message, error.to_string())),
        })
    }

    fn answer_all(&self, application: &Application) -> Result<(), SocketError> {
        while !self.stop.load(Ordering::Relaxed) {
            let received = match receive(self.socket.as_fd()) {
                Err(SocketError::TimedOut) => continue,
                other => other?,
            };
            match self.answer(application, received) {
                Ok(Answer::Plain(reply)) => self.reply(&reply)?,
                Ok(Answer::Lent(loans)) => self.lend(loans)?,
                Err(refused) => {
                    self.service
                        .counters
                        .refused
                        .fetch_add(1, Ordering::Relaxed);
                    log::debug!("application {} is refused: {}", application.name, refused.1);
                    let ends = refused.0 == Refusal::Message;
                    refuse(self.socket, refused)?;
                    if ends {
                        return Err(SocketError::Closed);
                    }
                }
            }
        }
        Ok(())
    }

    fn answer(&self, application: &Application, received: Received) -> Result<Answer, Refused> {
        let message = |text: String| (Refusal::Message, text);
        let request = Request::decode(&received.bytes).map_err(|e| message(e.to_string()))?;
        match request {
            Request::Hello(_) | Request::Status => Err(message("a second greeting".to_owned())),
            Request::Output { id, has_data } => {
                let mut files = received.descriptors.into_iter().map(File::from);
                let wanted = 1 + usize::from(has_data);
                if files.len() != wanted {
                    let got = files.len();
                    return Err(message(format!("{got} descriptors where {wanted} belong")));
                }
                let handed = match (files.next(), files.next()) {
                    (Some(index), data) => Handed::check(index, data, self.user),
                    (None, _) => return Err(message("no index".to_owned())),
                };
                let handed = handed.map_err(|e| (Refusal::Files, e.to_string()))?;
                let kept = application.keep(id, handed).map_err(|error| {
                    let why = match &error {
                        KeepError::Files(_) => Refusal::Files,
                        KeepError::Quota { .. } => Refusal::Quota,
                        KeepError::Full => Refusal::Full,
                        KeepError::Ended => Refusal::Ended,
                        // These two are of copies.
                        KeepError::Removed | KeepError::Own => Refusal::Message,
                        KeepError::Descriptors { .. }
                        | KeepError::Linking(_)
                        | KeepError::Unreadable(_) => Refusal::System,
                    };
                    (why, error.to_string())
                })?;
                self.service.count_kept(kept.how);
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Forget { shuffle } => {
                self.service.count_removed(application.forget(shuffle));
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Host {
                replicas,
                at,
                of,
                card,
            } => application
                .host((replicas, at, of), card)
                .map(|()| Answer::Plain(Reply::Done))
                // The connection goes on: outputs are handed over by it.
                .map_err(|text| (Refusal::Full, text)),
            Request::Behind => {
                let behind = application.replicas_behind();
                Ok(Answer::Plain(Reply::Behind(behind)))
            }
            Request::End => {
                self.service.end(application.key, "has ended");
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Lend {
                shuffle,
                files,
                maps,
            } => {
                let lending = &self.service.lending;
                let loans = application.lend(lending, shuffle, &maps, files);
                Ok(Answer::Lent(loans))
            }
        }
    }

    /// A reader that does not take its answer ends this connection only, which has its own thread and timeout.
    fn lend(&self, loans: Loans) -> Result<(), SocketError> {
        let files: Vec<_> = loans.files().map(AsFd::as_fd).collect();
        let outputs = loans.all.iter().filter(|lent| lent.files() > 0).count();
        if !files.is_empty() {
            // Before the answer, so that a reader that has it finds it counted.
            let lent = &self.service.counters.lent;
            lent.fetch_add(outputs as u64, Ordering::Relaxed);
        }
        let bytes = Reply::Lent(loans.all.clone()).encode();
        match send(self.socket.as_fd(), &bytes, &files) {
            Err(SocketError::TooManyOnTheirWay) => {
                let text = SocketError::TooManyOnTheirWay.to_string();
                refuse(self.socket, (Refusal::System, text))
            }
            other => other,
        }
    }

    fn reply(&self, reply: &Reply) -> Result<(), SocketError> {
        send(self.socket.as_fd(), &reply.encode(), &[])
    }
}
