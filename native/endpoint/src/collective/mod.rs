//! All-reduce within a team: mean or sum of arrays of floats over its members.
//!
//! ```text
//!  caller's thread                    progress thread                    the partner's
//!   Team ── plan (faro-exchange)
//!    ├─ JOIN, CLEAR_TO_SEND {leases} ▶ service: expose, send ──────────▶ service ─▶ mailbox
//!    ├─ fill a lease, PostedWrite ───▶ service: WRITE into such a lease ═▶
//!    │                                 service: DATA_READY ────────────▶ service: revoke ─▶ mailbox
//!    └─ mailbox ◀── Arrived {lease} ── service: revoke
//!       check, add to the array
//! ```
//! Idea: the receiver of a part exposes leases of the arena, the sender copies into a lease of its
//! own (the one copy) and writes, the receiver adds from the lease into its array. The *caller's*
//! thread does all arithmetic and all waiting; a progress thread only posts and passes on, so an array
//! of any length does not delay other work.
//!
//! Rules, and why nothing hangs:
//! 1. A member clears partners to send for its current step only, and advances when it has received
//!    and sent all of that step. Of all members that have not finished, one is in the earliest step;
//!    those that it waits for are in the same step or on their way to it, so it gets its part.
//! 2. A team holds one page of its own (`home`), so a member whose arena is exhausted can still receive.
//!    Pages to send from have another purpose, whose holders never wait (`faro_pool::Purpose`).
//! 3. Every wait ends at the round's deadline, and checks whether the caller has given up.
//! 4. A member that ends or fails sends `ABORT` to all that joined it, and answers a later JOIN with
//!    it. A process that dies silently is noticed by its connections, which every partner has.
//!
//! If a connection is lost while parts are in flight, the round fails: the sender's array has
//! changed since, so the parts cannot be asked for again. To continue, all members start a new team
//! with the arrays of the last round.
//!
//! Arriving values are added by ascending rank, chunk by chunk, in whatever order they came: all members of a group end
//! with the same bits. Elements are little-endian on the wire and in memory, as on every machine that Faro is built
//! for.

mod array;
mod dispatch;
mod error;
mod joins;
mod members;
mod pending;
mod receives;
mod round;
mod service;
mod step;
mod team;

pub use array::{Array, ArrayFault, Element, NotANumber};
pub use error::CollectiveError;
pub use round::{Grouping, NanPolicy, Operation, Round};
pub use team::{Closer, Team, TeamMember};

pub(crate) use dispatch::{CollectiveCommand, Dispatch};
pub(crate) use service::CollectiveService;

#[cfg(not(target_endian = "little"))]
compile_error!("elements travel as they lie in memory, which must be little-endian");
