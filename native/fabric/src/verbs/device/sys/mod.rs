//! The types and constants of libibverbs that this fabric uses, as C lays them out on 64-bit Linux.
//!
//! Names are those of `infiniband/verbs.h`. The layout is the library's binary interface, which has
//! been the same since its symbols got the version IBVERBS_1.1. [`layout`] asserts it when this is
//! compiled; `tests/setup/verbs-layout` makes that file from a header and compares it with one.
//!
//! No crate serves:
//! - `ibverbs` (0.9) links libibverbs, so Faro's library would not load on a host without it. Its safe
//!   interface has SEND and RECV, but no WRITE or READ. Its `ibverbs-sys` needs cmake and libclang: it
//!   configures a copy of rdma-core and makes the bindings from its headers.
//! - `rdma-mummy-sys` (0.2) opens libibverbs at run time, but needs cmake and libclang as well, to
//!   build its C library and its bindings, and it looks symbols up without their versions.
//! - `sideway` (0.4) is built on `rdma-mummy-sys`. Its licence, MPL-2.0, is not one that `deny.toml`
//!   allows.

#![allow(non_camel_case_types)]

mod layout;

use std::ffi::{c_char, c_int, c_uint, c_void};
use zerocopy::FromZeros;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layout of libibverbs' types is known for 64-bit Linux only");

/// Never read, only passed on.
#[repr(C)]
pub(crate) struct ibv_device {
    _opaque: [u8; 0],
}

/// Never read, only passed on.
#[repr(C)]
pub(crate) struct ibv_pd {
    _opaque: [u8; 0],
}

/// Never used: shared receive queues.
#[repr(C)]
pub(crate) struct ibv_srq {
    _opaque: [u8; 0],
}

/// The front of an open device. What follows has a size that depends on the C library.
#[repr(C)]
pub(crate) struct ibv_context {
    pub(crate) device: *mut ibv_device,
    pub(crate) ops: ibv_context_ops,
    pub(crate) cmd_fd: c_int,
    pub(crate) async_fd: c_int,
    pub(crate) num_comp_vectors: c_int,
    _rest: [u8; 0],
}

/// The provider's functions; the header's inline functions call these.
#[repr(C)]
pub(crate) struct ibv_context_ops {
    _before_poll_cq: [*mut c_void; 11],
    pub(crate) poll_cq: Option<PollCq>,
    pub(crate) req_notify_cq: Option<RequestNotify>,
    _before_post_send: [*mut c_void; 12],
    pub(crate) post_send: Option<PostSend>,
    pub(crate) post_recv: Option<PostReceive>,
    _after_post_recv: [*mut c_void; 5],
}

/// The type of `ibv_poll_cq`, which returns the number of completions that it wrote, or a negative
/// number.
pub(crate) type PollCq = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;
/// `ibv_req_notify_cq`.
pub(crate) type RequestNotify = unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int;
/// `ibv_post_send`; the last parameter becomes the first request that was not taken.
pub(crate) type PostSend =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
/// `ibv_post_recv`; the last parameter becomes the first request that was not taken.
pub(crate) type PostReceive =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int;

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_device_attr {
    pub(crate) fw_ver: [c_char; 64],
    pub(crate) node_guid: u64,
    pub(crate) sys_image_guid: u64,
    pub(crate) max_mr_size: u64,
    pub(crate) page_size_cap: u64,
    pub(crate) vendor_id: u32,
    pub(crate) vendor_part_id: u32,
    pub(crate) hw_ver: u32,
    pub(crate) max_qp: c_int,
    pub(crate) max_qp_wr: c_int,
    pub(crate) device_cap_flags: c_uint,
    pub(crate) max_sge: c_int,
    pub(crate) max_sge_rd: c_int,
    pub(crate) max_cq: c_int,
    pub(crate) max_cqe: c_int,
    pub(crate) max_mr: c_int,
    pub(crate) max_pd: c_int,
    pub(crate) max_qp_rd_atom: c_int,
    pub(crate) max_ee_rd_atom: c_int,
    pub(crate) max_res_rd_atom: c_int,
    pub(crate) max_qp_init_rd_atom: c_int,
    pub(crate) max_ee_init_rd_atom: c_int,
    pub(crate) atomic_cap: c_uint,
    pub(crate) max_ee: c_int,
    pub(crate) max_rdd: c_int,
    pub(crate) max_mw: c_int,
    pub(crate) max_raw_ipv6_qp: c_int,
    pub(crate) max_raw_ethy_qp: c_int,
    pub(crate) max_mcast_grp: c_int,
    pub(crate) max_mcast_qp_attach: c_int,
    pub(crate) max_total_mcast_qp_attach: c_int,
    pub(crate) max_ah: c_int,
    pub(crate) max_fmr: c_int,
    pub(crate) max_map_per_fmr: c_int,
    pub(crate) max_srq: c_int,
    pub(crate) max_srq_wr: c_int,
    pub(crate) max_srq_sge: c_int,
    pub(crate) max_pkeys: u16,
    pub(crate) local_ca_ack_delay: u8,
    pub(crate) phys_port_cnt: u8,
}

