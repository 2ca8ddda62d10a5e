//! One message over a Unix socket, with descriptors beside it.
//!
//! Sockets are SEQPACKET: a message arrives whole or not at all, so no sender can stop in the middle of one.

use crate::message::{MAX_LEND_FILES, MAX_MESSAGE};
use rustix::io::Errno;
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use thiserror::Error;
use zeroize::Zeroizing;

/// Descriptors of a request: an index and a data file.
const MAX_DESCRIPTORS: usize = 2;
/// Descriptors of an answer: as many of each.
const MAX_LENT: usize = 2 * MAX_LEND_FILES;

/// The reason that there is no message.
#[derive(Debug, Error)]
pub enum SocketError {
    #[error("the other side has closed the connection")]
    Closed,
    #[error("nothing came in time")]
    TimedOut,
    #[error("a message of more than {MAX_MESSAGE} bytes")]
    TooLong,
    #[error("a message with more than {max} descriptors, or than this process has room for")]
    TooManyDescriptors { max: usize },
    #[error("more files are on their way to other processes than the kernel allows")]
    TooManyOnTheirWay,
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<Errno> for SocketError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN => Self::TimedOut,
            Errno::PIPE | Errno::CONNRESET => Self::Closed,
            Errno::TOOMANYREFS => Self::TooManyOnTheirWay,
            errno => Self::Io(errno.into()),
        }
    }
}

/// A message and its descriptors.
#[derive(Debug)]
pub struct ReceivedMessage {
    pub bytes: Zeroizing<Vec<u8>>,
    pub descriptors: Vec<OwnedFd>,
}

/// Sends a message within the socket's timeout.
///
/// # Errors
/// It is too long, the other side is gone, or takes no bytes.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), SocketError> {
    if bytes.len() > MAX_MESSAGE {
        return Err(SocketError::TooLong);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LENT))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(SocketError::TooManyDescriptors { max: MAX_LENT });
    }
    loop {
        match sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Receives a message within the socket's timeout. Descriptors of a message that is refused are closed.
///
/// # Errors
/// `Closed`, `TimedOut`, `TooLong`, `TooManyDescriptors`, `Io`.
pub fn receive(socket: BorrowedFd<'_>) -> Result<ReceivedMessage, SocketError> {
    // Room for one more, so that a third one is seen.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS + 1))];
    receive_into(socket, MAX_DESCRIPTORS, &mut space)
}

/// The same of an answer to LEND, which has more descriptors.
pub(crate) fn receive_lent(socket: BorrowedFd<'_>) -> Result<ReceivedMessage, SocketError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LENT + 1))];
    receive_into(socket, MAX_LENT, &mut space)
}

fn receive_into(
    socket: BorrowedFd<'_>,
    max: usize,
    space: &mut [MaybeUninit<u8>],
) -> Result<ReceivedMessage, SocketError> {
    let mut bytes = Zeroizing::new(vec![0; MAX_MESSAGE]);
    let mut control = RecvAncillaryBuffer::new(space);
    let message = loop {
        match recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(SocketError::TooLong);
    }
    if message.flags.contains(ReturnFlags::CTRUNC) || descriptors.len() > max {
        return Err(SocketError::TooManyDescriptors { max });
    }
    if message.bytes == 0 {
        // No message is empty; the end of the stream is.
        return Err(SocketError::Closed);
    }
    bytes.truncate(message.bytes);
    Ok(ReceivedMessage { bytes, descriptors })
}
