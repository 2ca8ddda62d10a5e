//! An executor's side: registers its application, and hands map outputs over.

use crate::message::{Hello, MessageError, Refusal, Reply, Request, VERSIONS};
use crate::options::SOCKET;
use crate::socket::{receive, send, SocketError};
use faro_endpoint::LoanError;
use faro_fabric::peer_user;
use faro_sync::{lock, try_lock};
use faro_wire::OutputId;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use thiserror::Error;

/// Why the service did not do what was asked.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("no service at {}: {source}", path.display())]
    Absent { path: PathBuf, source: io::Error },
    #[error("the service at {} is of user {user}, neither root nor this executor's", path.display())]
    Foreign { path: PathBuf, user: u32 },
    #[error("the connection to the service has failed: {0}")]
    Socket(#[from] SocketError),
    #[error("the service said what no service of this version says: {0}")]
    Message(#[from] MessageError),
    #[error("the service answered another question")]
    Unexpected,
    #[error("the service refused ({why:?}): {text}")]
    Refused { why: Refusal, text: String },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the service lent what is no map output: {0}")]
    Loan(#[from] LoanError),
    #[error("the connection to the service was lost before")]
    Lost,
}

impl ClientError {
    /// The connection is of no use any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            // The whole answer was received; what came with it was closed.
            Self::Socket(SocketError::TooManyDescriptors { .. }) => false,
            Self::Absent { .. }
            | Self::Foreign { .. }
            | Self::Socket(_)
            | Self::Message(_)
            | Self::Unexpected
            | Self::Lost => true,
            Self::Refused { why, .. } => matches!(why, Refusal::Message | Refusal::Ended),
            Self::File { .. } | Self::Loan(_) => false,
        }
    }
}

/// A registered executor. One message is under way at a time.
#[derive(Debug)]
pub struct Client {
    /// `None`: lost.
    socket: Mutex<Option<OwnedFd>>,
    card: Vec<u8>,
}

impl Client {
    /// Connects to the service whose socket is in that directory. Each message has `timeout`.
    ///
    /// # Errors
    /// There is none, it is somebody else's, or it refuses.
    pub fn connect(directory: &Path, hello: Hello, timeout: Duration) -> Result<Self, ClientError> {
        let (socket, user) = open(directory, timeout)?;
        // The hello has secrets, and another user may have made a socket of that name first.
        if user != 0 && user != geteuid().as_raw() {
            return Err(ClientError::Foreign {
                path: directory.join(SOCKET),
                user,
            });
        }
        match ask(&socket, &Request::Hello(hello, VERSIONS.spoken()), &[])? {
            Reply::Welcome { card, .. } => Ok(Self {
                socket: Mutex::new(Some(socket)),
                card,
            }),
            Reply::Refused { why, text } => Err(ClientError::Refused { why, text }),
            Reply::Done | Reply::Behind(_) | Reply::Lent(_) => Err(ClientError::Unexpected),
        }
    }

    /// The card of the service's endpoint for this application.
    #[must_use]
    pub fn card(&self) -> &[u8] {
        &self.card
    }