/// The front of it. The function of IBVERBS_1.1 fills the fields up to `link_layer`; headers add
/// fields behind them.
#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_port_attr {
    pub(crate) state: c_uint,
    pub(crate) max_mtu: c_uint,
    pub(crate) active_mtu: c_uint,
    pub(crate) gid_tbl_len: c_int,
    pub(crate) port_cap_flags: u32,
    pub(crate) max_msg_sz: u32,
    pub(crate) bad_pkey_cntr: u32,
    pub(crate) qkey_viol_cntr: u32,
    pub(crate) pkey_tbl_len: u16,
    pub(crate) lid: u16,
    pub(crate) sm_lid: u16,
    pub(crate) lmc: u8,
    pub(crate) max_vl_num: u8,
    pub(crate) sm_sl: u8,
    pub(crate) subnet_timeout: u8,
    pub(crate) init_type_reply: u8,
    pub(crate) active_width: u8,
    pub(crate) active_speed: u8,
    pub(crate) phys_state: u8,
    pub(crate) link_layer: u8,
    pub(crate) flags: u8,
    pub(crate) port_cap_flags2: u16,
    _rest: [u8; 0],
}

/// `element` is a union in C: this pointer for the events of queue pairs, else another one or a
/// port's number.
#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_async_event {
    pub(crate) element: *mut ibv_qp,
    pub(crate) event_type: c_uint,
}

#[repr(C)]
pub(crate) struct ibv_comp_channel {
    pub(crate) context: *mut ibv_context,
    pub(crate) fd: c_int,
    pub(crate) refcnt: c_int,
}

/// The front of a completion queue; a mutex follows.
#[repr(C)]
pub(crate) struct ibv_cq {
    pub(crate) context: *mut ibv_context,
    pub(crate) channel: *mut ibv_comp_channel,
    pub(crate) cq_context: *mut c_void,
    pub(crate) handle: u32,
    pub(crate) cqe: c_int,
    _rest: [u8; 0],
}

/// The front of a queue pair; a mutex follows.
#[repr(C)]
pub(crate) struct ibv_qp {
    pub(crate) context: *mut ibv_context,
    pub(crate) qp_context: *mut c_void,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) handle: u32,
    pub(crate) qp_num: u32,
    pub(crate) state: c_uint,
    pub(crate) qp_type: c_uint,
    _rest: [u8; 0],
}

#[repr(C)]
pub(crate) struct ibv_mr {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

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

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_qp_cap {
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
    pub(crate) max_inline_data: u32,
}

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_qp_init_attr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) qp_type: c_uint,
    pub(crate) sq_sig_all: c_int,
}

/// A union with two 64-bit numbers in C, hence the alignment.
#[derive(FromZeros)]
#[repr(C, align(8))]
pub(crate) struct ibv_gid {
    pub(crate) raw: [u8; 16],
}

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_global_route {
    pub(crate) dgid: ibv_gid,
    pub(crate) flow_label: u32,
    pub(crate) sgid_index: u8,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
}

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_ah_attr {
    pub(crate) grh: ibv_global_route,
    pub(crate) dlid: u16,
    pub(crate) sl: u8,
    pub(crate) src_path_bits: u8,
    pub(crate) static_rate: u8,
    pub(crate) is_global: u8,
    pub(crate) port_num: u8,
}

#[derive(FromZeros)]
#[repr(C)]
pub(crate) struct ibv_qp_attr {
    pub(crate) qp_state: c_uint,
    pub(crate) cur_qp_state: c_uint,
    pub(crate) path_mtu: c_uint,
    pub(crate) path_mig_state: c_uint,
    pub(crate) qkey: u32,
    pub(crate) rq_psn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) dest_qp_num: u32,
    pub(crate) qp_access_flags: c_uint,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) ah_attr: ibv_ah_attr,
    pub(crate) alt_ah_attr: ibv_ah_attr,
    pub(crate) pkey_index: u16,
    pub(crate) alt_pkey_index: u16,
    pub(crate) en_sqd_async_notify: u8,
    pub(crate) sq_draining: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
    pub(crate) port_num: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) alt_port_num: u8,
    pub(crate) alt_timeout: u8,
    pub(crate) rate_limit: u32,
}

#[derive(FromZeros)]
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

