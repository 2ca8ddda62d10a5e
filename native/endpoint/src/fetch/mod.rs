//! The client's side of a fetch: turns a caller's request into blocks in leases of this process.
//!
//! ```text
//!   caller ─ fetch ─▶ RequestQueue ─ route, permit ─▶ FetchService: one of each progress thread
//!     ▲                                                   │ Attempt: one request on one connection
//!     └── completions ◀── blocks, each once ◀─────────────┘   written by the server, or read by a Pull
//! ```
//! A [`FetchRequest`] holds what the caller asked for; it survives faults and changes of fabric. An
//! [`Attempt`](attempt::Attempt) is one try of it on one connection. Blocks are handed out in
//! order, each once: an attempt that follows another one asks only for blocks that were not handed
//! out.

mod attempt;
mod attempts;
mod awaiting_room;
mod buffers;
mod busy_servers;
mod checksum;
mod completion;
mod completion_sink;
mod deliver;
mod memory_order;
mod overdue;
mod pull;
mod pull_service;
mod pulls;
mod queue;
mod request;
mod server_activity;
mod service;
mod shortage;
mod silent;
mod start;
mod termination;
mod write_service;

pub use completion::{BufferSlice, Completion, Delivery, FetchFailure, MAX_COMPLETION_QUEUES};
pub(crate) use memory_order::PlaceInOrder;
pub(crate) use queue::{AdmitError, FetchCommand, RequestQueue};
pub(crate) use request::FetchRequest;
pub(crate) use service::FetchService;
