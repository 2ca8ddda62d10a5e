//! The socket of the service: who connects is asked for, one thread answers each connection.

use crate::connection::{hello_waits, not_served, refuse, Connection, LOOK};
use crate::connections::{ConnectionPermit, Connections};
use crate::error::ServiceError;
use crate::message::Refusal;
use crate::options::{Users, SOCKET};
use crate::service::{Refused, Service};
use crate::socket::receive;
use faro_fabric::peer_user;
use faro_sync::lock;
use rustix::fs::{chmod, Mode};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    accept_with, bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections beyond the most there may be that get a refusal at a time, and as many of users who are not served; further
/// ones are closed without a word.
const MAX_TURNED_AWAY: usize = 64;
/// Connections that the kernel keeps until they are taken, if `net.core.somaxconn` allows as many: users who are not served
/// may make thousands in a second, and who is served waits behind them for a moment then.
const BACKLOG: i32 = 4_096;
/// How long the end waits for what connections are doing.
const END_WAIT: Duration = Duration::from_secs(10);
/// How often it looks for idle applications.
const TICK: Duration = Duration::from_secs(1);

/// Listens as long as it lives.
pub struct Listener {
    path: PathBuf,
    /// The socket's.
    inode: Option<(u64, u64)>,
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
            inode: inode(&path),
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
        // It may be another service's, if its directory was removed and made again.
        if inode(&self.path).is_some_and(|now| Some(now) == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and number of what has that path; `None`: nothing that can be looked at.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let is = std::fs::symlink_metadata(path).ok()?;
    Some((is.dev(), is.ino()))
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
    let users = &service.options().users;
    let turned_away = Connections::new(users, MAX_TURNED_AWAY);
    let unserved = Connections::new(&Users::Any, MAX_TURNED_AWAY);
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
        // Before it takes a connection: who is not served has none to take.
        let counted = match service.may_ask(user).then(|| connections.take(user)) {
            Some(Ok(counted)) => counted,
            Some(Err(too_many)) => {
                turn_away(
                    service,
                    connection,
                    &turned_away,
                    (Refusal::Full, too_many.to_string()),
                    user,
                );
                continue;
            }
            None => {
                turn_away(service, connection, &unserved, not_served(user), user);
                continue;
            }
        };
        let serves = {
            let (service, stop) = (Arc::clone(service), Arc::clone(stop));
            move || {
                let _counted = counted;
                // Dropped before it: when none is counted, nothing of the service is in use here.
                let (service, stop, connection) = (service, stop, Arc::new(connection));
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

/// Reads the hello before it refuses: closing with a message unread would take the answer from the other side.
fn turn_away(
    service: &Service,
    connection: OwnedFd,
    turned_away: &Arc<Connections>,
    refused: Refused,
    user: u32,
) {
    service.refuses(user, &refused.1);
    let Ok(counted) = turned_away.take(user) else {
        return;
    };
    let refuses = move || {
        let _counted: ConnectionPermit = counted;
        let refusal = hello_waits(&connection)
            .and_then(|()| receive(connection.as_fd()))
            .and_then(|_| refuse(&connection, refused));
        if let Err(error) = refusal {
            log::debug!("an executor does not get its refusal: {error}");
        }
    };
    if let Err(error) = thread("faro-refuse", refuses) {
        log::debug!("an executor gets no refusal: {error}");
    }
}
