//! Identity of this host, and the form of a location.
//!
//! `<boot id>.<network namespace>/<socket name>`: abstract Unix sockets live in a network
//! namespace of a running kernel, so the two together are what "same host" means here, whatever
//! host names and containers say. The name has a random part; nothing is left in a file system.

use super::socket::ShmSocket;
use crate::FabricError;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

/// Prefix of the names of Faro's sockets.
pub(super) const NAME: &str = "faro-";
/// Hex digits after it.
const NAME_DIGITS: usize = 32;

/// Names the running kernel and the network namespace: processes with the same can reach each
/// other.
///
/// # Errors
/// `Io` if `/proc` cannot be read.
pub fn host_identity() -> Result<String, FabricError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        |source| FabricError::Io { what, source }
    };
    let path = "/proc/sys/kernel/random/boot_id";
    let boot = std::fs::read_to_string(path).map_err(failed(path))?;
    let path = "/proc/self/ns/net";
    let namespace = rustix::fs::stat(path)
        .map_err(io::Error::from)
        .map_err(failed(path))?;
    Ok(format!("{}.{}", boot.trim(), namespace.st_ino))
}

/// Returns whether both locations are of one host (and network namespace); false if one is no
/// location.
#[must_use]
pub fn same_host(one: &str, other: &str) -> bool {
    let host = |location: &str| location.split_once('/').map(|(host, _)| host.to_owned());
    host(one).is_some_and(|host_of_one| host(other) == Some(host_of_one))
}

/// Starts to connect to a location of this host; an error of the call if it is no location or
/// another host's.
pub(super) fn connect(host: &str, location: &str) -> Result<io::Result<ShmSocket>, FabricError> {
    let bad = |detail: String| FabricError::BadLocation {
        fabric: "shm",
        location: location.to_owned(),
        detail,
    };
    let form = || bad("expected <boot id>.<network namespace>/<socket name>".to_owned());
    let (peer_host, name) = location.split_once('/').ok_or_else(form)?;
    let digits = name.strip_prefix(NAME).ok_or_else(form)?;
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if digits.len() != NAME_DIGITS || !digits.chars().all(is_hex) {
        return Err(form());
    }
    if peer_host != host {
        return Err(bad(format!(
            "it belongs to another host or network namespace; this one is {host}"
        )));
    }
    Ok(SocketAddr::from_abstract_name(name).and_then(|address| ShmSocket::connect(&address)))
}
