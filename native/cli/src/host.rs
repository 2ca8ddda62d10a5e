//! Names and addresses by which others reach this host.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// The address that an executor on this host announces, as Spark finds it: the one given, `SPARK_LOCAL_IP`, the
/// source address of the route to a peer, or the host name's address.
pub fn address(given: Option<IpAddr>, peer: Option<SocketAddr>) -> IpAddr {
    let set = || std::env::var("SPARK_LOCAL_IP").ok()?.parse().ok();
    // The address of the default route. Nothing is sent to TEST-NET-1 (RFC 5737).
    let outward = || source(SocketAddr::from(([192, 0, 2, 1], 9)));
    given
        .or_else(set)
        .or_else(|| source(peer?))
        .or_else(by_name)
        .or_else(outward)
        .unwrap_or(Ipv4Addr::LOCALHOST.into())
}

fn by_name() -> Option<IpAddr> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let addresses: Vec<SocketAddr> = (name.trim(), 0).to_socket_addrs().ok()?.collect();
    let mut others = addresses
        .iter()
        .map(SocketAddr::ip)
        .filter(|ip| !ip.is_loopback());
    others.next()
}

/// The source address of the route to `target`.
fn source(target: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match target {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}
