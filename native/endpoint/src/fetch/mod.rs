//! The client's side of a fetch: from a caller's request to blocks in leases of ours.
//!
//! ```text
//!   caller ─ fetch ─▶ RequestQueue ─ route, permit ─▶ FetchService: one of each progress thread
//!     ▲                                                   │ Attempt: one request on one connection
//!     └── completions ◀── blocks, each once ◀─────────────┘   written by the server, or read by a Pull
//! ```
//! A [`Request`] is what the caller wants; it survives faults and changes of fabric. An attempt at
//! it on one connection is an [`Attempt`](attempt::Attempt). Blocks are handed out in order, each
//! once: an attempt that follows another one asks only for what was not handed out.

mod attempt;
mod awaiting_room;
mod buffers;
mod busy_servers;
mod completion;
mod completion_sink;
mod deliver;
mod overdue;
mod pull;
mod pull_service;
mod queue;
mod request;
mod service;
mod silent;
mod termination;

pub use completion::{BufferSlice, Completion, Delivery, FetchFailure, MAX_COMPLETION_QUEUES};
pub(crate) use queue::{AdmitError, Command, RequestQueue};
pub(crate) use request::Request;
pub(crate) use service::FetchService;
