//! Bytes and frames: a pure codec, without I/O and without a connection.
//!
//! ```text
//!   bytes ──▶ [records: opened] ──▶ inbound: framing ──▶ Consumer: kinds, bodies, places for payload
//!   bytes ◀── [records: sealed] ◀── outbound: a queue of outgoing frames, gathered straight from leases
//! ```
//! `inbound` trusts nothing: it knows bytes and bounds, and asks its [`inbound::Consumer`] what a
//! frame means and where a payload goes.

pub(crate) mod bodies;
pub(crate) mod inbound;
pub(crate) mod kinds;
pub(crate) mod outbound;
pub(crate) mod outgoing;
pub(crate) mod payload;
pub(crate) mod records;
