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
//!
//! On a progress thread each part owns its state, and none knows the service:
//!
//! ```text
//!   FetchService   what an event means: starts, moves, ends. Has the parts, and requests whose
//!    │             connection opens
//!    ├─ Attempts ── Attempt ── Stream, Pull    what is on the wire; when to look at it again
//!    ├─ ArenaQueue                             who gets arena memory next, and who gives it up
//!    │     └─ PlaceInOrder                     the oldest request of each thread, for all threads
//!    ├─ BusyServers                            what waits for room at a server
//!    └─ Pulls                                  posted reads; connections whose reads are wrong
//! ```
//! What crosses between the service and the [`ArenaQueue`](arena_queue::ArenaQueue): attempts `join`
//! it, are `granted` memory in a round (`begin_round`, `next`), `leave` it, and give memory up as
//! `relieve` and `judge` say. The table of attempts is an argument of these, so
//! that a test can drive the queue alone.

mod arena_queue;
mod attempt;
mod attempts;
mod busy_servers;
mod checksum;
mod completion;
mod completion_sink;
mod deliver;
mod memory_order;
mod pull;
mod pulls;
mod queue;
mod request;
mod service;

pub use completion::{BufferSlice, Completion, Delivery, FetchFailure, MAX_COMPLETION_QUEUES};
pub(crate) use memory_order::PlaceInOrder;
pub(crate) use queue::{AdmitError, FetchCommand, RequestQueue};
pub(crate) use request::FetchRequest;
pub(crate) use service::FetchService;
