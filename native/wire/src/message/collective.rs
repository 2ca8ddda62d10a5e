//! The messages of a collective: how members of a team move parts of their arrays.
//!
//! The header's `id` is the addressed *seat*, a random number that its member told the others.
//!
//! ```text
//!  receiver of a part                        its sender
//!    | JOIN {who I am}                         |  once for each pair, both ways
//!    |<---------------------------------------->|
//!    | CLEAR_TO_SEND {round, step, shape, credits}      |
//!    |----------------------------------------->|  are the shapes the same?
//!    |             one-sided WRITEs into credits|
//!    |<=========================================|
//!    | DATA_READY {round, step, chunks}             |
//!    |<-----------------------------------------|
//!    | ABORT {cause, culprit}                |  to all who knocked, when a member ends or fails
//!
//!  JOIN                 CLEAR_TO_SEND                     DATA_READY                ABORT
//!   0 u64 from_seat       0 u64 round               0 u64 round           0 u64 round
//!   8 u32 from_rank       8 u64 epoch               8 u32 step            8 u32 from_rank
//!  12 u32 to_rank        16 u64 elements           12 u32 from_rank      12 u32 culprit
//!  16 u32 ranks          24 u32 step               16 u32 chunks (c)     16 u32 cause
//!  20 u32 0              28 u32 from_rank          20 u32 0              20 u32 length of detail
//!                        32 u32 element            24 c x WrittenBuffer          24 detail, UTF-8
//!                        36 u32 operation
//!                        40 u32 mode
//!                        44 u32 group
//!                        48 u32 first_chunk
//!                        52 u32 credits (c)
//!                        56 c x RemoteBuffer
//! ```
//! A part is cut into chunks of a frame (256 KiB), the last one shorter; a chunk's number is its
//! position in the part. A `CLEAR_TO_SEND` without credits says "an empty part: nothing to write", so that
//! shapes are compared even then. A `DATA_READY` follows the writes it names on the same connection.

use super::body::{put_u32, Body};
use super::{RemoteBuffer, WrittenBuffer, MAX_BUFFERS, MAX_DETAIL_BYTES};
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `JOIN`: a member makes itself known to another one, 24 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Join {
    /// Seat of the sender; where a `ABORT` goes.
    pub from_seat: U64,
    /// Rank of the sender.
    pub from_rank: U32,
    /// Rank that the sender takes the addressed seat for.
    pub to_rank: U32,
    /// Number of ranks in the sender's team, at least 1.
    pub ranks: U32,
    /// Zero.
    pub reserved: U32,
}

