//! The addresses of the host's network interfaces.

use super::selection::Subnet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The interfaces with their addresses; an interface may have several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostAddresses(Vec<InterfaceAddress>);

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
struct InterfaceAddress {
    interface: String,
    ip: IpAddr,
    network: Subnet,
}

impl HostAddresses {
    /// Returns the addresses in this process's network namespace; of a tree of files, those that its
    /// file `addresses` lists as `ip -o address` does.
    pub(crate) fn of(root: &Path) -> Self {
        if root == Path::new("/") {
            return Self::of_this_host().unwrap_or_else(|error| {
                log::warn!("verbs: cannot list the addresses of this host: {error}");
                Self::default()
            });
        }
        Self::parse(&fs::read_to_string(root.join("addresses")).unwrap_or_default())
    }

    /// Returns the interface that has an address.
    pub(crate) fn interface_of(&self, address: IpAddr) -> Option<&str> {
        Some(&self.find(address)?.interface)
    }

    /// Returns the network of an address, as its interface has it.
    pub(crate) fn network_of(&self, address: IpAddr) -> Option<Subnet> {
        Some(self.find(address)?.network)
    }

    fn find(&self, address: IpAddr) -> Option<&InterfaceAddress> {
        self.0.iter().find(|one| one.ip == address)
    }

    /// Returns the addresses of an interface.
    pub(crate) fn of_interface<'a>(&'a self, name: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
        let of = move |one: &InterfaceAddress| (one.interface == name).then_some(one.ip);
        self.0.iter().filter_map(of)
    }

    /// Reads lines as `2: ib0    inet 192.168.7.5/24 brd ...`.
    fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let interface = words.next()?.to_owned();
            let (ip, prefix) = words.nth(1)?.split_once('/')?;
            let ip = ip.parse().ok()?;
            let network = Subnet::around(ip, prefix.parse().ok()?);
            Some(InterfaceAddress {
                interface,
                ip,
                network,
            })
        };
        Self(text.lines().filter_map(entry).collect())
    }

    fn of_this_host() -> io::Result<Self> {
        let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
        // SAFETY: `first` is writable.
        if unsafe { libc::getifaddrs(&mut first) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut found = Vec::new();
        let mut next = first;
        while !next.is_null() {
            // SAFETY: an entry of the list, which is freed below.
            let entry = unsafe { &*next };
            // SAFETY: both are null or as long as their family says.
            let (address, mask) = unsafe { (ip(entry.ifa_addr), ip(entry.ifa_netmask)) };
            let prefix = mask.map_or(u8::MAX, leading_ones);
            if let Some(ip) = address {
                // SAFETY: every entry has a name that ends in NUL and lives as long as the list.
                let name = unsafe { CStr::from_ptr(entry.ifa_name) };
                found.push(InterfaceAddress {
                    interface: name.to_string_lossy().into_owned(),
                    ip,
                    network: Subnet::around(ip, prefix),
                });
            }
            next = entry.ifa_next;
        }
        // SAFETY: got above, freed once.
        unsafe { libc::freeifaddrs(first) };
        Ok(Self(found))
    }
}

/// Returns the length of the prefix that a mask stands for.
fn leading_ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    };
    ones as u8
}

/// Returns the address, if it is one of IP.
///
/// # Safety
/// `address` is null or points to a socket address of its family's length.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null; every family begins with its number.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: of this family, so of this type; it may be unaligned to no more than this.
            let found = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(found.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let found = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(found.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_interface() {
        let found = HostAddresses::of(Path::new("/"));
        let loopback = Ipv4Addr::LOCALHOST.into();
        assert_eq!(found.interface_of(loopback), Some("lo"), "{found:?}");
        assert!(found.of_interface("lo").any(|ip| ip == loopback));
        let network = found.network_of(loopback).unwrap();
        assert!(network.contains(Ipv4Addr::new(127, 9, 9, 9).into()));
        assert!(!network.contains(Ipv4Addr::new(128, 0, 0, 1).into()));
    }

    #[test]
    fn what_ip_prints_is_read() {
        let found = HostAddresses::parse(
            "2: ib0    inet 192.168.7.5/24 brd 192.168.7.255 scope global ib0\\ valid_lft forever\n\
             2: ib0    inet6 fd00::5/64 scope global\nnonsense\n",
        );
        let (v4, v6) = (
            Ipv4Addr::new(192, 168, 7, 5).into(),
            "fd00::5".parse().unwrap(),
        );
        assert_eq!(found.interface_of(v4), Some("ib0"));
        assert_eq!(found.of_interface("ib0").collect::<Vec<_>>(), [v4, v6]);
        assert_eq!(found.of_interface("eth0").count(), 0);
    }
}
