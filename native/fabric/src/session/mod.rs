//! One connection as a value: its phase, its handshake and its exposures. Frames and
//! operations go in, frames and events come out; it never sees the event loop, so
//! tests and simulations can drive it. Only `verbs` has credits.
//!
//! ```text
//!   operations ──▶ context ──▶ its queue of frames ──▶ carrier ──▶ socket, or queue pair
//!   events     ◀── context ◀── dispatch: what a frame means in this phase ◀── carrier
//!                                 └──▶ exposures: the only way from a number in a frame to memory
//! ```
//! Framing, meaning and memory are separate. The exposure table is asked again before every run of
//! bytes, so that a revocation takes effect in the middle of a transfer, and no reference into a
//! lease outlives one call. Both ends authenticate first (`handshake`, `handshake_frames`).
//!
//! Fabrics differ in two traits: `transport` (frames, operations, memory) and
//! `carrier` (how the frames of an open connection travel; over the socket, unless a device carries
//! them).
//!
//! Trade-offs: one staging buffer per fabric, not per connection, so that 4,096 idle connections
//! cost no buffers; a connection owns only what a partial frame needs. Large payload does not pass
//! the staging buffer: one `recvmsg` scatters into the rest of the lease first and into staging
//! after it, so that 256 KiB of payload and the next header cost one system call.

pub(crate) mod bounds;
pub(crate) mod carrier;
pub(crate) mod closing;
pub(crate) mod connection;
pub(crate) mod context;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod exposure;
pub(crate) mod handshake;
pub(crate) mod handshake_frames;
pub(crate) mod operations;
pub(crate) mod over_socket;
pub(crate) mod payload;
pub(crate) mod socket;
pub(crate) mod state;
pub(crate) mod transport;
