//! The Unix socket: bytes, descriptors and the peer's credentials.

use crate::peer_user;
use crate::reactor::listener::{AcceptedSocket, ListenSocket};
use crate::reactor::unauthenticated::Origin;
use crate::session::socket::{self, Socket};
use mio::event::Source;
use mio::net::{UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;

/// Descriptors one receive can take; a frame carries one, and the kernel ends a receive there.
const DESCRIPTORS: usize = 4;

/// A connection, and descriptors that came beside its bytes.
pub(crate) struct ShmSocket {
    stream: UnixStream,
    /// In the order of the frames they belong to.
    pub(super) received: Vec<OwnedFd>,
}

impl ShmSocket {
    /// Connects; a Unix socket connects at once or fails.
    pub(super) fn connect(address: &SocketAddr) -> io::Result<Self> {
        Self::checked(UnixStream::connect_addr(address)?)
    }

    /// Refuses a peer of another user.
    fn checked(stream: UnixStream) -> io::Result<Self> {
        let peer_uid = peer_user(&stream)?;
        let own_uid = rustix::process::geteuid().as_raw();
        if peer_uid != own_uid {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the peer runs as user {peer_uid}, this process as user {own_uid}"),
            ));
        }
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }
}

impl ListenSocket for UnixListener {
    type Socket = ShmSocket;

    fn accept(&self) -> io::Result<AcceptedSocket<ShmSocket>> {
        let (stream, _) = Self::accept(self)?;
        Ok(match ShmSocket::checked(stream) {
            Ok(socket) => AcceptedSocket::Taken(socket, Origin::HERE),
            Err(error) => AcceptedSocket::Refused(error),
        })
    }
}

impl Socket for ShmSocket {
    const SHORT_MEANS_DRAINED: bool = false;

    fn receive(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = rustix::net::recvmsg(&self.stream, slices, &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.received.extend(descriptors);
            }
        }
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(io::Error::other(
                "more file descriptors in one receive than frames carry",
            ));
        }
        Ok(received.bytes)
    }

    fn send(
        &mut self,
        slices: &[IoSlice<'_>],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<usize> {
        let Some(descriptor) = descriptor else {
            return socket::gather(self.stream.as_fd(), slices, SendFlags::empty());
        };
        let descriptors = [descriptor];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("no room for a descriptor"));
        }
        Ok(rustix::net::sendmsg(
            &self.stream,
            slices,
            &mut control,
            SendFlags::NOSIGNAL,
        )?)
    }

    fn connect_finished(&self) -> io::Result<bool> {
        socket::connect_state(self.stream.take_error(), self.stream.peer_addr().map(drop))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.stream.shutdown(how)
    }
}

impl AsFd for ShmSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Source for ShmSocket {
    fn register(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.stream.register(registry, token, what)
    }
    fn reregister(&mut self, registry: &Registry, token: Token, what: Interest) -> io::Result<()> {
        self.stream.reregister(registry, token, what)
    }
    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.stream.deregister(registry)
    }
}
