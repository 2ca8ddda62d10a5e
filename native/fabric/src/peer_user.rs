//! Finds the user at the other end of a Unix socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Returns the user id that the peer of a connected Unix socket had when it connected or listened,
/// from the kernel (`SO_PEERCRED`), as this process's user namespace sees it.
///
/// rustix is not used, because its credentials need a process id above zero. The kernel gives zero
/// for a peer in another PID namespace, such as another pod, and rustix then returns an error whose
/// number is the user id.
///
/// # Errors
/// Fails if the socket is not a connected Unix socket.
pub fn peer_user(socket: impl AsFd) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `peer` is writable for `bytes` bytes, which is its size, and both outlive the call.
    // The descriptor is open, because it is borrowed.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut peer).cast(),
            &raw mut bytes,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if bytes as usize != size_of::<libc::ucred>() || peer.uid == u32::MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(peer.uid)
}

#[cfg(test)]
mod tests {
    use super::peer_user;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_ends_are_of_this_user() {
        let (one, other) = UnixStream::pair().unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(
            (peer_user(&one).unwrap(), peer_user(&other).unwrap()),
            (own, own)
        );
    }

    #[test]
    fn a_socket_of_tcp_has_no_user() {
        peer_user(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap_err();
    }
}
