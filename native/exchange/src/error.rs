//! What can be wrong with a schedule's input.

use crate::cycle::PairState;
use crate::MAX_MEMBERS;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangeError {
    #[error("a schedule needs at least one member")]
    NoMembers,
    #[error("{0} members; at most {MAX_MEMBERS} are allowed")]
    TooManyMembers(usize),
    #[error("member {0:?} is listed twice; identities must be unique")]
    DuplicateMember(String),
    #[error("{0:?} is not a member of this schedule")]
    NotAMember(String),
    #[error("epoch {new} does not follow {current}; a change of members needs a larger epoch")]
    StaleEpoch { current: u64, new: u64 },
    #[error("peer {peer} is {was:?}; {wanted} needs it to be {needed:?}")]
    WrongState {
        peer: usize,
        was: PairState,
        needed: PairState,
        wanted: &'static str,
    },
    #[error("peer {peer} is not one of the {members} members, or is the endpoint itself")]
    NoSuchPeer { peer: usize, members: usize },
    #[error("{0} is not a prime power of at most 257, so there is no such field")]
    NoSuchField(u32),
    #[error("{0} ranks; a collective needs 1 to {MAX_MEMBERS}")]
    BadRanks(usize),
    #[error("group size {group} is not within 2 and the number of ranks, {ranks}")]
    BadGroup { group: usize, ranks: usize },
    #[error("unknown policy {0:?}; allowed are grouped, rotated, random")]
    UnknownPolicy(String),
}
