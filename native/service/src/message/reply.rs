//! The answers of the service.

use super::body::{put, Body, MessageError, MAX_LEND, MAX_MESSAGE};
use zeroize::Zeroizing;

/// The first byte of each answer. That of a status is 4, see `status`.
mod kind {
    pub const WELCOME: u8 = 1;
    pub const DONE: u8 = 2;
    pub const REFUSED: u8 = 3;
    pub const BEHIND: u8 = 5;
    pub const LENT: u8 = 6;
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Welcome {
        /// The version of the protocol that both sides speak now.
        version: u16,
        /// The card of the application's endpoint.
        card: Vec<u8>,
    },
    Done,
    /// The answer to `Lend`, in its order.
    Lent(Vec<LoanState>),
    Refused {
        why: Refusal,
        text: String,
    },
    /// Copies that other services do not have yet.
    Behind(u64),
}

/// The state of a map output at the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoanState {
    NotHere = 0,
    /// An index; all partitions are empty.
    Empty = 1,
    /// An index and a data file.
    Whole = 2,
}

impl LoanState {
    /// How many descriptors come with it.
    #[must_use]
    pub fn files(self) -> usize {
        match self {
            Self::NotHere => 0,
            Self::Empty => 1,
            Self::Whole => 2,
        }
    }
}

/// Why the service refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Both sides have no version in common.
    Version = 1,
    /// It does not serve this user.
    User = 2,
    /// A message that cannot be one, or not now.
    Message = 3,
    /// It has as many applications, connections or outputs as it may.
    Full = 4,
    /// The application has as many bytes here as it may.
    Quota = 5,
    /// The files are not those of a map output.
    Files = 6,
    /// The system refused something: no space, no descriptors.
    System = 7,
    /// The application has ended here.
    Ended = 8,
}

impl Refusal {
    fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            kind::WELCOME => Self::Version,
            kind::DONE => Self::User,
            kind::REFUSED => Self::Message,
            4 => Self::Full,
            5 => Self::Quota,
            6 => Self::Files,
            7 => Self::System,
            8 => Self::Ended,
            _ => return None,
        })
    }
}

impl Reply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::new());
        match self {
            Self::Welcome { version, card } => {
                out.push(kind::WELCOME);
                out.extend_from_slice(&version.to_le_bytes());
                put(&mut out, card);
            }
            Self::Done => out.push(kind::DONE),
            Self::Lent(all) => {
                out.push(kind::LENT);
                out.extend_from_slice(&(all.len() as u16).to_le_bytes());
                out.extend(all.iter().map(|lent| *lent as u8));
            }
            Self::Refused { why, text } => {
                out.push(kind::REFUSED);
                out.push(*why as u8);
                let cut = text.char_indices().take(500).last();
                let end = cut.map_or(0, |(at, c)| at + c.len_utf8());
                put(&mut out, &text.as_bytes()[..end]);
            }
            Self::Behind(copies) => {
                out.push(kind::BEHIND);
                out.extend_from_slice(&copies.to_le_bytes());
            }
        }
        out
    }

    /// # Errors
    /// The bytes are no answer of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut body = Body(bytes);
        let reply = match body.u8("kind")? {
            kind::WELCOME => Self::Welcome {
                version: body.version()?,
                card: body.bytes("card", MAX_MESSAGE, "up to 8192")?.to_vec(),
            },
            kind::DONE => Self::Done,
            kind::REFUSED => {
                let code = body.u8("why")?;
                let why = Refusal::of_code(code).ok_or(MessageError::Value {
                    what: "the reason of a refusal",
                    got: code.into(),
                    allowed: "1 to 8",
                })?;
                let text = body.bytes("text", MAX_MESSAGE, "up to 8192")?;
                Self::Refused {
                    why,
                    text: String::from_utf8_lossy(text).into_owned(),
                }
            }
            kind::BEHIND => Self::Behind(body.u64("copies")?),
            kind::LENT => {
                let count = body.count(MAX_LEND, "1 to 1000")?;
                let lent = |_| match body.u8("what is lent")? {
                    0 => Ok(LoanState::NotHere),
                    1 => Ok(LoanState::Empty),
                    2 => Ok(LoanState::Whole),
                    got => Err(MessageError::Value {
                        what: "what is lent",
                        got: got.into(),
                        allowed: "0 to 2",
                    }),
                };
                Self::Lent((0..count).map(lent).collect::<Result<_, _>>()?)
            }
            got => return Err(MessageError::Kind { got }),
        };
        body.end()?;
        Ok(reply)
    }
}