    /// Returns whether the service holds its end of the connection. Never waits: a message that is
    /// under way finds out by itself.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        let Some(held) = try_lock(&self.socket) else {
            return true;
        };
        held.as_ref().is_some_and(|socket| {
            let mut ends = [PollFd::new(socket, PollFlags::RDHUP)];
            match poll(&mut ends, Some(&Timespec::default())) {
                Ok(_) => ends[0].revents().is_empty(),
                // Interrupted: the next question tells.
                Err(_) => true,
            }
        })
    }

    /// Hands a committed map output over. Without a data file all its partitions are empty.
    ///
    /// # Errors
    /// The service does not have it then.
    pub fn hand_over(&self, id: OutputId, index: &Path, data: &Path) -> Result<(), ClientError> {
        let of = |path: &Path, source| ClientError::File {
            path: path.to_owned(),
            source,
        };
        let index_file = File::open(index).map_err(|e| of(index, e))?;
        let data_file = match File::open(data) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(of(data, error)),
        };
        let has_data = data_file.is_some();
        let files = [Some(&index_file), data_file.as_ref()];
        let files: Vec<BorrowedFd<'_>> = files.into_iter().flatten().map(AsFd::as_fd).collect();
        self.tell(&Request::Output { id, has_data }, &files)
    }

    /// A shuffle was removed.
    ///
    /// # Errors
    /// The service has not confirmed it.
    pub fn forget(&self, shuffle: u32) -> Result<(), ClientError> {
        self.tell(&Request::Forget { shuffle }, &[])
    }

    /// Service `at` of the application's `of` services has that card; each output is to have `replicas` copies.
    ///
    /// # Errors
    /// The service has not confirmed it.
    pub fn host(&self, replicas: u8, at: u32, of: u32, card: &[u8]) -> Result<(), ClientError> {
        let card = card.to_owned();
        let host = Request::Host {
            replicas,
            at,
            of,
            card,
        };
        self.tell(&host, &[])
    }

    /// The application has ended.
    ///
    /// # Errors
    /// The service has not confirmed it.
    pub fn end(&self) -> Result<(), ClientError> {
        self.tell(&Request::End, &[])
    }

    /// Copies of the application's outputs of this host that other services do not have yet.
    ///
    /// # Errors
    /// The service does not say.
    pub fn behind(&self) -> Result<u64, ClientError> {
        self.exchange(&Request::Behind, &[], |reply| match reply {
            Reply::Behind(copies) => Some(copies),
            Reply::Done | Reply::Refused { .. } | Reply::Welcome { .. } | Reply::Lent(_) => None,
        })
    }

    fn tell(&self, request: &Request, files: &[BorrowedFd<'_>]) -> Result<(), ClientError> {
        self.exchange(request, files, |reply| match reply {
            Reply::Done => Some(()),
            Reply::Behind(_) | Reply::Refused { .. } | Reply::Welcome { .. } | Reply::Lent(_) => {
                None
            }
        })
    }

    /// `expected` takes the answer that the request may have.
    fn exchange<T>(
        &self,
        request: &Request,
        files: &[BorrowedFd<'_>],
        expected: impl FnOnce(Reply) -> Option<T>,
    ) -> Result<T, ClientError> {
        self.on_connection(|socket| match ask(socket, request, files)? {
            Reply::Refused { why, text } => Err(ClientError::Refused { why, text }),
            reply => expected(reply).ok_or(ClientError::Unexpected),
        })
    }

    /// Does it while no other message is under way.
    pub(crate) fn on_connection<T>(
        &self,
        exchange: impl FnOnce(&OwnedFd) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut held = lock(&self.socket);
        let socket = held.as_ref().ok_or(ClientError::Lost)?;
        let outcome = exchange(socket);
        if outcome.as_ref().is_err_and(ClientError::is_lost) {
            // An answer that came late would be taken for the next one's.
            *held = None;
        }
        outcome
    }
}

/// Connects to the service whose socket is in that directory. Returns the connection, on which each message and each
/// answer has `timeout`, and the user that the service runs as.
pub(crate) fn open(directory: &Path, timeout: Duration) -> Result<(OwnedFd, u32), ClientError> {
    let path = directory.join(SOCKET);
    let socket =
        connected(&path, timeout).map_err(|source| ClientError::Absent { path, source })?;
    let user = peer_user(&socket).map_err(SocketError::Io)?;
    Ok((socket, user))
}

fn connected(path: &Path, timeout: Duration) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(timeout))?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

fn ask(
    socket: &OwnedFd,
    request: &Request,
    files: &[BorrowedFd<'_>],
) -> Result<Reply, ClientError> {
    send(socket.as_fd(), &request.encode(), files)?;
    let received = receive(socket.as_fd())?;
    Ok(Reply::decode(&received.bytes)?)
}
