//! Work requests, and the completions that they end with.

use std::ffi::{c_int, c_uint};
use zerocopy::FromZeros;

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_wc {
    pub(crate) wr_id: u64,
    pub(crate) status: c_uint,
    pub(crate) opcode: c_uint,
    pub(crate) vendor_err: u32,
    pub(crate) byte_len: u32,
    /// In network order.
    pub(crate) imm_data: u32,
    pub(crate) qp_num: u32,
    pub(crate) src_qp: u32,
    pub(crate) wc_flags: c_uint,
    pub(crate) pkey_index: u16,
    pub(crate) slid: u16,
    pub(crate) sl: u8,
    pub(crate) dlid_path_bits: u8,
}

#[derive(Debug, Clone, Copy, Default, FromZeros)]
#[repr(C)]
pub(crate) struct ibv_sge {
    pub(crate) addr: u64,
    pub(crate) length: u32,
    pub(crate) lkey: u32,
}

/// A work request; of the unions in C it has the members that WRITE and READ use.
#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_send_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_send_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
    pub(crate) opcode: c_uint,
    pub(crate) send_flags: c_uint,
    /// In network order.
    pub(crate) imm_data: u32,
    /// `wr.rdma.remote_addr` in C.
    pub(crate) remote_addr: u64,
    /// `wr.rdma.rkey` in C.
    pub(crate) rkey: u32,
    _other_kinds: [u64; 9],
}

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_recv_wr {
    pub(crate) wr_id: u64,
    pub(crate) next: *mut ibv_recv_wr,
    pub(crate) sg_list: *mut ibv_sge,
    pub(crate) num_sge: c_int,
}