// enum ibv_access_flags
pub(crate) const IBV_ACCESS_LOCAL_WRITE: c_uint = 1;
pub(crate) const IBV_ACCESS_REMOTE_WRITE: c_uint = 2;
pub(crate) const IBV_ACCESS_REMOTE_READ: c_uint = 4;
pub(crate) const IBV_ACCESS_ON_DEMAND: c_uint = 64;

// enum ibv_event_type
pub(crate) const IBV_EVENT_CQ_ERR: c_uint = 0;
pub(crate) const IBV_EVENT_QP_FATAL: c_uint = 1;
pub(crate) const IBV_EVENT_QP_REQ_ERR: c_uint = 2;
pub(crate) const IBV_EVENT_QP_ACCESS_ERR: c_uint = 3;
pub(crate) const IBV_EVENT_COMM_EST: c_uint = 4;
pub(crate) const IBV_EVENT_DEVICE_FATAL: c_uint = 8;
pub(crate) const IBV_EVENT_PORT_ACTIVE: c_uint = 9;
pub(crate) const IBV_EVENT_PORT_ERR: c_uint = 10;
pub(crate) const IBV_EVENT_LID_CHANGE: c_uint = 11;
pub(crate) const IBV_EVENT_QP_LAST_WQE_REACHED: c_uint = 16;
pub(crate) const IBV_EVENT_GID_CHANGE: c_uint = 18;

// enum ibv_port_state
pub(crate) const IBV_PORT_ACTIVE: c_uint = 4;

// enum ibv_qp_attr_mask
pub(crate) const IBV_QP_STATE: c_uint = 1 << 0;
pub(crate) const IBV_QP_ACCESS_FLAGS: c_uint = 1 << 3;
pub(crate) const IBV_QP_PKEY_INDEX: c_uint = 1 << 4;
pub(crate) const IBV_QP_PORT: c_uint = 1 << 5;
pub(crate) const IBV_QP_AV: c_uint = 1 << 7;
pub(crate) const IBV_QP_PATH_MTU: c_uint = 1 << 8;
pub(crate) const IBV_QP_TIMEOUT: c_uint = 1 << 9;
pub(crate) const IBV_QP_RETRY_CNT: c_uint = 1 << 10;
pub(crate) const IBV_QP_RNR_RETRY: c_uint = 1 << 11;
pub(crate) const IBV_QP_RQ_PSN: c_uint = 1 << 12;
pub(crate) const IBV_QP_MAX_QP_RD_ATOMIC: c_uint = 1 << 13;
pub(crate) const IBV_QP_MIN_RNR_TIMER: c_uint = 1 << 15;
pub(crate) const IBV_QP_SQ_PSN: c_uint = 1 << 16;
pub(crate) const IBV_QP_MAX_DEST_RD_ATOMIC: c_uint = 1 << 17;
pub(crate) const IBV_QP_DEST_QPN: c_uint = 1 << 20;

// enum ibv_qp_state
pub(crate) const IBV_QPS_INIT: c_uint = 1;
pub(crate) const IBV_QPS_RTR: c_uint = 2;
pub(crate) const IBV_QPS_RTS: c_uint = 3;

// enum ibv_qp_type
pub(crate) const IBV_QPT_RC: c_uint = 2;

// enum ibv_send_flags
pub(crate) const IBV_SEND_SIGNALED: c_uint = 1 << 1;
pub(crate) const IBV_SEND_INLINE: c_uint = 1 << 3;

// enum ibv_wc_opcode
pub(crate) const IBV_WC_RECV: c_uint = 128;
pub(crate) const IBV_WC_RECV_RDMA_WITH_IMM: c_uint = 129;

// enum ibv_wc_status
pub(crate) const IBV_WC_SUCCESS: c_uint = 0;
pub(crate) const IBV_WC_LOC_PROT_ERR: c_uint = 4;
pub(crate) const IBV_WC_WR_FLUSH_ERR: c_uint = 5;
pub(crate) const IBV_WC_REM_ACCESS_ERR: c_uint = 10;
pub(crate) const IBV_WC_RETRY_EXC_ERR: c_uint = 12;
pub(crate) const IBV_WC_RNR_RETRY_EXC_ERR: c_uint = 13;

// enum ibv_wr_opcode
pub(crate) const IBV_WR_RDMA_WRITE: c_uint = 0;
pub(crate) const IBV_WR_RDMA_WRITE_WITH_IMM: c_uint = 1;
pub(crate) const IBV_WR_SEND: c_uint = 2;
pub(crate) const IBV_WR_RDMA_READ: c_uint = 4;

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Compares with the header of the machine's libibverbs-dev, where it is installed.
    #[test]
    fn the_layout_is_that_of_the_header() {
        let tool = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/setup/verbs-layout"
        );
        let output = Command::new(tool).arg("--check").output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => {}
            Some(77) => eprintln!("skipped: {text}"),
            code => panic!("{code:?}: {text}"),
        }
    }
}
