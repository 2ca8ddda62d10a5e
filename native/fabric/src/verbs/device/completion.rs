//! Completion queues, and the channel on which they wake a thread.

use super::context::Device;
use super::error::VerbsError;
use super::open::make_non_blocking;
use super::sys::{
    ibv_comp_channel, ibv_cq, ibv_wc, PollCq, RequestNotify, IBV_WC_LOC_PROT_ERR, IBV_WC_RECV,
    IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR,
    IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR,
};
use std::ffi::{c_int, c_uint};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use zerocopy::FromZeros;

/// Completions taken in one call.
const BATCH: usize = 32;

/// Result of a work request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionStatus {
    Done,
    /// The queue pair went into error before it.
    Flushed,
    Failed {
        /// `ibv_wc_status_str`, and what it means for the connection.
        what: String,
        vendor: u32,
    },
}

/// Kind of a work request that is `Done` (devices leave it undefined for others).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompletionKind {
    /// A request of this side: SEND, WRITE or READ.
    Sent,
    /// A SEND of the peer's is in the receive request's memory.
    Received,
    /// A write of the peer's is in memory; its immediate, in host order.
    ReceivedImmediate(u32),
}

/// A work request that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkCompletion {
    /// The id with which the request was posted.
    pub(crate) id: u64,
    pub(crate) status: CompletionStatus,
    pub(crate) kind: CompletionKind,
    /// Number of bytes that were received or written, if `Done`.
    pub(crate) bytes: u32,
}

/// Wakes the thread that waits for any of its completion queues.
pub(crate) struct Channel {
    channel: NonNull<ibv_comp_channel>,
    device: Arc<Device>,
}

// SAFETY: as for `Device`.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl Channel {
    /// # Errors
    /// `Call`.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Arc<Self>, VerbsError> {
        // SAFETY: the context is open as long as the device.
        let channel = unsafe { (device.symbols.create_comp_channel)(device.context.as_ptr()) };
        let Some(channel) = NonNull::new(channel) else {
            return Err(VerbsError::last("ibv_create_comp_channel"));
        };
        let channel = Self {
            channel,
            device: Arc::clone(device),
        };
        make_non_blocking(channel.fd())?;
        Ok(Arc::new(channel))
    }

    /// Returns a descriptor that is readable after an armed queue got a completion.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the channel lives as long as `self`, and its descriptor with it.
        unsafe { BorrowedFd::borrow_raw((*self.channel.as_ptr()).fd) }
    }

    /// Takes and acknowledges all wake-ups that are there: how many.
    pub(crate) fn drain(&self) -> usize {
        let symbols = self.device.symbols;
        let mut count = 0;
        let (mut queue, mut cookie) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the channel lives; both results are writable; the descriptor does not block.
        while unsafe { (symbols.get_cq_event)(self.channel.as_ptr(), &mut queue, &mut cookie) == 0 }
        {
            // SAFETY: got just now, acknowledged once; without this its destroy would wait for ever.
            unsafe { (symbols.ack_cq_events)(queue, 1) };
            count += 1;
        }
        count
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: owned by this value; every queue on it holds this value, so none is left.
        let code = unsafe { (self.device.symbols.destroy_comp_channel)(self.channel.as_ptr()) };
        if code != 0 {
            log::warn!("ibv_destroy_comp_channel: {code}");
        }
    }
}

/// A queue of completions. One thread polls it.
pub(crate) struct CompletionQueue {
    pub(super) queue: NonNull<ibv_cq>,
    /// The operations of `queue`'s context, which every provider fills in.
    poll: PollCq,
    request_notify: RequestNotify,
    device: Arc<Device>,
    /// Outlives `queue`, which `drop` destroys before any field goes.
    _channel: Arc<Channel>,
}

