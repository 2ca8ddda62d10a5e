//! The endpoint's messages: one fetch, start to finish (those of collectives: `collective.rs`).
//!
//! ```text
//!  reader                                   owner
//!    | FETCH {blocks, first credits}          |
//!    |--------------------------------------->|  resolve, read lengths
//!    |            one-sided WRITEs into credits|
//!    |<=======================================|
//!    |   LAYOUT {status, length of each block}|
//!    |<---------------------------------------|
//!    |   PUSHED {credit, length, crc}...      |
//!    |<---------------------------------------|
//!    | CREDIT {more}                          |  only when the first credits were too small
//!    |--------------------------------------->|
//!    |            WRITEs, PUSHED ... (last)   |
//!    |<=======================================|
//! ```
//! If all of it is in frames of the owner that may be read one-sidedly, the owner
//! says where instead, and has no more part in it (unless the request said `push_only`):
//!
//! ```text
//!    |   LOCATED {extents, versions}, LAYOUT  |
//!    |<---------------------------------------|
//!    |            one-sided READs of extents, then of their versions
//!    |=======================================>|
//! ```
//! The bytes of all blocks with status `Ok` form one dense stream in request order. Credits are
//! filled in the order they were given, each from its start and, except for the stream's last
//! one, to its end. `LAYOUT` precedes the first `PUSHED`; a `PUSHED` follows the writes it names on
//! the same connection. `FAILED` ends a request at any time, after it no write will come.

//!
//! Decoders take the whole body and check all that the body alone can show: lengths, counts,
//! reserved fields, unknown codes, runs of zero bytes. What needs the request to judge (a block
//! that is not there, a credit that was never given) is its owner's or reader's to answer. For
//! every accepted body, encoding what was decoded gives the same bytes again.

mod body;
mod collective;
mod failed;
mod fetch;
mod layout;
mod located;
mod pushed;

pub use collective::{Farewell, FarewellCause, Grant, GrantHead, Knock, Landed};
pub use failed::{Failed, FailureCode};
pub use fetch::{Credit, Fetch, MoreCredit};
pub use layout::{BlockEntry, Layout};
pub use located::{Extent, Located, MAX_EXTENTS, VERSION_BYTES};
pub use pushed::{Chunk, Pushed};

use crate::block::BLOCK_ID_BYTES;
use crate::header::MAX_MESSAGE_BYTES;

/// Most blocks one `FETCH` may name.
pub const MAX_BLOCKS: u32 = 32_768;
/// Most credits one `FETCH` or `CREDIT` may carry.
pub const MAX_CREDITS: u32 = 4_096;
/// Longest text of a `FAILED`, in bytes.
pub const MAX_DETAIL_BYTES: usize = 1_024;

const _: () = assert!(
    16 + MAX_CREDITS as usize * size_of::<Credit>() + MAX_BLOCKS as usize * BLOCK_ID_BYTES
        <= MAX_MESSAGE_BYTES as usize,
    "the largest FETCH fits a message; LAYOUT, CREDIT and PUSHED are smaller"
);
