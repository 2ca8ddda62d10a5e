//! The queue of connections between the acceptor of a shared port and one endpoint's reactor.

use crate::reactor::listener::{AcceptedSocket, ListenSocket};
use crate::reactor::unauthenticated::Origin;
use crossbeam_channel::{bounded, Receiver, Sender};
use mio::event::Source;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

type ArrivedStream = (TcpStream, Origin);

/// Returns both ends of a queue of at most `bound` connections.
pub(super) fn queue(bound: usize) -> io::Result<(HandoffSender, Queue)> {
    let (sender, receiver) = bounded(bound);
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let bell = Arc::new(bell);
    let entrance = HandoffSender {
        sender,
        bell: Arc::clone(&bell),
    };
    Ok((entrance, Queue { receiver, bell }))
}

/// The end that the acceptor has. Only one thread sends.
pub(super) struct HandoffSender {
    sender: Sender<ArrivedStream>,
    bell: Arc<OwnedFd>,
}

impl HandoffSender {
    /// Returns the bound if the queue has reached it.
    pub(super) fn full(&self) -> Option<usize> {
        self.sender.capacity().filter(|_| self.sender.is_full())
    }

    /// Hands a connection over. It is closed if the other end is gone or the queue is full.
    pub(super) fn send(&self, socket: TcpStream, origin: Origin) {
        if self.sender.try_send((socket, origin)).is_err() {
            return;
        }
        // Each write is an edge for the reactor's epoll, so the number is never read. It would take
        // 2^64 connections until a write had to wait.
        if let Err(error) = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes()) {
            log::debug!("cannot tell a reactor of a connection: {error}");
        }
    }
}

/// The other end.
pub(super) struct Queue {
    receiver: Receiver<ArrivedStream>,
    bell: Arc<OwnedFd>,
}

/// The listener of an endpoint behind a shared port. `M` is dropped with it.
pub(crate) struct ArrivalQueue<M> {
    queue: Queue,
    _membership: M,
}

impl<M> ArrivalQueue<M> {
    pub(super) fn new(queue: Queue, membership: M) -> Self {
        Self {
            queue,
            _membership: membership,
        }
    }
}

impl<M: Send> ListenSocket for ArrivalQueue<M> {
    type Socket = TcpStream;

    fn accept(&self) -> io::Result<AcceptedSocket<TcpStream>> {
        match self.queue.receiver.try_recv() {
            Ok((socket, origin)) => Ok(AcceptedSocket::Taken(socket, origin)),
            Err(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl<M> Source for ArrivalQueue<M> {
    fn register(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        SourceFd(&self.queue.bell.as_raw_fd()).register(registry, token, what)
    }
    fn reregister(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        SourceFd(&self.queue.bell.as_raw_fd()).reregister(registry, token, what)
    }
    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        SourceFd(&self.queue.bell.as_raw_fd()).deregister(registry)
    }
}
