//! The sockets of connections, and the two system calls of the datapath.

use rustix::net::SendFlags;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

/// A non-blocking stream socket.
pub(crate) trait Socket: mio::event::Source + AsFd + Send {
    /// True if a short receive means that the kernel has no more. (File descriptors can cut a receive
    /// short.)
    const SHORT_MEANS_DRAINED: bool;
    /// Receives once into several slices; `Ok(0)` is the end of the stream.
    fn receive(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
    /// Sends several slices once, with a descriptor on the first byte if there is one.
    fn send(
        &mut self,
        slices: &[IoSlice<'_>],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<usize>;
    /// Sends several slices once, before bytes of a pipe.
    fn send_before_pipe(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(slices, None)
    }
    /// Returns whether a started connect is done; an error if it failed.
    fn connect_finished(&self) -> io::Result<bool>;
    /// Ends one or both directions.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

/// Calls `sendmsg` with several slices. Never raises SIGPIPE, because a peer that left must not end
/// the JVM.
pub(crate) fn gather(
    fd: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut control = rustix::net::SendAncillaryBuffer::default();
    Ok(rustix::net::sendmsg(
        fd,
        slices,
        &mut control,
        SendFlags::NOSIGNAL | flags,
    )?)
}

/// Returns whether a started connect is done, from the socket's pending error and its peer name.
pub(crate) fn connect_state(
    error: io::Result<Option<io::Error>>,
    connection: io::Result<()>,
) -> io::Result<bool> {
    if let Some(error) = error? {
        return Err(error);
    }
    match connection {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error)
            if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
