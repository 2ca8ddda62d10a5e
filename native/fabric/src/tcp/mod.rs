//! TCP: frames and payload on one connection per direction of interest.
//!
//! A write is a frame with its payload, received straight into the exposed lease. `Done` means that
//! the kernel has the bytes and the source may be reused. Waiting for the target's answer would
//! double the frames and hold every lease for a round trip, and no caller needs it: that the bytes
//! are in place and right follows from the messages after the write, and their CRC. The target
//! names a refused write to the writer (WRITE_ACK); there it ends `Refused` if it has not ended
//! yet, and counts in any case (`writes_refused_by_peer`).
//!
//! A read is a request and a reply with the payload, sent straight from the exposed lease. A
//! `Readable` that was revoked while replies were queued stays alive by its `Arc` until they are
//! sent; new requests are refused.

mod datapath;
mod listener;
mod setup;
mod shared_port;
mod socket;

pub use crate::session::bounds::{Bounds, MAX_HANDSHAKE_BYTES};
pub(crate) use listener::StreamListener;
pub use setup::TcpConfig;
pub use shared_port::{PortAcceptor, PortCounts, SharedPort};
pub use socket::resolve;
pub(crate) use socket::{connect, listen, parse};

/// The TCP fabric.
pub type TcpFabric = crate::reactor::event_loop::Reactor<datapath::Tcp>;
