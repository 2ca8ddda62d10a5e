//! What all fabrics share: framed, non-blocking connections on one `mio::Poll`.
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
//! Idea: framing, meaning and memory are separate. `inbound` knows bytes and bounds, `dispatch` phases
//! and kinds, `session` the operations under way. Only the exposure table leads from a received
//! number to our memory. It is asked again before every run of bytes, so that a revocation takes
//! effect in the middle of a transfer, and no reference into a lease outlives one call.
//! What differs between fabrics is in `driver`. Both ends prove who they are first (`greeting`); where bytes are sealed,
//! `sealed` stands between frames and socket.
//!
//! Trade-offs: one staging buffer per fabric, not per connection, so that 4,096 idle connections
//! cost no buffers; a connection owns only what a partial frame needs. Large payload does not pass
//! the staging buffer: one `recvmsg` scatters into the rest of the lease first and into staging
//! after it, so that 256 KiB of payload and the next header cost one system call. Readiness is
//! edge-triggered, so that a wake-up costs no re-arming; therefore each connection remembers whether
//! it was drained, and those that used up their budget are served again before the next wait.
//!
//! Source: the split of transport contract and datapath follows eRPC's `transport.h`; the
//! bounded greeting and the linger after GOODBYE follow RFC 9113 section 9 (GOAWAY) and RFC 9112 9.6.

mod begin;
pub(crate) mod bounds;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod driver;
mod end;
pub(crate) mod exposure;
pub(crate) mod facade;
pub(crate) mod frames;
mod greeting;
pub(crate) mod inbound;
pub(crate) mod kinds;
pub(crate) mod operations;
pub(crate) mod outbound;
pub(crate) mod payload;
mod rare_logs;
pub(crate) mod reactor;
pub(crate) mod sealed;
pub(crate) mod session;
pub(crate) mod socket;
pub(crate) mod strangers;
pub(crate) mod turns;
