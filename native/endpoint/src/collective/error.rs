//! Errors of rounds and of making teams.

use super::ArrayFault;
use faro_exchange::ExchangeError;
use faro_pool::PoolError;
use faro_secure::KeyError;
use faro_wire::message::AbortCause;
use faro_wire::WireError;
use thiserror::Error;

/// Reason why a round or a team failed. After any error of a round the team does no further one.
#[derive(Debug, Clone, Error)]
pub enum CollectiveError {
    /// A member failed; every member that needs it in this round gets the same error.
    #[error("round {round}: {detail}")]
    Failed {
        /// Cause of the failure.
        cause: AbortCause,
        /// The member that failed.
        rank: u32,
        /// Rounds that were completed before.
        round: u64,
        /// Names the rank and the values.
        detail: String,
    },
    /// The member or its endpoint was closed.
    #[error("the member was closed")]
    Closed,
    /// The team has no such rank.
    #[error("rank {rank} in a team of {ranks}, 0 to {} are possible", ranks.saturating_sub(1))]
    BadRank { rank: usize, ranks: usize },
    /// The bootstrap id at this rank is another member's.
    #[error("the bootstrap id at position {rank} is not this member's own")]
    NotOurs { rank: usize },
    /// A member's bootstrap id cannot be read.
    #[error("bootstrap id of rank {rank}: {source}")]
    BootstrapId { rank: usize, source: WireError },
    /// Group or number of ranks.
    #[error(transparent)]
    Plan(#[from] ExchangeError),
    /// The arena has no page for a team.
    #[error("no memory for a team: {0}")]
    Memory(PoolError),
    /// The caller's array.
    #[error("the array cannot be reached: {0}")]
    Array(String),
    /// The system has no random bytes for a member's number.
    #[error("no random bytes for a member's number: {0}")]
    NoRandomness(getrandom::Error),
    /// The library for cryptography gave no key for a member's card.
    #[error(transparent)]
    NoKey(KeyError),
    /// Another member has the same random number.
    #[error("member number {0:#x} is taken already")]
    NumberTaken(u64),
}

impl From<ArrayFault> for CollectiveError {
    fn from(fault: ArrayFault) -> Self {
        Self::Array(fault.0)
    }
}
