//! `COMMAND` and `COMMAND_ANSWER`: a member of an application tells a peer to do something, and the
//! peer says whether it will. The frame's id is the sender's number of the command.
//!
//! ```text
//!  COMMAND                                            COMMAND_ANSWER
//!   0 u32 command   1 SHUFFLES_REMOVED                 0 u32 status
//!                   2 APPLICATION_ENDED
//!   4 u32 shuffles (n), 0 of APPLICATION_ENDED
//!   8 n x u32 shuffle id, as Spark counts them
//! ```
//! To get a command twice is as to get it once: a sender that has lost the connection sends it again.

use super::body::{put_u32, BodyReader};
use crate::WireError;

/// Maximum number of shuffles that one `COMMAND` may name.
pub const MAX_COMMAND_SHUFFLES: u32 = 1_024;

const SHUFFLES_REMOVED: u32 = 1;
const APPLICATION_ENDED: u32 = 2;

/// `COMMAND`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberCommand {
    /// These shuffles were removed: 1 to [`MAX_COMMAND_SHUFFLES`], ids of Spark's `Int`.
    ShufflesRemoved(Vec<u32>),
    /// The sender's application has ended.
    ApplicationEnded,
}

coded! {
    /// The answer to a `COMMAND`.
    pub enum CommandStatus: "status of a command" {
        /// It will be carried out.
        Accepted = 1,
        /// The peer has too many that are not carried out yet. The sender may try later.
        Busy = 2,
        /// The peer takes no commands.
        Unsupported = 3,
    }
}

impl MemberCommand {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (command, shuffles) = match self {
            Self::ShufflesRemoved(shuffles) => (SHUFFLES_REMOVED, &shuffles[..]),
            Self::ApplicationEnded => (APPLICATION_ENDED, &[][..]),
        };
        let mut out = Vec::with_capacity(8 + shuffles.len() * 4);
        put_u32(&mut out, command as usize);
        put_u32(&mut out, shuffles.len());
        for shuffle in shuffles {
            put_u32(&mut out, *shuffle as usize);
        }
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown command, no shuffle where some
    /// are needed, one where none is, or an id that is no `Int` of Spark.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("COMMAND", body);
        let command = body.u32()?;
        let count = body.count("shuffles of COMMAND", MAX_COMMAND_SHUFFLES)?;
        let decoded = match command {
            SHUFFLES_REMOVED => {
                body.nonzero("shuffles of COMMAND", count as u32)?;
                let shuffles: Result<Vec<u32>, WireError> = (0..count)
                    .map(|_| {
                        let shuffle = body.u32()?;
                        WireError::check_limit("shuffle of COMMAND", shuffle.into(), MAX_SHUFFLE)?;
                        Ok(shuffle)
                    })
                    .collect();
                Self::ShufflesRemoved(shuffles?)
            }
            APPLICATION_ENDED => {
                body.zero(count as u32)?;
                Self::ApplicationEnded
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
const MAX_SHUFFLE: u64 = i32::MAX as u64;

impl CommandStatus {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        (self as u32).to_le_bytes().to_vec()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`; `BadValue` for an unknown status.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("COMMAND_ANSWER", body);
        let status = Self::try_from(body.u32()?)?;
        body.end()?;
        Ok(status)
    }
}
