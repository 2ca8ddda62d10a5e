//! Who exchanges with whom, and when: schedules and the plans of collectives. Pure functions.
//!
//! A shuffle makes every endpoint read from every other one. Left to chance, hundreds of owners
//! answer one reader at once and hundreds of queue pairs are in use. A [`Schedule`] orders the same
//! pairs into rounds of small disjoint groups in which each ordered pair meets exactly once:
//!
//! ```text
//!   members, epoch ──▶ Schedule ──▶ round ──▶ group ──▶ peers in issue order
//!                        │  placement   hosts into columns of the plane
//!                        │  plane       lines of an affine plane are groups, directions are rounds
//!                        │  field       GF(p^k)
//!                        └─ rng         SplitMix64, the only source of chance
//!   Schedule ──▶ Cycle       what one endpoint has read, carried over when members come and go
//!   ranks    ──▶ collective  who sends which part of an array to whom in which step
//! ```
//! The schedule is a preference, not a barrier: an endpoint that is done with its group goes on.
//!
//! Nothing here does I/O, reads a clock or starts a thread, and only integers are used: each node
//! computes the same schedule for itself, in Rust or in Java. `tests/golden` holds what both must
//! give. The idea of shuffled small groups is DS-Sync's (arXiv 2007.03298); exact coverage of pairs
//! comes from affine planes, and DS-Sync's convergence theorem is not claimed for the shuffle.

pub mod collective;
mod cycle;
mod error;
mod field;
mod member;
mod placement;
mod plane;
mod rng;
mod schedule;

pub use cycle::{Change, Cycle, PairState};
pub use error::ExchangeError;
pub use field::Field;
pub use member::Member;
pub use plane::Shape;
pub use rng::SplitMix64;
pub use schedule::{Policy, Schedule, Visit};

/// Most members of one schedule; the plane's order stays at most 257.
pub const MAX_MEMBERS: usize = 65_536;
/// Fewest members for which a plane is used; below, `grouped` is a rotation.
pub const MIN_PLANE: usize = 4;
