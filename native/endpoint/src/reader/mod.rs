//! The reader's side of a fetch: from a caller's request to blocks in leases of ours.
//!
//! A [`Request`] is what the caller wants; it survives faults and changes of fabric. An attempt at
//! it on one connection is an [`Attempt`](attempt::Attempt). Blocks are handed out in order, each once: an
//! attempt that follows another one asks only for what was not handed out.
//!
//! Two rooms: [`Links`](links::Links) knows the connections and who waits for one, and
//! [`Attempts`](attempts::Attempts) what is under way on them. [`Reader`] takes things from one to
//! the other.

mod attempt;
mod attempts;
mod links;
#[cfg(test)]
mod links_model;
mod pull;
mod pulling;
mod request;
mod table;

pub(crate) use attempt::Ready;
use request::Next;
pub(crate) use request::{Faults, Request};
pub(crate) use table::{Link, Reader};
