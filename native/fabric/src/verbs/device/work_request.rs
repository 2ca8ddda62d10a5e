//! What a queue pair is asked to do, and how several such requests become a chain for one call.

use super::error::VerbsError;
use super::sys::{
    ibv_recv_wr, ibv_send_wr, ibv_sge, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
};
use crate::MAX_PARTS;
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

/// Places in registered memory, in the order of their bytes; at most as many as the queue pair has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryPieces {
    pieces: [ibv_sge; MAX_PARTS],
    used: usize,
}

impl MemoryPieces {
    /// Returns one place.
    pub(crate) fn one(address: u64, length: u32, lkey: u32) -> Self {
        let mut one = Self::default();
        one.add(address, length, lkey);
        one
    }

    /// Adds a place. No bytes, no piece: some devices refuse a piece of nothing.
    pub(crate) fn add(&mut self, address: u64, length: u32, lkey: u32) {
        debug_assert!(self.used < MAX_PARTS);
        if let Some(piece) = self.pieces.get_mut(self.used).filter(|_| length > 0) {
            *piece = ibv_sge {
                addr: address,
                length,
                lkey,
            };
            self.used += 1;
        }
    }
}

/// A request of this side. The memory stays as it is until its completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkRequest {
    pub(crate) id: u64,
    pub(crate) operation: WorkOperation,
    pub(crate) memory: MemoryPieces,
    /// Its success makes a completion, which stands for all before it; its failure always does.
    pub(crate) signaled: bool,
    /// The bytes are copied at once; at most `inline_bytes`.
    pub(crate) inline: bool,
}

/// Memory for the peer's next SEND.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveRequest {
    pub(crate) id: u64,
    pub(crate) memory: MemoryPieces,
}

/// Not all requests were taken.
#[derive(Debug)]
pub(crate) struct PostError {
    pub(crate) source: io::Error,
}

/// A request as the library has it, of either direction.
pub(super) trait LinkedWorkRequest: FromZeros {
    type Request;

    /// Writes all but the place in the chain. It points to the request, whose memory is read when it is posted.
    fn fill(&mut self, request: &Self::Request);

    fn join(&mut self, next: *mut Self);
}

impl LinkedWorkRequest for ibv_send_wr {
    type Request = WorkRequest;

    fn fill(&mut self, request: &WorkRequest) {
        self.wr_id = request.id;
        self.num_sge = request.memory.used as c_int;
        self.sg_list = request.memory.pieces.as_ptr().cast_mut();
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

    fn join(&mut self, next: *mut Self) {
        self.next = next;
    }
}

impl LinkedWorkRequest for ibv_recv_wr {
    type Request = ReceiveRequest;

    fn fill(&mut self, request: &ReceiveRequest) {
        self.wr_id = request.id;
        self.num_sge = request.memory.used as c_int;
        self.sg_list = request.memory.pieces.as_ptr().cast_mut();
    }

    fn join(&mut self, next: *mut Self) {
        self.next = next;
    }
}

/// Calls `post` with chains of at most `CHAIN` requests that end in null, in the order of the requests, until
/// one is refused. A chain lives as long as the call. `post` returns what the library returned.
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
/// the rest of a chain.
fn post_chain<T: LinkedWorkRequest, const N: usize>(
    requests: &[T::Request],
    post: &mut impl FnMut(*mut T) -> c_int,
) -> Result<(), PostError> {
    let mut chain = <[T; N]>::new_zeroed();
    let mut count = 0;
    for (chained, request) in chain.iter_mut().zip(requests) {
        chained.fill(request);
        count += 1;
    }
    link(&mut chain[..count]);
    match VerbsError::check("post", post(chain.as_mut_ptr())) {
        Ok(()) => Ok(()),
        Err(VerbsError::Call { source, .. }) => Err(PostError { source }),
        Err(other) => Err(PostError {
            source: io::Error::other(other),
        }),
    }
}

/// Makes a chain of an array.
fn link<T: LinkedWorkRequest>(chain: &mut [T]) {
    let mut next = ptr::null_mut();
    for request in chain.iter_mut().rev() {
        request.join(next);
        next = request;
    }
}
