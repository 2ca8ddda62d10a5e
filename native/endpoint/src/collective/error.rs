//! Why a round, or a team, did not come about.

use super::ArrayFault;
use crate::EndpointError;
use faro_exchange::ExchangeError;
use faro_pool::PoolError;
use faro_wire::message::AbortCause;
use faro_wire::WireError;
use thiserror::Error;

/// See the module's comment. After any error of a round the team does no further one.
#[derive(Debug, Clone, Error)]
pub enum CollectiveError {
    /// A member kept the round from its end; every member that needs it gets the same error.
    #[error("round {round}: {detail}")]
    Failed {
        /// What happened.
        cause: AbortCause,
        /// The member that it happened to, or that did it.
        rank: u32,
        /// Rounds that were completed before.
        round: u64,
        /// Names the rank and the values.
        detail: String,
    },
    /// The seat or its endpoint was closed.
    #[error("the seat was closed")]
    Closed,
    /// The rank is none of the team's.
    #[error("rank {rank} in a team of {ranks}, 0 to {} are possible", ranks.saturating_sub(1))]
    BadRank { rank: usize, ranks: usize },
    /// The seat is not the one that the others were told of.
    #[error("the invitation at position {rank} is not this seat's own")]
    NotOurs { rank: usize },
    /// A member's invitation cannot be read.
    #[error("invitation of rank {rank}: {source}")]
    BootstrapId { rank: usize, source: WireError },
    /// Group or number of ranks.
    #[error(transparent)]
    Plan(#[from] ExchangeError),
    /// The arena has no frame for a team.
    #[error("no memory for a team: {0}")]
    Memory(PoolError),
    /// The caller's array.
    #[error("the array cannot be reached: {0}")]
    Array(String),
    /// No randomness for a seat.
    #[error("no seat: {0}")]
    NoSeat(String),
}

impl From<ArrayFault> for CollectiveError {
    fn from(fault: ArrayFault) -> Self {
        Self::Array(fault.0)
    }
}

impl From<CollectiveError> for EndpointError {
    fn from(error: CollectiveError) -> Self {
        Self::Collective(error)
    }
}
