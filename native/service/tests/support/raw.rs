//! Connections to a service by hand, for executors that do not keep to the protocol.
#![allow(clippy::unwrap_used, dead_code)] // Test code; each file of tests uses some.

use crate::executors::hello;
use crate::host::Host;
use faro_service::{receive, send, Reply, Request, SOCKET, VERSIONS};
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::{AsFd, OwnedFd};

/// A connection by hand.
pub fn connection(host: &Host) -> OwnedFd {
    let path = host.dir.path().join("socket").join(SOCKET);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    socket
}

/// The connection of an executor of that application.
pub fn registered(host: &Host, application: u8) -> OwnedFd {
    let socket = connection(host);
    let request = Request::Hello(hello(application), VERSIONS);
    send(socket.as_fd(), &request.encode(), &[]).unwrap();
    assert!(matches!(answer(&socket), Reply::Welcome { .. }));
    socket
}

pub fn answer(socket: &OwnedFd) -> Reply {
    Reply::decode(&receive(socket.as_fd()).unwrap().bytes).unwrap()
}

pub fn ask(socket: &OwnedFd, request: &Request, files: &[&OwnedFd]) -> Reply {
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    send(socket.as_fd(), &request.encode(), &files).unwrap();
    answer(socket)
}
