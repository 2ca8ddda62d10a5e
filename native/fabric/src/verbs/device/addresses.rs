//! The addresses of the host's network interfaces.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The interfaces with their addresses; an interface may have several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostAddresses(Vec<(String, IpAddr)>);

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
        let mut all = self.0.iter();
        let found = all.find(|(_, ip)| *ip == address)?;
        Some(&found.0)
    }

    /// Returns the addresses of an interface.
    pub(crate) fn of_interface<'a>(&'a self, name: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
        let of = move |(interface, ip): &(String, IpAddr)| (interface == name).then_some(*ip);
        self.0.iter().filter_map(of)
    }

    /// Reads lines as `2: ib0    inet 192.168.7.5/24 brd ...`.
    fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let name = words.next()?;
            let address = words.nth(1)?.split('/').next()?;
            Some((name.to_owned(), address.parse().ok()?))
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
            // SAFETY: the entry's address is null or as long as its family says.
            if let Some(address) = unsafe { ip(entry.ifa_addr) } {
                // SAFETY: every entry has a name that ends in NUL and lives as long as the list.
                let name = unsafe { CStr::from_ptr(entry.ifa_name) };
                found.push((name.to_string_lossy().into_owned(), address));
            }
            next = entry.ifa_next;
        }
        // SAFETY: got above, freed once.
        unsafe { libc::freeifaddrs(first) };
        Ok(Self(found))
    }
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
