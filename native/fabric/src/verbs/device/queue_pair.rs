//! Reliable connected queue pairs.

use super::choice::{PortAddress, VerbsOptions};
use super::completion::CompletionQueue;
use super::context::Device;
use super::error::VerbsError;
use super::sys::{
    ibv_gid, ibv_global_route, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_sge, PostReceive,
    PostSend, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, IBV_QP_ACCESS_FLAGS, IBV_QP_AV,
    IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER,
    IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY,
    IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT,
};
use super::work_request::{post_in_chains, PostError, ReceiveRequest, WorkRequest};
use crate::MAX_PARTS;
use std::ffi::{c_int, c_uint};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use zerocopy::FromZeros;

/// Bytes that small messages may have inline, if the device can: as many as the places of a request take in its queue. A
/// FETCH of one block fits.
const INLINE_BYTES: u32 = (MAX_PARTS * size_of::<ibv_sge>()) as u32;
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
    pub(crate) address: PortAddress,
    pub(crate) qp: u32,
    pub(crate) psn: u32,
    pub(crate) reads: u8,
}

impl Remote {
    /// Checks a peer's values, because not every driver does (rxe takes an MTU of 0).
    fn check(&self) -> Result<(), VerbsError> {
        let bits = (0, 0x00ff_ffff, "a number of 24 bits");
        let bounds = [
            ("MTU code", u32::from(self.address.mtu), (1, 5, "1 to 5")),
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

/// A queue pair, and all that it needs.
pub(crate) struct QueuePair {
    queue: NonNull<ibv_qp>,
    post_send: PostSend,
    post_receive: PostReceive,
    depth: Depth,
    inline_bytes: u32,
    pieces: usize,
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
        let mut pieces = limits.pieces.min(MAX_PARTS);
        attributes.cap.max_send_sge = pieces as u32;
        attributes.cap.max_recv_sge = 1;
        attributes.cap.max_inline_data = INLINE_BYTES;
        // SAFETY: domain and completion queue live as long as the value made here.
        let mut queue =
            unsafe { (device.symbols.create_qp)(device.domain.as_ptr(), &mut attributes) };
        if queue.is_null() {
            // Some devices have no room for inline bytes, or beside other requests not for as many pieces.
            attributes.cap.max_inline_data = 0;
            attributes.cap.max_send_sge = 1;
            pieces = 1;
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
            pieces,
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

    /// Returns the address at which the peer finds this side.
    pub(crate) fn address(&self) -> PortAddress {
        self.device.address()
    }

    pub(crate) fn is_of(&self, device: &Arc<Device>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    pub(crate) fn depth(&self) -> Depth {
        self.depth
    }

    pub(crate) fn inline_bytes(&self) -> u32 {
        self.inline_bytes
    }

    /// Returns the number of places in memory that a request may have.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces
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
        attributes.pkey_index = self.device.choice.partition.index;
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
        let (own, peer) = (self.device.address(), &remote.address);
        let mut attributes = Self::attributes(IBV_QPS_RTR);
        attributes.path_mtu = u32::from(peer.mtu.min(own.mtu));
        attributes.dest_qp_num = remote.qp;
        attributes.rq_psn = remote.psn;
        attributes.max_dest_rd_atomic = self.depth.reads;
        attributes.min_rnr_timer = MIN_RNR_TIMER;
        attributes.ah_attr.port_num = choice.port;
        attributes.ah_attr.dlid = peer.lid;
        attributes.ah_attr.sl = options.service_level;
        if own.is_global(peer) {
            attributes.ah_attr.is_global = 1;
            attributes.ah_attr.grh = ibv_global_route {
                dgid: ibv_gid { raw: peer.gid },
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
        let (post, queue) = (self.post_send, self.queue.as_ptr());
        post_in_chains(requests, |chain| {
            let mut bad = ptr::null_mut();
            // SAFETY: the queue pair lives; the chain ends in null; it and the pieces, which `requests`
            // has, are read before the call returns and not written; what they point to is registered,
            // or copied (inline).
            unsafe { post(queue, chain, &mut bad) }
        })
    }

    /// Gives the device memory for what the peer sends.
    ///
    /// # Errors
    /// The device took only some of them.
    pub(crate) fn post_receive(&mut self, requests: &[ReceiveRequest]) -> Result<(), PostError> {
        let (post, queue) = (self.post_receive, self.queue.as_ptr());
        post_in_chains(requests, |chain| {
            let mut bad = ptr::null_mut();
            // SAFETY: as in `post_send`; the memory outlives the queue pair, by its owner's word.
            unsafe { post(queue, chain, &mut bad) }
        })
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
