//! The endpoint's messages. One fetch, from start to end (collectives: `collective.rs`, commands:
//! `command.rs`):
//!
//! ```text
//!  client                                            server
//!    | FETCH {blocks, first buffers}                    |
//!    |------------------------------------------------->|  finds the blocks, reads their lengths
//!    |                    one-sided WRITEs into buffers |
//!    |<=================================================|
//!    | FETCH_RESPONSE {status, length of each block}    |
//!    |<-------------------------------------------------|
//!    | DATA_WRITTEN {buffer, length, crc} ...           |
//!    |<-------------------------------------------------|
//!    | MORE_BUFFERS {buffers}                           |  only if the first buffers were too small
//!    |------------------------------------------------->|
//!    |              WRITEs, DATA_WRITTEN ... (last)     |
//!    |<=================================================|
//! ```
//! If all bytes are in pages of the server that may be read one-sidedly, the server may answer
//! with their location instead and has then finished the request (not if the `FETCH` says
//! `writes_only`):
//!
//! ```text
//!    | READ_OFFER {slices, versions}, FETCH_RESPONSE    |
//!    |<-------------------------------------------------|
//!    |    one-sided READs of slices, then of versions   |
//!    |=================================================>|
//! ```
//! The bytes of all blocks with status `Ok` form one dense stream in request order. The server fills
//! buffers in the order the client sent them, each from its start and, except for the stream's last
//! one, to its end. `FETCH_RESPONSE` precedes the first `DATA_WRITTEN`; a `DATA_WRITTEN` follows the
//! writes it names on the same connection. `FAILED` ends a request at any time; no write follows it.
//!
//! Decoders take the whole body and check all that the body alone can show: lengths, counts,
//! reserved fields, unknown codes, runs of zero bytes. What only the request can show (a block that
//! does not exist, a buffer that was never sent) the server or the client checks. For every accepted
//! body, encoding the decoded message gives the same bytes again.

mod block_list;
mod body;
mod collective;
mod command;
mod data_written;
mod failed;
mod fetch;
mod fetch_response;
mod incoming;
mod read_offer;

pub use collective::{Abort, AbortCause, ClearToSend, ClearToSendHead, DataReady, Join};
pub use command::{CommandReply, CommandStatus, MemberCommand, MAX_COMMAND_IDS, MAX_CONTENT_BYTES};
pub use data_written::{DataWritten, WrittenBuffer};
pub use failed::{Failed, FailureCode};
pub use fetch::{Fetch, MoreBuffers, RemoteBuffer};
pub use fetch_response::{BlockEntry, FetchResponse};
pub use incoming::{Incoming, ToClient, ToCommands, ToMember, ToServer};
pub use read_offer::{
    OfferedSlice, ReadOffer, MAX_OFFERED_SLICES, MAX_OFFERED_SLICE_BYTES, VERSION_BYTES,
};

use crate::header::MAX_MESSAGE_BYTES;

/// Maximum number of blocks that one `FETCH` may name.
pub const MAX_BLOCKS: u32 = 32_768;
/// Maximum number of buffers that one message may name.
pub const MAX_BUFFERS: u32 = 4_096;
/// Longest text of a `FAILED`, in bytes.
pub const MAX_DETAIL_BYTES: usize = 1_024;

const _: () = assert!(
    16 + MAX_BUFFERS as usize * size_of::<RemoteBuffer>()
        + MAX_BLOCKS as usize * block_list::MAX_BYTES_PER_BLOCK
        <= MAX_MESSAGE_BYTES as usize,
    "the largest FETCH fits a message; FETCH_RESPONSE, MORE_BUFFERS and DATA_WRITTEN are smaller"
);
