//! The endpoint's messages: one fetch, start to finish (those of collectives: `collective.rs`).
//!
//! ```text
//!  reader                                   owner
//!    | FETCH {blocks, first credits}          |
//!    |--------------------------------------->|  resolve, read lengths
//!    |            one-sided WRITEs into credits|
//!    |<=======================================|
//!    |   FETCH_RESPONSE {status, length of each block}|
//!    |<---------------------------------------|
//!    |   DATA_WRITTEN {credit, length, crc}...      |
//!    |<---------------------------------------|
//!    | MORE_BUFFERS {more}                          |  only when the first credits were too small
//!    |--------------------------------------->|
//!    |            WRITEs, DATA_WRITTEN ... (last)   |
//!    |<=======================================|
//! ```
//! If all of it is in frames of the owner that may be read one-sidedly, the owner
//! says where instead, and has no more part in it (unless the request said `push_only`):
//!
//! ```text
//!    |   READ_OFFER {extents, versions}, FETCH_RESPONSE  |
//!    |<---------------------------------------|
//!    |            one-sided READs of extents, then of their versions
//!    |=======================================>|
//! ```
//! The bytes of all blocks with status `Ok` form one dense stream in request order. Credits are
//! filled in the order they were given, each from its start and, except for the stream's last
//! one, to its end. `FETCH_RESPONSE` precedes the first `DATA_WRITTEN`; a `DATA_WRITTEN` follows the writes it names on
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
mod incoming;
mod layout;
mod located;
mod pushed;

pub use collective::{Abort, AbortCause, ClearToSend, ClearToSendHead, DataReady, Join};
pub use failed::{Failed, FailureCode};
pub use fetch::{Fetch, MoreBuffers, RemoteBuffer};
pub use incoming::{Incoming, ToClient, ToMember, ToServer};
pub use layout::{BlockEntry, FetchResponse};
pub use located::{OfferedSlice, ReadOffer, MAX_OFFERED_SLICES, VERSION_BYTES};
pub use pushed::{DataWritten, WrittenBuffer};

use crate::block::BLOCK_ID_BYTES;
use crate::header::MAX_MESSAGE_BYTES;

/// Most blocks one `FETCH` may name.
pub const MAX_BLOCKS: u32 = 32_768;
/// Most credits one `FETCH` or `MORE_BUFFERS` may carry.
pub const MAX_BUFFERS: u32 = 4_096;
/// Longest text of a `FAILED`, in bytes.
pub const MAX_DETAIL_BYTES: usize = 1_024;

const _: () = assert!(
    16 + MAX_BUFFERS as usize * size_of::<RemoteBuffer>() + MAX_BLOCKS as usize * BLOCK_ID_BYTES
        <= MAX_MESSAGE_BYTES as usize,
    "the largest FETCH fits a message; FETCH_RESPONSE, MORE_BUFFERS and DATA_WRITTEN are smaller"
);
