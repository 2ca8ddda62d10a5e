//! All-reduce within a team: mean or sum of arrays of floats over the members, each a *seat*.
//!
//! ```text
//!  caller's thread                   progress thread                        the partner's
//!   Team ── plan (faro-exchange)
//!    ├─ JOIN, CLEAR_TO_SEND {leases} ─────▶ Room: expose, send ───────────────────▶ Room ─▶ mailbox
//!    ├─ fill a lease, Write ───────▶ Room: WRITE into a granted range ═════▶
//!    │                               Room: DATA_READY ─────────────────────────▶ Room: revoke ─▶ mailbox
//!    └─ mailbox ◀─ DataReady {lease} ── Room: revoke
//!       check, add to the array
//! ```
//! Idea: the receiver of a part exposes leases of the arena, the sender copies into a lease of its
//! own (the one copy) and writes, the receiver adds from the lease into its array. The *caller's*
//! thread does all arithmetic and all waiting; a progress thread only posts and passes on, so no
//! array, however long, keeps it from others.
//!
//! Rules, and why nothing hangs:
//! 1. A member grants for its current step only, and advances when it has received and sent all of
//!    that step. Of all members that have not finished, one is in the earliest step; those that it
//!    waits for are in the same step or on their way to it, so it gets its part.
//! 2. A team holds one frame of its own (`home`), so a member whose arena is exhausted still grants.
//!    Frames to send from are another purpose's, whose holders wait for nobody (`faro_pool::Purpose`).
//! 3. Every wait ends at the round's deadline, and looks whether the caller has given up.
//! 4. Who ends or fails says so (`ABORT`) to all who knocked, and who knocks later is told the
//!    same. A process that dies without a word is noticed by its connections, which every partner has.
//!
//! A lost connection with parts under way fails the round: the sender's array has moved on, so there
//! is nothing to ask again. Whoever wants to go on begins anew with the arrays of the last round.
//!
//! What arrives is added by ascending rank, chunk by chunk, whatever order it came in: all members of
//! a group end with the same bits. Elements are little-endian on the wire and in memory, as on every
//! machine that Faro is built for.

mod array;
mod error;
mod hub;
mod room;
mod round;
mod step;
mod team;

pub use array::{Array, ArrayFault, Element, NotANumber};
pub use error::CollectiveError;
pub use round::{Grouping, NanPolicy, Operation, Round};
pub use team::{Closer, Seat, Team};

pub(crate) use hub::Hub;
pub(crate) use room::{Errand, Order, Room};

#[cfg(not(target_endian = "little"))]
compile_error!("elements travel as they lie in memory, which must be little-endian");
