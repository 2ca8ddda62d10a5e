//! News about a device.

use super::library::Symbols;
use super::sys::{
    ibv_async_event, IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_COMM_EST, IBV_EVENT_CQ_ERR,
    IBV_EVENT_DEVICE_FATAL, IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE, IBV_EVENT_PKEY_CHANGE,
    IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_FATAL,
    IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_SM_CHANGE,
};

/// News about the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// Something happened to a queue pair.
    QueuePair {
        number: u32,
        fatal: bool,
        what: String,
    },
    /// The port went up or down.
    Port {
        up: bool,
        what: String,
    },
    /// The port's addresses changed.
    Gids,
    /// InfiniBand's subnet manager, or another one, has set the port up anew: it may have another LID
    /// and other partitions.
    Subnet {
        what: String,
    },
    /// The device is gone or broken: everything made from it has to go.
    Device {
        what: String,
    },
    Other {
        what: String,
    },
}

impl AsyncEvent {
    /// Returns what an event says that libibverbs has just delivered.
    ///
    /// # Safety
    /// The event was got and is not acknowledged yet.
    pub(super) unsafe fn of(symbols: &Symbols, event: &ibv_async_event) -> Self {
        let kind = event.event_type;
        let what = symbols.event_name(kind);
        match kind {
            IBV_EVENT_QP_FATAL
            | IBV_EVENT_QP_REQ_ERR
            | IBV_EVENT_QP_ACCESS_ERR
            | IBV_EVENT_COMM_EST
            | IBV_EVENT_QP_LAST_WQE_REACHED => {
                // SAFETY: for these kinds the element is the queue pair, which cannot be
                // destroyed before the event is acknowledged, which is the caller's duty.
                let number = unsafe { (*event.element).qp_num };
                let harmless = matches!(kind, IBV_EVENT_COMM_EST | IBV_EVENT_QP_LAST_WQE_REACHED);
                Self::QueuePair {
                    number,
                    fatal: !harmless,
                    what,
                }
            }
            IBV_EVENT_PORT_ACTIVE => Self::Port { up: true, what },
            IBV_EVENT_PORT_ERR => Self::Port { up: false, what },
            IBV_EVENT_GID_CHANGE => Self::Gids,
            IBV_EVENT_LID_CHANGE
            | IBV_EVENT_PKEY_CHANGE
            | IBV_EVENT_SM_CHANGE
            | IBV_EVENT_CLIENT_REREGISTER => Self::Subnet { what },
            IBV_EVENT_DEVICE_FATAL | IBV_EVENT_CQ_ERR => Self::Device { what },
            _ => Self::Other { what },
        }
    }
}
