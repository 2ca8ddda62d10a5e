//! The messages of a collective: how members of a team move parts of their arrays.
//!
//! The header's `id` is the addressed *member*: a random number from its bootstrap id.
//!
//! ```text
//!  receiver of a part                                sender of the part
//!    | JOIN {sender, rank}                              |  once for each pair, both ways
//!    |<------------------------------------------------>|
//!    | CLEAR_TO_SEND {round, step, shape, buffers}      |
//!    |------------------------------------------------->|  compares the shapes
//!    |                    one-sided WRITEs into buffers |
//!    |<=================================================|
//!    | DATA_READY {round, step, buffers}                |
//!    |<-------------------------------------------------|
//!    | ABORT {cause, culprit}                           |  to all members that sent JOIN,
//!    |------------------------------------------------->|  when a member ends or fails
//!
//!  JOIN                   CLEAR_TO_SEND             DATA_READY              ABORT
//!   0 u64 from_member      0 u64 round               0 u64 round             0 u64 round
//!   8 u32 from_rank        8 u64 epoch               8 u32 step              8 u32 from_rank
//!  12 u32 to_rank         16 u64 elements           12 u32 from_rank        12 u32 culprit
//!  16 u32 ranks           24 u32 step               16 u32 buffers (n)      16 u32 cause
//!  20 u32 0               28 u32 from_rank          20 u32 0                20 u32 length of detail
//!                         32 u32 element            24 n x WrittenBuffer    24 detail, UTF-8
//!                         36 u32 operation
//!                         40 u32 mode
//!                         44 u32 group
//!                         48 u32 first_chunk
//!                         52 u32 buffers (n)
//!                         56 n x RemoteBuffer
//! ```
//! A part is cut into chunks of 256 KiB, the last one shorter; a chunk's number is its position in
//! the part. A `CLEAR_TO_SEND` without buffers stands for an empty part: nothing is written, but the
//! shapes are compared. A `DATA_READY` follows the writes it names on the same connection.

use super::body::{put_detail, put_u32, BodyReader};
use super::fetch::buffers;
use super::{RemoteBuffer, WrittenBuffer, MAX_BUFFERS, MAX_DETAIL_BYTES};
use crate::WireError;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `JOIN`: a member tells another member its number and rank, 24 bytes.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct Join {
    /// The sender's number, to which the receiver addresses its messages.
    pub from_member: U64,
    /// Rank of the sender.
    pub from_rank: U32,
    /// Rank of the receiver, as the sender knows it.
    pub to_rank: U32,
    /// Number of ranks in the sender's team, at least 1.
    pub ranks: U32,
    /// Zero.
    pub reserved: U32,
}

