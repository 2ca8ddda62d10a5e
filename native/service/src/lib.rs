//! The node service: keeps the map outputs of a host's executors when those have ended, and serves them.
//!
//! ```text
//!   executor ── client ──▶ Unix socket (SEQPACKET, SCM_RIGHTS) ──▶ listener, connection ──▶ service ──▶ application
//!                                                                                              │           │
//!   options    what the daemon is started with                                                 │           ├─ store     links (named in `links`), descriptors
//!   message    the layouts of requests and answers; no I/O                                     │           └─ endpoint  serves readers
//!   socket     one message and its descriptors                                                 └─ record    what a restart finds
//!   handed     what was handed over, checked
//!   disk       threads of an application for what its disk may keep waiting
//!   lending    files on their way to readers, counted until they are taken
//!   shares     of bounds of which nobody may take all; `lines` of the log that others cause
//!   lend       which outputs a reader of this host may read, and their files; `borrow` is the reader's side
//!   directories   those of the service, locked
//!   places     the directory of each application: made, found after a restart, removed
//!   orphaned   what an application has left here before a restart
//!   known      an application that is served, or that a service before this one has left
//!   serving    an application's endpoint, and the thread that tells it where files are
//!   connections   how many there are, in all and of each user
//!   replica    copies on the services of other hosts
//!   control_client   tells services of hosts without an executor what executors tell the others; control_inbox hears it
//!   port       the TCP port of all applications' endpoints, and the thread that accepts at it
//!   counters   what it counted since its start
//!   status     what it has and did: for `faro serve status`, `faro doctor`, and Prometheus (metrics)
//! ```
//! An application proves itself by a token that only its executors know; its name here is a hash of it. So one
//! application can neither name nor guess another's outputs, and cannot take its name. Each has an endpoint of its own,
//! with a card of its own, that knows its outputs only; all of them are behind one TCP port. A client names no path: it passes open files.

mod application;
mod application_state;
mod borrow;
mod client;
mod connection;
mod connections;
mod control_client;
mod control_inbox;
mod counters;
mod directories;
mod disk;
mod error;
mod handed_over;
mod lend;
mod lending;
mod lines;
mod links;
mod listener;
mod message;
mod metrics;
mod options;
mod orphaned;
mod places;
mod port;
mod record;
mod replica;
mod service;
mod serving;
mod shares;
mod socket;
mod status;
mod store;

pub use client::{Client, ClientError};
pub use control_client::{tell, ApplicationMember, MAX_SHUFFLES};
pub use error::ServiceError;
pub use listener::Listener;
pub use message::{
    Hello, Key, LoanState, Refusal, Reply, Request, Token, MAX_LEND, MAX_LEND_FILES, MAX_MESSAGE,
    VERSIONS,
};
pub use metrics::Metrics;
pub use options::{Options, Users, CONNECTIONS, SOCKET};
pub use port::PortError;
pub use record::Record;
pub use replica::order;
pub use service::Service;
pub use socket::{receive, send, ReceivedMessage, SocketError};
pub use status::{ask_status, figure, ApplicationStatus, Figures, Status};
