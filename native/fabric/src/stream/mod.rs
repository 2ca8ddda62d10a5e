//! What `tcp` and `shm` share: framed, non-blocking connections on one `mio::Poll`.
//!
//! ```text
//!              Fabric calls                                      poll()
//!                   |                                              |
//!   tcp|shm/datapath: WRITE, READ, WRITE_REF     reactor: readiness, deadlines, accept, close
//!                   |                                |                        |
//!                   v                                v                        v
//!   outbound: frames, gathered   <-- socket -->  inbound: framing   -->  dispatch: what a frame
//!   straight from leases                         (trusts nothing)        means in this phase
//!                                                    |                        |
//!                                                    +----> exposure table <--+
//! ```
//! Idea: framing, meaning and memory are separate. `inbound` knows bytes and bounds, `dispatch`
//! knows phases and kinds, `session` what is under way, and only the exposure table leads from a received number to memory of
//! ours; it is asked again before every byte run that lands, so that revoking takes effect in the
//! middle of a transfer and no reference into a lease outlives one call.
//!
//! Trade-offs: one staging buffer per fabric, not per connection, so that 4,096 idle connections
//! cost no buffers; a connection owns only what a partial frame needs. Large payload skips the
//! staging buffer: one `recvmsg` scatters into the lease's remainder first and into staging
//! after it, which costs one system call per 256 KiB frame together with the next header.
//! Readiness is edge-triggered, so that a wake-up costs no re-arming; in exchange each
//! connection remembers whether it was drained, and those cut off by their per-poll budget are
//! served again before the next wait.
//!
//! Source: the split of transport contract and datapath follows eRPC's `transport.h`; the
//! bounded greeting and the linger after GOODBYE follow RFC 9113 section 9 (GOAWAY) and RFC 9112 9.6.

pub(crate) mod bounds;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod driver;
pub(crate) mod exposure;
pub(crate) mod facade;
pub(crate) mod frames;
pub(crate) mod inbound;
pub(crate) mod kinds;
mod lifecycle;
pub(crate) mod operations;
pub(crate) mod outbound;
pub(crate) mod reactor;
pub(crate) mod session;
pub(crate) mod socket;
pub(crate) mod turns;
