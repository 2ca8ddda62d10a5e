//! RDMA: reliable connected queue pairs, one for each connection.
//!
//! ```text
//!   connector                                    acceptor
//!   HELLO, QP_INFO {queue pair, GID} --- TCP --->   INIT -> RTR -> RTS
//!   RTR -> RTS  <--- TCP --- WELCOME, QP_INFO
//!   QP_READY, EXPOSE, messages ... <== SEND/RECV ==> ...     (the TCP connection's end says that the peer is gone)
//!   WRITE with immediate ==============>  lease  (the device checks the region, this side checked the rest)
//! ```
//! Idea: the frames of the stream fabrics travel in SENDs, several to a segment, and the device
//! carries out reads and writes. An exposure is announced to its peer (`EXPOSE`: address, rkey,
//! length, slot), so that every operation is checked *before* it is posted: a wrong key or bound
//! would put both queue pairs into error, and a slab's rkey covers all its leases. If no
//! announcement covers an operation, the peer is asked (`ACCESS_QUERY`), because the announcement
//! may still be on its way; the queue waits for the answer.
//!
//! The queue pairs are connected on threads of their own, because a device may look for its peer for
//! a second (`connect_threads`).
//!
//! A write's immediate names the slot of the exposure (14 bits) and the caller's 16 bits, and says
//! whether there are any and whether it was the last write: one packet tells the target which
//! memory is complete. A device cannot be stopped in the middle of a write, so a revocation asks
//! the peer (`REVOKE`), which answers when none of its operations is in flight; after a `last`
//! write no question is needed. This is not enough between processes that do not trust each other.
//! Faro's peers are of one application; a peer that lies could as well send wrong blocks with right
//! checksums.
//!
//! Flow control: every SEND and every write uses a receive request. Each side knows how many the
//! other has posted (`credits`), gets them back in the head of every segment, and keeps two to send
//! such updates. The device's RNR retries are needed only if this fails. Where bytes are sealed,
//! every SEND is a record, and the credits are inside of it.
//!
//! Memory of a connection: a ring of 4 to 64 segments of 4 KiB to receive into, which grows with
//! use, and 1 to 16 to send from, lent while there is room; all rings together take at most an
//! eighth of the arena (`ring_share`, which also says why there is no shared receive queue). Frames
//! are copied into a segment once, payload never.
//!
//! Sources: credits in the head of a segment as in rsockets (librdmacm); write with immediate as
//! completion as in RPC over RDMA stacks (Kalia et al., "Design guidelines for high performance
//! RDMA systems", USENIX ATC 2016); InfiniBand Architecture Specification 1.4, chapters 9 and 10.

mod carrier;
mod completions;
mod connect_threads;
mod control;
mod cost;
mod datapath;
pub(crate) mod device;
mod device_events;
mod driver;
mod exposed_buffers;
mod frames;
mod kinds;
mod post_operation;
mod protocol;
mod queue_pair;
mod rdma_context;
mod registrations;
mod remote_access;
mod ring_share;
mod segment;
mod send_segment;
mod setup;
mod transmit;
mod work_id;

pub use crate::session::bounds::Bounds;
pub use cost::{CostProbe, RegistrationCost};
pub use device::{port_counters, BadSelection, DeviceSelection, VerbsError, VerbsOptions};
#[cfg(test)]
pub(crate) use kinds::VerbsKind;
pub use setup::VerbsConfig;

/// Registered memory of a connection until it is busy: its receive requests, and a segment to send.
pub const FIRST_CONNECTION_BYTES: u64 =
    (ring_share::SMALLEST as u64 + 1) * frames::SEGMENT_BYTES as u64;

/// The RDMA fabric.
pub type VerbsFabric = crate::reactor::event_loop::Reactor<driver::Verbs>;
