//! Reliable connected queue pairs.

use super::choice::VerbsOptions;
use super::completion::CompletionQueue;
use super::context::Device;
use super::error::VerbsError;
use super::sys::{
    ibv_gid, ibv_global_route, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_recv_wr, ibv_send_wr,
    ibv_sge, PostReceive, PostSend, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC,
    IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC,
    IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT,
    IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT,
    IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
};
use std::ffi::{c_int, c_uint};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use zerocopy::FromZeros;

/// Requests handed over in one call.
const CHAIN: usize = 32;
/// Bytes that small messages may have inline, if the device can.
const INLINE_BYTES: u32 = 64;
/// Code 12 of table 45 in the InfiniBand specification: 0.64 ms before a retry to a receiver that
/// is not ready.
const MIN_RNR_TIMER: u8 = 12;
/// Routers that a packet may pass.
const HOP_LIMIT: u8 = 64;

/// Numbers of requests that fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Depth {
    pub(crate) send: u32,
    pub(crate) receive: u32,
    /// Maximum number of reads in flight, of either side.
    pub(crate) reads: u8,
}

/// The other end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote {
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    pub(crate) qp: u32,
    pub(crate) psn: u32,
    /// `enum ibv_mtu`.
    pub(crate) mtu: u8,
    pub(crate) reads: u8,
}

impl Remote {
    /// Checks a peer's values, because not every driver does (rxe takes an MTU of 0).
    fn check(&self) -> Result<(), VerbsError> {
        let bits = (0, 0x00ff_ffff, "a number of 24 bits");
        let bounds = [
            ("MTU code", u32::from(self.mtu), (1, 5, "1 to 5")),
            ("queue pair", self.qp, bits),
            ("packet sequence number", self.psn, bits),
        ];
        for (what, got, (min, max, allowed)) in bounds {
            if got < min || got > max {
                return Err(VerbsError::BadRemote { what, got, allowed });
            }
        }
        Ok(())
    }
}

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

/// A queue pair, and all that it needs.
pub(crate) struct QueuePair {
    queue: NonNull<ibv_qp>,
    post_send: PostSend,
    post_receive: PostReceive,
    depth: Depth,
    inline_bytes: u32,
    device: Arc<Device>,
    /// The completion queue of its requests; outlives `queue`.
    _completions: Arc<CompletionQueue>,
}

// SAFETY: as for `Device`.
unsafe impl Send for QueuePair {}

impl QueuePair {
    /// A queue pair in INIT: receive requests can be posted, nothing is sent or received. Depths
    /// that the device does not have are cut to what it has.
    ///
    /// # Errors
    /// `Call`.
    pub(crate) fn new(
        device: &Arc<Device>,
        completions: &Arc<CompletionQueue>,
        wanted: Depth,
    ) -> Result<Self, VerbsError> {
        // SAFETY: the context is open as long as the device; its table of operations is constant.
        let operations = unsafe { &(*device.context.as_ptr()).ops };
        let (Some(post_send), Some(post_receive)) = (operations.post_send, operations.post_recv)
        else {
            return Err(VerbsError::Call {
                call: "the provider's post_send",
                source: io::ErrorKind::Unsupported.into(),
            });
        };
        let limits = device.limits();
        let depth = Depth {
            send: wanted.send.min(limits.work_requests),
            receive: wanted.receive.min(limits.work_requests),
            reads: wanted.reads.min(limits.reads_in).min(limits.reads_out),
        };
        let mut attributes = ibv_qp_init_attr::new_zeroed();
        attributes.send_cq = completions.queue.as_ptr();
        attributes.recv_cq = completions.queue.as_ptr();
        attributes.qp_type = IBV_QPT_RC;
        attributes.cap.max_send_wr = depth.send;
        attributes.cap.max_recv_wr = depth.receive;
        attributes.cap.max_send_sge = 1;
        attributes.cap.max_recv_sge = 1;
        attributes.cap.max_inline_data = INLINE_BYTES;
        // SAFETY: domain and completion queue live as long as the value made here.
        let mut queue =
            unsafe { (device.symbols.create_qp)(device.domain.as_ptr(), &mut attributes) };
        if queue.is_null() {
            // Some devices have no room for inline bytes.
            attributes.cap.max_inline_data = 0;
            // SAFETY: as above.
            queue = unsafe { (device.symbols.create_qp)(device.domain.as_ptr(), &mut attributes) };
        }
        let Some(queue) = NonNull::new(queue) else {
            return Err(VerbsError::last("ibv_create_qp"));
        };
        // From here on `drop` destroys it.
        let mut pair = Self {
            queue,
            post_send,
            post_receive,
            depth,
            inline_bytes: attributes.cap.max_inline_data,
            device: Arc::clone(device),
            _completions: Arc::clone(completions),
        };
        pair.initialise()?;
        Ok(pair)
    }

