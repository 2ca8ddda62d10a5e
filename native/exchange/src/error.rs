//! The errors of schedules and plans.

use crate::MAX_MEMBERS;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    #[error("a schedule needs at least one member")]
    NoMembers,
    #[error("{0} members; allowed are 1 to {MAX_MEMBERS}")]
    TooManyMembers(usize),
    #[error("member {0:?} is listed twice; identities must be unique")]
    DuplicateMember(String),
    #[error("{0:?} is not a member of this schedule")]
    NotAMember(String),
    #[error("no field has {0} elements: not a prime power of at most 257")]
    NoSuchField(u32),
    #[error("{0} ranks; allowed are 1 to {MAX_MEMBERS}")]
    BadRanks(usize),
    #[error("group size {group}; allowed are 2 to the number of ranks, {ranks}")]
    BadGroup { group: usize, ranks: usize },
    #[error("unknown policy {0:?}; allowed are grouped, rotated, random")]
    UnknownPolicy(String),
}
