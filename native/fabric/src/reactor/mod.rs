//! The event loop of a fabric: poll, deadlines, and the way of each event to its connection.
//!
//! ```text
//!   Fabric calls ──▶ event_loop ──▶ table ──▶ session: one connection at a time
//!                                   │            └── closing: ended, but the peer may still read GOODBYE
//!                                   ├── acceptor, opening, unauthenticated: connections that are not open yet
//!                                   └── device_turn, driver: a device's completions and reports, each to its connection
//! ```
//! Readiness is edge-triggered; so each connection remembers whether it was drained, and those that
//! used up their budget are served again before the next wait.
//!
//! Source: the split of transport contract and datapath follows eRPC's `transport.h`; the bounded
//! handshake and the wait after GOODBYE follow RFC 9113 section 9 (GOAWAY) and RFC 9112 9.6.

mod acceptor;
mod closing_connections;
mod device_turn;
pub(crate) mod driver;
pub(crate) mod event_loop;
pub(crate) mod listener;
mod opening_connections;
mod table;
pub(crate) mod unauthenticated;