impl Join {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`; `BadValue` for a rank beyond the ranks or a reserved field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("JOIN", body);
        let knock: Self = body.one()?;
        body.zero(knock.reserved.get())?;
        for rank in [knock.from_rank, knock.to_rank] {
            if rank.get() >= knock.ranks.get() {
                return Err(WireError::BadValue {
                    what: "rank in JOIN",
                    got: u64::from(rank.get()),
                });
            }
        }
        body.end()?;
        Ok(knock)
    }
}

/// What all members of a round must agree on, and which part is asked for: the head of a `CLEAR_TO_SEND`,
/// 56 bytes with the count of credits.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ClearToSendHead {
    /// Rounds that the team did before this one.
    pub round: U64,
    /// Seed of the shuffled groups.
    pub epoch: U64,
    /// Elements in the receiver's whole array.
    pub elements: U64,
    /// Step of the round's plan.
    pub step: U32,
    /// Rank of the receiver, who grants.
    pub from_rank: U32,
    /// 1: 32-bit floats, 2: 64-bit floats.
    pub element: U32,
    /// 1: sum, 2: mean.
    pub operation: U32,
    /// 1: groups of a DS-Sync round, 2: grid, 3: ring over all.
    pub mode: U32,
    /// Members of a group; 0 but for mode 1.
    pub group: U32,
    /// WrittenBuffer that the first credit is for.
    pub first_chunk: U32,
    /// Credits that follow.
    pub credits: U32,
}

/// `CLEAR_TO_SEND`: head, credits for consecutive chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearToSend {
    /// `credits` in it is set by `encode`.
    pub head: ClearToSendHead,
    /// One for each chunk from `first_chunk` on.
    pub credits: Vec<RemoteBuffer>,
}

impl ClearToSend {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = ClearToSendHead {
            credits: (self.credits.len() as u32).into(),
            ..self.head
        };
        let mut out = Vec::with_capacity(size_of::<ClearToSendHead>() + self.credits.len() * 24);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.credits.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown element, operation or mode,
    /// chunks whose numbers overflow, an empty credit, or a reserved field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("CLEAR_TO_SEND", body);
        let head: ClearToSendHead = body.one()?;
        for (what, value, most) in [
            ("element of CLEAR_TO_SEND", head.element, 2),
            ("operation of CLEAR_TO_SEND", head.operation, 2),
            ("mode of CLEAR_TO_SEND", head.mode, 3),
        ] {
            if !(1..=most).contains(&value.get()) {
                let got = u64::from(value.get());
                return Err(WireError::BadValue { what, got });
            }
        }
        let count = head.credits.get();
        if count > MAX_BUFFERS {
            return Err(WireError::TooLarge {
                what: "CLEAR_TO_SEND credits",
                got: u64::from(count),
                limit: u64::from(MAX_BUFFERS),
            });
        }
        if head.first_chunk.get().checked_add(count).is_none() {
            return Err(WireError::BadValue {
                what: "first chunk of CLEAR_TO_SEND",
                got: u64::from(head.first_chunk.get()),
            });
        }
        let credits: Vec<RemoteBuffer> = body.array(count as usize)?;
        for credit in &credits {
            body.nonzero("length of a credit", credit.length.get())?;
            body.zero(credit.reserved.get())?;
        }
        body.end()?;
        Ok(Self { head, credits })
    }
}

/// `DATA_READY`: which granted chunks were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReady {
    /// Round.
    pub round: u64,
    /// Step.
    pub step: u32,
    /// Rank of the writer.
    pub from_rank: u32,
    /// `credit` in each is the chunk's number in its part.
    pub chunks: Vec<WrittenBuffer>,
}

/// 24 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LandedHead {
    round: U64,
    step: U32,
    from_rank: U32,
    chunks: U32,
    reserved: U32,
}

impl DataReady {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = LandedHead {
            round: self.round.into(),
            step: self.step.into(),
            from_rank: self.from_rank.into(),
            chunks: (self.chunks.len() as u32).into(),
            reserved: 0.into(),
        };
        let mut out = Vec::with_capacity(size_of::<LandedHead>() + self.chunks.len() * 16);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.chunks.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no chunks, an empty one or a reserved
    /// field in use.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("DATA_READY", body);
        let head: LandedHead = body.one()?;
        body.zero(head.reserved.get())?;
        body.nonzero("DATA_READY chunks", head.chunks.get())?;
        if head.chunks.get() > MAX_BUFFERS {
            return Err(WireError::TooLarge {
                what: "DATA_READY chunks",
                got: u64::from(head.chunks.get()),
                limit: u64::from(MAX_BUFFERS),
            });
        }
        let chunks: Vec<WrittenBuffer> = body.array(head.chunks.get() as usize)?;
        for chunk in &chunks {
            body.nonzero("length of a chunk", chunk.length.get())?;
            body.zero(chunk.reserved.get())?;
        }
        body.end()?;
        Ok(Self {
            round: head.round.get(),
            step: head.step.get(),
            from_rank: head.from_rank.get(),
            chunks,
        })
    }
}

coded! {
    /// Why a member takes no further part.
    pub enum AbortCause: "cause of ABORT" {
        /// It closed its seat.
        Left = 1,
        /// It cannot reach the culprit any more.
        Lost = 2,
        /// The culprit's array or settings are not its own.
        Mismatch = 3,
        /// The culprit has a value that is not a number.
        NotANumber = 4,
        /// The culprit did not do its part in time.
        TimedOut = 5,
        /// Bytes of the culprit arrived damaged.
        Corrupt = 6,
        /// The culprit's caller gave up, or it has a fault of its own, named in the detail.
        GaveUp = 7,
    }
}

/// `ABORT`: a member takes no further part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// Rounds that it completed.
    pub round: u64,
    /// Who says so.
    pub from_rank: u32,
    /// The rank with which it began; the sender's own for `Left`.
    pub culprit: u32,
    /// Why.
    pub cause: AbortCause,
    /// What a person should read; cut at [`MAX_DETAIL_BYTES`].
    pub detail: String,
}

impl Abort {
    /// The body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut end = self.detail.len().min(MAX_DETAIL_BYTES);
        while !self.detail.is_char_boundary(end) {
            end -= 1;
        }
        let detail = &self.detail[..end];
        let mut out = Vec::with_capacity(24 + detail.len());
        out.extend_from_slice(&self.round.to_le_bytes());
        put_u32(&mut out, self.from_rank as usize);
        put_u32(&mut out, self.culprit as usize);
        put_u32(&mut out, self.cause as usize);
        put_u32(&mut out, detail.len());
        out.extend_from_slice(detail.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`, `NotUtf8`; `BadValue` for an unknown cause.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = Body::new("ABORT", body);
        let round: U64 = body.one()?;
        let (from_rank, culprit) = (body.u32()?, body.u32()?);
        let cause = AbortCause::try_from(body.u32()?)?;
        let length = body.count("ABORT detail", MAX_DETAIL_BYTES as u32)?;
        let detail = std::str::from_utf8(body.bytes(length)?)
            .map_err(|_| WireError::NotUtf8 {
                what: "ABORT detail",
            })?
            .to_owned();
        body.end()?;
        Ok(Self {
            round: round.get(),
            from_rank,
            culprit,
            cause,
            detail,
        })
    }
}
