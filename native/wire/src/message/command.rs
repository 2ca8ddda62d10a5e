//! `COMMAND` and `COMMAND_ANSWER`: a member of an application tells a peer to do something, or asks
//! it for the list of its map outputs and for their indexes. The frame's id is the sender's number
//! of the command.
//!
//! ```text
//!  COMMAND                                            COMMAND_ANSWER
//!   0 u32 command   1 SHUFFLES_REMOVED                 0 u32 status, 0x16 CONTENT
//!                   2 APPLICATION_ENDED                4 u32 bytes (m), 0 unless CONTENT
//!                   3 SEND_PAGE                        8 m bytes
//!                   4 SEND_INDEXES
//!   4 u32 ids (n)
//!   8 SHUFFLES_REMOVED: n x u32 shuffle id, as Spark counts them
//!     SEND_PAGE: u64 page
//!     SEND_INDEXES: u64 first byte of all indexes together, then n x (u32 shuffle id, i64 map id)
//! ```
//! To get a command twice is as to get it once: a sender that has lost the connection sends it again.

use super::body::{put_u32, BodyReader};
use crate::{OutputId, WireError};
use zerocopy::little_endian::{I64, U64};

/// Maximum number of shuffles or outputs that one `COMMAND` may name.
pub const MAX_COMMAND_IDS: u32 = 1_024;
/// Maximum number of bytes of a `COMMAND_ANSWER`'s content.
pub const MAX_CONTENT_BYTES: u32 = 1 << 20;

const SHUFFLES_REMOVED: u32 = 1;
const APPLICATION_ENDED: u32 = 2;
const SEND_PAGE: u32 = 3;
const SEND_INDEXES: u32 = 4;
const CONTENT: u32 = 0x16;

/// `COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberCommand {
    /// These shuffles were removed: 1 to [`MAX_COMMAND_IDS`], ids of Spark's `Int`.
    ShufflesRemoved(Vec<u32>),
    /// The sender's application has ended.
    ApplicationEnded,
    /// The sender wants this page of the peer's list.
    SendPage(u64),
    /// The sender wants the index files of outputs, one after the other.
    SendIndexes {
        /// 1 to [`MAX_COMMAND_IDS`]; shuffle ids of Spark's `Int`.
        outputs: Vec<OutputId>,
        /// The first byte that the sender does not have yet.
        from: u64,
    },
}

coded! {
    /// A `COMMAND_ANSWER` without content. No code is one of a command.
    pub enum CommandStatus: "status of a command" {
        /// It will be carried out.
        Accepted = 0x11,
        /// The peer has too many that are not carried out yet. The sender may try later.
        Busy = 0x12,
        /// The peer takes no commands.
        Unsupported = 0x13,
        /// The peer does not have what the sender wants.
        Unknown = 0x14,
        /// The peer cannot read what the sender wants.
        Unreadable = 0x15,
    }
}

/// `COMMAND_ANSWER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandReply {
    /// All but content.
    Status(CommandStatus),
    /// What the sender wants, up to [`MAX_CONTENT_BYTES`] of it.
    Content(Vec<u8>),
}

impl MemberCommand {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut head = |command: u32, count: usize| {
            put_u32(&mut out, command as usize);
            put_u32(&mut out, count);
        };
        match self {
            Self::ShufflesRemoved(shuffles) => {
                head(SHUFFLES_REMOVED, shuffles.len());
                for shuffle in shuffles {
                    put_u32(&mut out, *shuffle as usize);
                }
            }
            Self::ApplicationEnded => head(APPLICATION_ENDED, 0),
            Self::SendPage(page) => {
                head(SEND_PAGE, 0);
                out.extend_from_slice(&page.to_le_bytes());
            }
            Self::SendIndexes { outputs, from } => {
                head(SEND_INDEXES, outputs.len());
                out.extend_from_slice(&from.to_le_bytes());
                for output in outputs {
                    put_u32(&mut out, output.shuffle_id as usize);
                    out.extend_from_slice(&output.map_id.to_le_bytes());
                }
            }
        }
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown command, no shuffle or output
    /// where some are needed, one where none is, or an id that is no `Int` of Spark.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("COMMAND", body);
        let command = body.u32()?;
        let count = body.count("ids of COMMAND", MAX_COMMAND_IDS)?;
        match command {
            APPLICATION_ENDED | SEND_PAGE => body.zero(count as u32)?,
            _ => body.nonzero("ids of COMMAND", count as u32)?,
        }
        let decoded = match command {
            SHUFFLES_REMOVED => {
                let shuffles = (0..count).map(|_| shuffle(&mut body));
                Self::ShufflesRemoved(shuffles.collect::<Result<_, _>>()?)
            }
            APPLICATION_ENDED => Self::ApplicationEnded,
            SEND_PAGE => Self::SendPage(body.one::<U64>()?.get()),
            SEND_INDEXES => {
                let from = body.one::<U64>()?.get();
                let outputs = (0..count).map(|_| {
                    Ok(OutputId {
                        shuffle_id: shuffle(&mut body)?,
                        map_id: body.one::<I64>()?.get(),
                    })
                });
                let outputs = outputs.collect::<Result<_, WireError>>()?;
                Self::SendIndexes { outputs, from }
            }
            got => {
                return Err(WireError::BadValue {
                    what: "command",
                    got: u64::from(got),
                })
            }
        };
        body.end()?;
        Ok(decoded)
    }
}

/// Spark counts shuffles from 0 as an `Int`.
fn shuffle(body: &mut BodyReader<'_>) -> Result<u32, WireError> {
    let shuffle = body.u32()?;
    WireError::check_limit("shuffle of COMMAND", shuffle.into(), i32::MAX as u64)?;
    Ok(shuffle)
}

impl CommandReply {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (status, content) = match self {
            Self::Status(status) => (*status as usize, &[][..]),
            Self::Content(bytes) => (CONTENT as usize, &bytes[..]),
        };
        let mut out = Vec::with_capacity(8 + content.len());
        put_u32(&mut out, status);
        put_u32(&mut out, content.len());
        out.extend_from_slice(content);
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown status, or one with content
    /// that has none.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("COMMAND_ANSWER", body);
        let status = body.u32()?;
        let count = body.count("content of COMMAND_ANSWER", MAX_CONTENT_BYTES)?;
        let decoded = if status == CONTENT {
            Self::Content(body.bytes(count)?.to_vec())
        } else {
            body.zero(count as u32)?;
            Self::Status(CommandStatus::try_from(status)?)
        };
        body.end()?;
        Ok(decoded)
    }
}
