//! RDMA: reliable connected queue pairs, one for each connection.
//!
//! ```text
//!   connector                                    acceptor
//!   HELLO, QP_INFO {queue pair, GID} --- TCP --->   INIT -> RTR -> RTS
//!   RTR -> RTS  <--- TCP --- WELCOME, QP_INFO
//!   QP_READY, EXPOSE, messages ... <== SEND/RECV ==> ...            (TCP only tells who is gone)
//!   WRITE with immediate ==============>  lease  (the device checks the region, we checked the rest)
//! ```
//! Idea: the frames of the stream fabrics travel in SENDs, several to a segment, and what they
//! say about memory is carried out by the device. An exposure is announced to its peer (`EXPOSE`:
//! address, rkey, length, slot), so that every operation is checked against it *before* it is
//! posted: a wrong key or bound would put both queue pairs into error, and a slab's rkey alone
//! says nothing about leases. What the announcements do not cover is asked (`ACCESS_QUERY`), because the
//! announcement may still be on its way; the FIFO waits for the answer.
//!
//! A write's immediate names the slot of the exposure (14 bits), the caller's word (16 bits),
//! whether there is one, and whether it was the last: one packet tells the target which memory is
//! complete. Nobody can stop a device in mid-write, so revoking asks the peer (`REVOKE`), which
//! answers when nothing of it is on its way; after a `last` write it needs no question. Between
//! processes that do not trust each other this would not do; Faro's peers are of one application,
//! and a peer that lies could as well send wrong blocks with right checksums.
//!
//! Flow control: a receive request is used by every SEND and every write. Each side knows how many
//! the other has (`credits`), gets them back in the head of every segment, and keeps
//! two for saying so; the device's RNR retries are only the net below.
//!
//! Trade-offs: a receive ring per connection (256 KiB) and not a shared receive queue, because
//! the grouped exchange keeps the number of connections small and a ring of its own needs no
//! guess about who will send; frames are copied into a segment once, payload never.
//!
//! Sources: credits in the head of a segment as in rsockets (librdmacm); write with immediate as
//! completion as in RPC over RDMA stacks (Kalia et al., "Design guidelines for high performance
//! RDMA systems", USENIX ATC 2016); InfiniBand Architecture Specification 1.4, chapters 9 and 10.

mod completions;
mod control;
mod cost;
pub(crate) mod device;
mod device_events;
mod driver;
mod exposed_buffers;
mod frames;
mod protocol;
mod queue_pair;
mod rdma_context;
mod registrations;
mod remote_access;
mod setup;
mod transmit;

pub use crate::stream::bounds::Bounds;
pub use cost::{CostProbe, RegistrationCost};
pub use device::{VerbsError, VerbsOptions};
#[cfg(test)]
pub(crate) use driver::VerbsKind;
pub use setup::VerbsConfig;

crate::stream::facade::reactor_fabric! {
    /// The RDMA fabric.
    VerbsFabric, driver::Verbs
}
