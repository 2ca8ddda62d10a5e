//! The values of the header's enums that this fabric uses.

use std::ffi::c_uint;

// enum ibv_access_flags
pub(crate) const IBV_ACCESS_LOCAL_WRITE: c_uint = 1;
pub(crate) const IBV_ACCESS_REMOTE_WRITE: c_uint = 2;
pub(crate) const IBV_ACCESS_REMOTE_READ: c_uint = 4;
pub(crate) const IBV_ACCESS_ON_DEMAND: c_uint = 64;
pub(crate) const IBV_ACCESS_RELAXED_ORDERING: c_uint = 1 << 20;

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
pub(crate) const IBV_EVENT_PKEY_CHANGE: c_uint = 12;
pub(crate) const IBV_EVENT_SM_CHANGE: c_uint = 13;
pub(crate) const IBV_EVENT_QP_LAST_WQE_REACHED: c_uint = 16;
pub(crate) const IBV_EVENT_CLIENT_REREGISTER: c_uint = 17;
pub(crate) const IBV_EVENT_GID_CHANGE: c_uint = 18;

// Flags of a port, in an enum without a name.
pub(crate) const IBV_QPF_GRH_REQUIRED: c_uint = 1 << 0;

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