impl Join {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`; `BadValue` for a rank beyond the ranks or a reserved field that is not
    /// zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("JOIN", body);
        let join: Self = body.one()?;
        body.zero(join.reserved.get())?;
        for rank in [join.from_rank, join.to_rank] {
            if rank.get() >= join.ranks.get() {
                return Err(WireError::BadValue {
                    what: "rank in JOIN",
                    got: u64::from(rank.get()),
                });
            }
        }
        body.end()?;
        Ok(join)
    }
}

/// Head of a `CLEAR_TO_SEND`, 56 bytes: the shape that all members of a round must agree on, and the
/// part that may be sent.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct ClearToSendHead {
    /// Rounds that the team has done before this one.
    pub round: U64,
    /// Seed of the shuffled groups.
    pub epoch: U64,
    /// Elements in the receiver's whole array.
    pub elements: U64,
    /// Step of the round's plan.
    pub step: U32,
    /// Rank of the part's receiver, which sends this message.
    pub from_rank: U32,
    /// The type of the elements: 1 for 32-bit floats, 2 for 64-bit floats.
    pub element: U32,
    /// The operation: 1 for the sum, 2 for the mean.
    pub operation: U32,
    /// The grouping: 1 for groups of a DS-Sync round, 2 for a grid, 3 for a ring over all members.
    pub mode: U32,
    /// Members of a group in mode 1; otherwise 0.
    pub group: U32,
    /// Number of the chunk that the first buffer is for.
    pub first_chunk: U32,
    /// Number of buffers that follow.
    pub buffers: U32,
}

/// `CLEAR_TO_SEND`: head, buffers for consecutive chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClearToSend {
    /// `encode` sets its `buffers`.
    pub head: ClearToSendHead,
    /// One for each chunk from `first_chunk` on.
    pub buffers: Vec<RemoteBuffer>,
}

impl ClearToSend {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = ClearToSendHead {
            buffers: (self.buffers.len() as u32).into(),
            ..self.head
        };
        let mut out = Vec::with_capacity(size_of::<ClearToSendHead>() + self.buffers.len() * 24);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.buffers.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for an unknown element, operation or mode,
    /// chunks whose numbers overflow, an empty buffer, one whose end overflows, or a reserved field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("CLEAR_TO_SEND", body);
        let head: ClearToSendHead = body.one()?;
        for (what, value, max) in [
            ("element of CLEAR_TO_SEND", head.element, 2),
            ("operation of CLEAR_TO_SEND", head.operation, 2),
            ("mode of CLEAR_TO_SEND", head.mode, 3),
        ] {
            if !(1..=max).contains(&value.get()) {
                let got = u64::from(value.get());
                return Err(WireError::BadValue { what, got });
            }
        }
        let count = head.buffers.get();
        let limit = u64::from(MAX_BUFFERS);
        WireError::check_limit("CLEAR_TO_SEND buffers", u64::from(count), limit)?;
        if head.first_chunk.get().checked_add(count).is_none() {
            return Err(WireError::BadValue {
                what: "first chunk of CLEAR_TO_SEND",
                got: u64::from(head.first_chunk.get()),
            });
        }
        let buffers = buffers(&mut body, count as usize)?;
        body.end()?;
        Ok(Self { head, buffers })
    }
}

/// `DATA_READY`: the chunks that the sender of a part has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataReady {
    /// The `CLEAR_TO_SEND`'s round.
    pub round: u64,
    /// The round's step.
    pub step: u32,
    /// Rank of the part's sender, which sends this message.
    pub from_rank: u32,
    /// `buffer` in each is the chunk's number in its part; at least one.
    pub buffers: Vec<WrittenBuffer>,
}

/// Head of a `DATA_READY`, 24 bytes.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct DataReadyHead {
    round: U64,
    step: U32,
    from_rank: U32,
    buffers: U32,
    reserved: U32,
}

impl DataReady {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let head = DataReadyHead {
            round: self.round.into(),
            step: self.step.into(),
            from_rank: self.from_rank.into(),
            buffers: (self.buffers.len() as u32).into(),
            reserved: 0.into(),
        };
        let mut out = Vec::with_capacity(size_of::<DataReadyHead>() + self.buffers.len() * 16);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.buffers.as_bytes());
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`; `BadValue` for no buffers, an empty one or a reserved
    /// field that is not zero.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("DATA_READY", body);
        let head: DataReadyHead = body.one()?;
        body.zero(head.reserved.get())?;
        body.nonzero("DATA_READY buffers", head.buffers.get())?;
        let (got, limit) = (u64::from(head.buffers.get()), u64::from(MAX_BUFFERS));
        WireError::check_limit("DATA_READY buffers", got, limit)?;
        let buffers: Vec<WrittenBuffer> = body.array(head.buffers.get() as usize)?;
        for buffer in &buffers {
            body.nonzero("length of a written buffer", buffer.length.get())?;
            body.zero(buffer.unsummed.get())?;
        }
        body.end()?;
        Ok(Self {
            round: head.round.get(),
            step: head.step.get(),
            from_rank: head.from_rank.get(),
            buffers,
        })
    }
}

coded! {
    /// Reason why a member leaves its team.
    pub enum AbortCause: "cause of ABORT" {
        /// The member's caller closed it.
        Left = 1,
        /// The member's connection to the culprit is lost.
        Lost = 2,
        /// The culprit's array or settings differ from its own.
        Mismatch = 3,
        /// The culprit's array holds a NaN.
        NotANumber = 4,
        /// The culprit did not answer before the deadline.
        TimedOut = 5,
        /// Bytes from the culprit arrived with a wrong CRC.
        Corrupt = 6,
        /// The culprit's caller cancelled, or the culprit has a fault that the detail names.
        GaveUp = 7,
    }
}

/// `ABORT`: the sender leaves its team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// Rounds that the sender has completed.
    pub round: u64,
    /// Rank of the sender.
    pub from_rank: u32,
    /// Rank of the member at fault; the sender's own for `Left`.
    pub culprit: u32,
    /// Reason why the sender leaves.
    pub cause: AbortCause,
    /// Text for people; `encode` cuts it at [`MAX_DETAIL_BYTES`].
    pub detail: String,
}

impl Abort {
    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.detail.len().min(MAX_DETAIL_BYTES));
        out.extend_from_slice(&self.round.to_le_bytes());
        put_u32(&mut out, self.from_rank as usize);
        put_u32(&mut out, self.culprit as usize);
        put_u32(&mut out, self.cause as usize);
        put_detail(&mut out, &self.detail);
        out
    }

    /// Reads a body.
    ///
    /// # Errors
    /// `Truncated`, `Trailing`, `TooLarge`, `NotUtf8`; `BadValue` for an unknown cause.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = BodyReader::new("ABORT", body);
        let round: U64 = body.one()?;
        let (from_rank, culprit) = (body.u32()?, body.u32()?);
        let cause = AbortCause::try_from(body.u32()?)?;
        let detail = body.detail("ABORT detail")?;
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
