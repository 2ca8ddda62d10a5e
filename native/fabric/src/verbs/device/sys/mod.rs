//! The types and constants of libibverbs that this fabric uses, as C lays them out on 64-bit Linux.
//!
//! Names are those of `infiniband/verbs.h`. The layout is the library's binary interface, which has
//! been the same since its symbols got the version IBVERBS_1.1. [`layout`] asserts it when this is
//! compiled; `tests/setup/verbs-layout` makes that file from a header and compares it with one. The
//! objects of the library, which refer to each other, are declared here; `attributes` and `work`
//! have what describes them and what is posted to them, `constants` the values of enums.
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

mod attributes;
mod constants;
mod layout;
mod work;

pub(crate) use attributes::*;
pub(crate) use constants::*;
pub(crate) use work::*;

use std::ffi::{c_int, c_uint, c_void};
use zerocopy::FromZeros;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the layout of libibverbs' types is known for 64-bit Linux only");

/// It is never read, only passed on.
#[repr(C)]
pub(crate) struct ibv_device {
    _opaque: [u8; 0],
}

/// It is never read, only passed on.
#[repr(C)]
pub(crate) struct ibv_pd {
    _opaque: [u8; 0],
}

/// A shared receive queue; it is never used.
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
pub(crate) struct ibv_qp_init_attr {
    pub(crate) qp_context: *mut c_void,
    pub(crate) send_cq: *mut ibv_cq,
    pub(crate) recv_cq: *mut ibv_cq,
    pub(crate) srq: *mut ibv_srq,
    pub(crate) cap: ibv_qp_cap,
    pub(crate) qp_type: c_uint,
    pub(crate) sq_sig_all: c_int,
}

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
