//! What a queue pair is asked to do, and how several such requests become a chain for one call.

use super::error::VerbsError;
use super::sys::{
    ibv_recv_wr, ibv_send_wr, ibv_sge, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
};
use std::ffi::{c_int, c_uint};
use std::io;
use std::ptr;
use zerocopy::FromZeros;

/// Requests handed over in one call.
const CHAIN: usize = 32;

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkOperation {
    Send,
    Write {
        address: u64,
        rkey: u32,
        /// In host order.
        immediate: Option<u32>,
    },
    Read {
        address: u64,
        rkey: u32,
    },
}

/// A request of this side. The memory stays as it is until its completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkRequest {
    pub(crate) id: u64,
    pub(crate) operation: WorkOperation,
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
    /// Its success makes a completion, which stands for all before it; its failure always does.
    pub(crate) signaled: bool,
    /// The bytes are copied at once; at most `inline_bytes`.
    pub(crate) inline: bool,
}

/// Memory for the peer's next SEND.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveRequest {
    pub(crate) id: u64,
    pub(crate) address: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// Not all requests were taken.
#[derive(Debug)]
pub(crate) struct PostError {
    pub(crate) source: io::Error,
}

/// A request as the library has it, of either direction.
pub(super) trait LinkedWorkRequest: FromZeros {
    type Request;

    /// Writes all but the place in the chain, and the request's memory into `piece`.
    fn fill(&mut self, piece: &mut ibv_sge, request: &Self::Request);

    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge);
}

impl LinkedWorkRequest for ibv_send_wr {
    type Request = WorkRequest;

    fn fill(&mut self, piece: &mut ibv_sge, request: &WorkRequest) {
        *piece = memory(request.address, request.length, request.lkey);
        self.wr_id = request.id;
        // No bytes, no piece: some devices refuse a piece of nothing.
        self.num_sge = c_int::from(request.length > 0);
        let flag = |set: bool, flag: c_uint| if set { flag } else { 0 };
        self.send_flags =
            flag(request.signaled, IBV_SEND_SIGNALED) | flag(request.inline, IBV_SEND_INLINE);
        match request.operation {
            WorkOperation::Send => self.opcode = IBV_WR_SEND,
            WorkOperation::Write {
                address,
                rkey,
                immediate,
            } => {
                self.opcode = match immediate {
                    Some(_) => IBV_WR_RDMA_WRITE_WITH_IMM,
                    None => IBV_WR_RDMA_WRITE,
                };
                self.imm_data = immediate.unwrap_or(0).to_be();
                self.remote_addr = address;
                self.rkey = rkey;
            }
            WorkOperation::Read { address, rkey } => {
                self.opcode = IBV_WR_RDMA_READ;
                self.remote_addr = address;
                self.rkey = rkey;
            }
        }
    }

    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge) {
        (self.next, self.sg_list) = (next, piece);
    }
}

impl LinkedWorkRequest for ibv_recv_wr {
    type Request = ReceiveRequest;

    fn fill(&mut self, piece: &mut ibv_sge, request: &ReceiveRequest) {
        *piece = memory(request.address, request.length, request.lkey);
        self.wr_id = request.id;
        self.num_sge = 1;
    }

    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge) {
        (self.next, self.sg_list) = (next, piece);
    }
}

/// Returns the piece of registered memory that a request names.
fn memory(address: u64, length: u32, lkey: u32) -> ibv_sge {
    ibv_sge {
        addr: address,
        length,
        lkey,
    }
}

/// Calls `post` with chains of at most `CHAIN` requests that end in null, in the order of the requests, until
/// one is refused. A chain and its pieces of memory live as long as the call. `post` returns what the
/// library returned.
///
/// # Errors
/// What was returned, if it is not 0.
pub(super) fn post_in_chains<T: LinkedWorkRequest>(
    requests: &[T::Request],
    mut post: impl FnMut(*mut T) -> c_int,
) -> Result<(), PostError> {
    for requests in requests.chunks(CHAIN) {
        match requests.len() {
            1 => post_chain::<T, 1>(requests, &mut post),
            _ => post_chain::<T, CHAIN>(requests, &mut post),
        }?;
    }
    Ok(())
}

/// Posts at most `N` requests in one call. A single request has its own size, which saves clearing
/// 4 KiB.
fn post_chain<T: LinkedWorkRequest, const N: usize>(
    requests: &[T::Request],
    post: &mut impl FnMut(*mut T) -> c_int,
) -> Result<(), PostError> {
    let mut chain = <[T; N]>::new_zeroed();
    let mut pieces = <[ibv_sge; N]>::new_zeroed();
    let mut count = 0;
    for ((chained, piece), request) in chain.iter_mut().zip(&mut pieces).zip(requests) {
        chained.fill(piece, request);
        count += 1;
    }
    link(&mut chain[..count], &mut pieces[..count]);
    match VerbsError::check("post", post(chain.as_mut_ptr())) {
        Ok(()) => Ok(()),
        Err(VerbsError::Call { source, .. }) => Err(PostError { source }),
        Err(other) => Err(PostError {
            source: io::Error::other(other),
        }),
    }
}

/// Makes a chain of an array, each request with its piece of memory.
fn link<T: LinkedWorkRequest>(chain: &mut [T], pieces: &mut [ibv_sge]) {
    let mut next = ptr::null_mut();
    for (request, piece) in chain.iter_mut().zip(pieces).rev() {
        request.join(next, piece);
        next = request;
    }
}
