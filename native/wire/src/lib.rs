//! Message layouts of Faro's wire protocol, version 1. Little-endian, fixed-width, 64-bit offsets.
//!
//! Every frame starts with a [`FrameHeader`]. The fabric layer owns kinds below
//! [`kind::FIRST_MESSAGE`]; the endpoint layer owns the rest. Nothing in this crate does I/O.

#[macro_use]
mod coded;

pub mod block;
pub mod card;
pub mod checksum;
pub mod crossing;
pub mod error;
pub mod header;
pub mod invitation;
pub mod message;

pub use block::{BlockId, BlockStatus, OutputId};
pub use card::{Card, CardAddress};
pub use checksum::crc32c;
pub use error::WireError;
pub use header::{kind, FrameHeader};
pub use invitation::BootstrapId;