    pub(crate) fn number(&self) -> u32 {
        // SAFETY: the queue pair lives; its number never changes.
        unsafe { (*self.queue.as_ptr()).qp_num }
    }

    pub(crate) fn depth(&self) -> Depth {
        self.depth
    }

    pub(crate) fn inline_bytes(&self) -> u32 {
        self.inline_bytes
    }

    fn attributes(state: c_uint) -> ibv_qp_attr {
        let mut attributes = ibv_qp_attr::new_zeroed();
        attributes.qp_state = state;
        attributes
    }

    fn modify(
        &mut self,
        call: &'static str,
        attributes: &mut ibv_qp_attr,
        mask: &[c_uint],
    ) -> Result<(), VerbsError> {
        let mask = mask.iter().fold(IBV_QP_STATE, |all, bit| all | bit);
        // SAFETY: the queue pair lives; `attributes` has a value in every field.
        let code = unsafe {
            (self.device.symbols.modify_qp)(self.queue.as_ptr(), attributes, mask as c_int)
        };
        VerbsError::check(call, code)
    }

    fn initialise(&mut self) -> Result<(), VerbsError> {
        let mut attributes = Self::attributes(IBV_QPS_INIT);
        attributes.port_num = self.device.choice.port;
        attributes.qp_access_flags = self.device.remote_access();
        self.modify(
            "ibv_modify_qp to INIT",
            &mut attributes,
            &[IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS],
        )
    }

    /// Ready to receive, then ready to send.
    ///
    /// # Errors
    /// Returns `BadRemote`, and `Call` if the address cannot be reached, which RoCE detects here.
    pub(crate) fn connect(
        &mut self,
        psn: u32,
        remote: &Remote,
        options: &VerbsOptions,
    ) -> Result<(), VerbsError> {
        remote.check()?;
        let choice = &self.device.choice;
        let mut attributes = Self::attributes(IBV_QPS_RTR);
        attributes.path_mtu = u32::from(remote.mtu.min(self.device.address().mtu));
        attributes.dest_qp_num = remote.qp;
        attributes.rq_psn = remote.psn;
        attributes.max_dest_rd_atomic = self.depth.reads;
        attributes.min_rnr_timer = MIN_RNR_TIMER;
        attributes.ah_attr.port_num = choice.port;
        attributes.ah_attr.dlid = remote.lid;
        if choice.ethernet {
            attributes.ah_attr.is_global = 1;
            attributes.ah_attr.grh = ibv_global_route {
                dgid: ibv_gid { raw: remote.gid },
                flow_label: 0,
                sgid_index: choice.gid.index as u8,
                hop_limit: HOP_LIMIT,
                traffic_class: options.traffic_class,
            };
        }
        self.modify(
            "ibv_modify_qp to RTR",
            &mut attributes,
            &[
                IBV_QP_AV,
                IBV_QP_PATH_MTU,
                IBV_QP_DEST_QPN,
                IBV_QP_RQ_PSN,
                IBV_QP_MAX_DEST_RD_ATOMIC,
                IBV_QP_MIN_RNR_TIMER,
            ],
        )?;
        let mut attributes = Self::attributes(IBV_QPS_RTS);
        attributes.sq_psn = psn;
        attributes.max_rd_atomic = self.depth.reads.min(remote.reads);
        attributes.timeout = options.timeout;
        attributes.retry_cnt = options.retry_count;
        attributes.rnr_retry = options.rnr_retry;
        self.modify(
            "ibv_modify_qp to RTS",
            &mut attributes,
            &[
                IBV_QP_SQ_PSN,
                IBV_QP_MAX_QP_RD_ATOMIC,
                IBV_QP_TIMEOUT,
                IBV_QP_RETRY_CNT,
                IBV_QP_RNR_RETRY,
            ],
        )
    }

    /// Hands requests to the device, in their order.
    ///
    /// # Errors
    /// The device took only some of them.
    pub(crate) fn post_send(&mut self, requests: &[WorkRequest]) -> Result<(), PostError> {
        for requests in requests.chunks(CHAIN) {
            match requests.len() {
                1 => self.send_chain::<1>(requests),
                _ => self.send_chain::<CHAIN>(requests),
            }?;
        }
        Ok(())
    }

    /// Gives the device memory for what the peer sends.
    ///
    /// # Errors
    /// The device took only some of them.
    pub(crate) fn post_receive(&mut self, requests: &[ReceiveRequest]) -> Result<(), PostError> {
        for requests in requests.chunks(CHAIN) {
            match requests.len() {
                1 => self.receive_chain::<1>(requests),
                _ => self.receive_chain::<CHAIN>(requests),
            }?;
        }
        Ok(())
    }

