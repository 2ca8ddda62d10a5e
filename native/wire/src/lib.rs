//! Message layouts of Faro's wire protocol. Little-endian, fixed-width, 64-bit offsets.
//!
//! Every frame starts with a [`FrameHeader`]. Kinds below [`kind::FIRST_MESSAGE`] belong to the fabric
//! layer, the others to the endpoint layer, which decodes them with [`message::Incoming`]. Nothing in
//! this crate does I/O.

#[macro_use]
mod coded;

pub mod block;
pub mod bootstrap_id;
pub mod card;
pub mod checksum;
pub mod codes;
pub mod error;
pub mod header;
pub mod message;
pub mod versions;

pub use block::{BlockId, BlockStatus, OutputId};
pub use bootstrap_id::BootstrapId;
pub use card::{Card, CardAddress};
pub use checksum::{crc32c, crc32c_of};
pub use error::WireError;
pub use header::{kind, FrameHeader};
pub use versions::{VersionGap, VersionRange};
