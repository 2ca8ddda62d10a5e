//! Addresses, sockets and their options.
//!
//! Between hosts, socket buffers are left to the kernel's autotuning: a fixed size switches it off
//! and is cut at `net.core.?mem_max`, which is mostly below what autotuning reaches. Within a host
//! there is no bandwidth-delay product to fill, and every byte in flight beyond the L2 cache is
//! written to and read from memory once more; there the send buffer is small. Measured with
//! `benches/throughput.rs` (256 KiB writes over loopback, 2 MiB of L2): 0.15 instead
//! of 0.36 to 0.44 ms of CPU per MB.

use crate::reactor::listener::{AcceptedSocket, ListenSocket};
use crate::reactor::unauthenticated::Origin;
use crate::session::socket::{self, Socket};
use crate::FabricError;
use mio::net::{TcpListener, TcpStream};
use rustix::net::SendFlags;
use socket2::{Domain, Protocol, SockRef, Type};
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::net::{IpAddr, Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Number of connections that the kernel completes before they are accepted (at most
/// `net.core.somaxconn`).
const BACKLOG: i32 = 1_024;
/// Send buffer towards a peer on this host; the kernel doubles it for its own overhead.
const LOCAL_SEND_BYTES: usize = 256 << 10;
/// A connection without traffic is probed after this time ...
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// ... and then at this interval, the kernel's default number of times.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum time for which sent bytes may stay unacknowledged before the connection ends. Without it
/// the kernel keeps sending to a host that has vanished for a quarter of an hour.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Listens, and says where peers find the listener.
pub(crate) fn listen(
    bind: SocketAddr,
    advertise: &str,
) -> Result<(TcpListener, SocketAddr), FabricError> {
    let failed = |source| FabricError::Io {
        what: format!("listening on {bind}"),
        source,
    };
    let listener = listener(bind).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let host = match (advertise, bound.ip()) {
        ("", ip) if ip.is_unspecified() => {
            return Err(bad("", "a wildcard bind needs a host to advertise"));
        }
        ("", ip) => ip,
        (host, ip) => resolve(host, ip)?,
    };
    Ok((listener, SocketAddr::new(host, bound.port())))
}

fn bad(location: &str, detail: &str) -> FabricError {
    FabricError::BadLocation {
        fabric: "tcp",
        location: location.to_owned(),
        detail: detail.to_owned(),
    }
}

/// An IP literal (with or without brackets) or a host name, as an address to advertise; of the
/// family that is bound if there is a choice. Blocks in the resolver: for set-up, never for a
/// progress thread.
///
/// # Errors
/// `BadLocation` if the name does not resolve.
pub fn resolve(host: &str, bind: IpAddr) -> Result<IpAddr, FabricError> {
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = literal.parse() {
        return Ok(ip);
    }
    let found: Vec<IpAddr> = (host, 0)
        .to_socket_addrs()
        .map_err(|error| bad(host, &error.to_string()))?
        .map(|address| address.ip())
        .collect();
    found
        .iter()
        .find(|ip| ip.is_ipv4() == bind.is_ipv4())
        .or(found.first())
        .copied()
        .ok_or_else(|| bad(host, "the name has no address"))
}

/// Parses a card's location: IP literal (IPv6 in brackets) and port.
pub(crate) fn parse(location: &str) -> Result<SocketAddr, FabricError> {
    location
        .parse()
        .map_err(|_| bad(location, "expected an IP literal and a port"))
}

fn listener(bind: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        Domain::for_address(bind),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.bind(&bind.into())?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Starts to connect.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    tune(&stream, address.ip())?;
    Ok(stream)
}

fn tune(stream: &TcpStream, peer: IpAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = socket2::TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    // Each end has the same address only if both are on one host.
    if stream.local_addr()?.ip().to_canonical() == peer.to_canonical() {
        socket.set_send_buffer_size(LOCAL_SEND_BYTES)?;
    }
    Ok(())
}

impl ListenSocket for TcpListener {
    type Socket = TcpStream;

    fn accept(&self) -> io::Result<AcceptedSocket<TcpStream>> {
        let (stream, from) = Self::accept(self)?;
        // Fails only if the connection has ended already; the next receive reports that.
        if let Err(error) = tune(&stream, from.ip()) {
            log::debug!("socket options of a connection from {from}: {error}");
        }
        Ok(AcceptedSocket::Taken(stream, Origin::of(from.ip())))
    }
}

impl Socket for TcpStream {
    const SHORT_MEANS_DRAINED: bool = true;

    fn receive(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_vectored(slices)
    }

    fn send(
        &mut self,
        slices: &[IoSlice<'_>],
        _descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<usize> {
        socket::gather(self.as_fd(), slices, SendFlags::empty())
    }

    fn send_before_pipe(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        // Otherwise the head of each write would be a packet of its own.
        socket::gather(self.as_fd(), slices, SendFlags::MORE)
    }

    fn connect_finished(&self) -> io::Result<bool> {
        socket::connect_state(self.take_error(), self.peer_addr().map(drop))
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        TcpStream::shutdown(self, how)
    }
}