// SAFETY: as for `Device`.
unsafe impl Send for CompletionQueue {}
// SAFETY: as above; polling from two threads would be allowed too.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    /// # Errors
    /// `Call`.
    pub(crate) fn new(
        device: &Arc<Device>,
        channel: &Arc<Channel>,
        depth: u32,
    ) -> Result<Arc<Self>, VerbsError> {
        // SAFETY: the context is open as long as the device; its table of operations is constant.
        let operations = unsafe { &(*device.context.as_ptr()).ops };
        let (Some(poll), Some(request_notify)) = (operations.poll_cq, operations.req_notify_cq)
        else {
            return Err(VerbsError::Call {
                call: "the provider's poll_cq",
                source: io::ErrorKind::Unsupported.into(),
            });
        };
        // SAFETY: the context is open as long as the device; the number never changes.
        let vectors = unsafe { (*device.context.as_ptr()).num_comp_vectors };
        // SAFETY: context and channel live, as the value made here holds both.
        let queue = unsafe {
            (device.symbols.create_cq)(
                device.context.as_ptr(),
                depth.min(c_int::MAX as u32) as c_int,
                std::ptr::null_mut(),
                channel.channel.as_ptr(),
                vector(std::process::id(), vectors),
            )
        };
        let Some(queue) = NonNull::new(queue) else {
            return Err(VerbsError::last("ibv_create_cq"));
        };
        Ok(Arc::new(Self {
            queue,
            poll,
            request_notify,
            device: Arc::clone(device),
            _channel: Arc::clone(channel),
        }))
    }

    /// Completions that fit.
    pub(crate) fn depth(&self) -> u32 {
        // SAFETY: the queue lives; the field changes by resizing only, which this code never does.
        unsafe { (*self.queue.as_ptr()).cqe.max(0) as u32 }
    }

    /// Asks that the next completion wakes the channel.
    ///
    /// # Errors
    /// `Call`.
    pub(crate) fn arm(&self) -> Result<(), VerbsError> {
        // SAFETY: the queue lives.
        let code = unsafe { (self.request_notify)(self.queue.as_ptr(), 0) };
        VerbsError::check("ibv_req_notify_cq", code)
    }

    /// Appends the next completions, at most 32: how many.
    ///
    /// # Errors
    /// `Call`: the queue is broken.
    pub(crate) fn poll(&self, into: &mut Vec<WorkCompletion>) -> Result<usize, VerbsError> {
        // Cleared, because providers leave out the fields that an opcode does not have.
        let mut entries = <[ibv_wc; BATCH]>::new_zeroed();
        // SAFETY: the queue lives; the array has room for that many.
        let count =
            unsafe { (self.poll)(self.queue.as_ptr(), BATCH as c_int, entries.as_mut_ptr()) };
        let Ok(count) = usize::try_from(count) else {
            return Err(VerbsError::Call {
                call: "ibv_poll_cq",
                source: io::Error::other(format!("it returned {count}")),
            });
        };
        for entry in &entries[..count.min(BATCH)] {
            into.push(self.read(entry));
        }
        Ok(count)
    }

    fn read(&self, entry: &ibv_wc) -> WorkCompletion {
        let (status, kind) = match entry.status {
            IBV_WC_SUCCESS => {
                let kind = match entry.opcode {
                    IBV_WC_RECV => CompletionKind::Received,
                    // In network order, as the man page of ibv_poll_cq says.
                    IBV_WC_RECV_RDMA_WITH_IMM => {
                        CompletionKind::ReceivedImmediate(u32::from_be(entry.imm_data))
                    }
                    _ => CompletionKind::Sent,
                };
                (CompletionStatus::Done, kind)
            }
            IBV_WC_WR_FLUSH_ERR => (CompletionStatus::Flushed, CompletionKind::Sent),
            status => {
                let name = self.device.symbols.status_name(status);
                let what = match meaning(status) {
                    "" => name,
                    // The device's MTU says nothing of the switches on the way.
                    meaning if status == IBV_WC_RETRY_EXC_ERR => format!(
                        "{meaning} Does every switch carry packets of {} bytes and their headers? \
                         ({name})",
                        self.device.address().mtu_bytes()
                    ),
                    meaning => format!("{meaning} ({name})"),
                };
                let vendor = entry.vendor_err;
                (
                    CompletionStatus::Failed { what, vendor },
                    CompletionKind::Sent,
                )
            }
        };
        WorkCompletion {
            id: entry.wr_id,
            status,
            kind,
            bytes: entry.byte_len,
        }
    }
}

/// Returns the completion vector, that is the interrupt and its processor, of a process: another one
/// for each executor of a host.
fn vector(process: u32, vectors: c_int) -> c_int {
    (process % vectors.max(1) as u32) as c_int
}

fn meaning(status: c_uint) -> &'static str {
    match status {
        IBV_WC_RETRY_EXC_ERR => {
            "the peer acknowledged nothing within all retries; is it alive, and its link up?"
        }
        IBV_WC_RNR_RETRY_EXC_ERR => "the peer had no receive request within all retries",
        IBV_WC_REM_ACCESS_ERR => "the peer's device refused the address or key",
        IBV_WC_LOC_PROT_ERR => "our device refused the address or key",
        _ => "",
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: owned by this value; every queue pair on it holds this value, so none is left,
        // and all wake-ups were acknowledged as they were taken.
        let code = unsafe { (self.device.symbols.destroy_cq)(self.queue.as_ptr()) };
        if code != 0 {
            log::warn!("ibv_destroy_cq: {code}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::vector;

    #[test]
    fn processes_have_different_vectors() {
        assert_eq!(
            [7, 8, 9, 10].map(|process| vector(process, 4)),
            [3, 0, 1, 2]
        );
        assert_eq!([0, 1].map(|vectors| vector(7, vectors)), [0, 0]);
    }
}