    /// Posts at most `N` requests in one call. A single request has its own size, which saves
    /// clearing 4 KiB.
    fn send_chain<const N: usize>(&mut self, requests: &[WorkRequest]) -> Result<(), PostError> {
        let mut chain = <[ibv_send_wr; N]>::new_zeroed();
        let mut pieces = <[ibv_sge; N]>::new_zeroed();
        let mut count = 0;
        for ((chained, piece), request) in chain.iter_mut().zip(&mut pieces).zip(requests) {
            *piece = ibv_sge {
                addr: request.address,
                length: request.length,
                lkey: request.lkey,
            };
            fill(chained, request);
            count += 1;
        }
        link(&mut chain[..count], &mut pieces[..count]);
        let mut bad = ptr::null_mut();
        // SAFETY: the queue pair lives; the chain ends in null; it and its pieces are read before
        // the call returns; what they point to is registered, or copied (inline).
        posted(unsafe { (self.post_send)(self.queue.as_ptr(), chain.as_mut_ptr(), &mut bad) })
    }

    /// See `send_chain`.
    fn receive_chain<const N: usize>(
        &mut self,
        requests: &[ReceiveRequest],
    ) -> Result<(), PostError> {
        let mut chain = <[ibv_recv_wr; N]>::new_zeroed();
        let mut pieces = <[ibv_sge; N]>::new_zeroed();
        let mut count = 0;
        for ((chained, piece), request) in chain.iter_mut().zip(&mut pieces).zip(requests) {
            *piece = ibv_sge {
                addr: request.address,
                length: request.length,
                lkey: request.lkey,
            };
            chained.wr_id = request.id;
            chained.num_sge = 1;
            count += 1;
        }
        link(&mut chain[..count], &mut pieces[..count]);
        let mut bad = ptr::null_mut();
        // SAFETY: as in `send_chain`; the memory outlives the queue pair, by its owner's word.
        posted(unsafe { (self.post_receive)(self.queue.as_ptr(), chain.as_mut_ptr(), &mut bad) })
    }
}

/// A request of either direction, in a chain.
trait Chained {
    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge);
}

impl Chained for ibv_send_wr {
    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge) {
        (self.next, self.sg_list) = (next, piece);
    }
}

impl Chained for ibv_recv_wr {
    fn join(&mut self, next: *mut Self, piece: *mut ibv_sge) {
        (self.next, self.sg_list) = (next, piece);
    }
}

/// Makes a chain of an array, each request with its piece of memory.
fn link<T: Chained>(chain: &mut [T], pieces: &mut [ibv_sge]) {
    let mut next = ptr::null_mut();
    for (request, piece) in chain.iter_mut().zip(pieces).rev() {
        request.join(next, piece);
        next = request;
    }
}

fn fill(chained: &mut ibv_send_wr, request: &WorkRequest) {
    chained.wr_id = request.id;
    // No bytes, no piece: some devices refuse a piece of nothing.
    chained.num_sge = c_int::from(request.length > 0);
    let flag = |set: bool, flag: c_uint| if set { flag } else { 0 };
    chained.send_flags =
        flag(request.signaled, IBV_SEND_SIGNALED) | flag(request.inline, IBV_SEND_INLINE);
    match request.operation {
        WorkOperation::Send => chained.opcode = IBV_WR_SEND,
        WorkOperation::Write {
            address,
            rkey,
            immediate,
        } => {
            chained.opcode = match immediate {
                Some(_) => IBV_WR_RDMA_WRITE_WITH_IMM,
                None => IBV_WR_RDMA_WRITE,
            };
            chained.imm_data = immediate.unwrap_or(0).to_be();
            chained.remote_addr = address;
            chained.rkey = rkey;
        }
        WorkOperation::Read { address, rkey } => {
            chained.opcode = IBV_WR_RDMA_READ;
            chained.remote_addr = address;
            chained.rkey = rkey;
        }
    }
}

fn posted(code: c_int) -> Result<(), PostError> {
    match VerbsError::check("post", code) {
        Ok(()) => Ok(()),
        Err(VerbsError::Call { source, .. }) => Err(PostError { source }),
        Err(other) => Err(PostError {
            source: io::Error::other(other),
        }),
    }
}

impl Drop for QueuePair {
    /// Synchronous: afterwards the device touches no memory on behalf of this queue pair. That
    /// holds for a failure too: the kernel refuses only when it destroyed the queue pair itself,
    /// because the device is gone (EIO).
    fn drop(&mut self) {
        // SAFETY: owned by this value, destroyed once; its events were acknowledged as they were
        // read.
        let code = unsafe { (self.device.symbols.destroy_qp)(self.queue.as_ptr()) };
        if code != 0 {
            log::warn!("ibv_destroy_qp: {code}");
        }
    }
}
