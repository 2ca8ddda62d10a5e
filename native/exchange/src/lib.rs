//! Schedules (which endpoints exchange with each other, and in which round) and the plans of
//! collectives, as pure functions.
//!
//! In a shuffle every endpoint reads from every other one. Without a schedule, hundreds of servers
//! answer one client at once and hundreds of queue pairs are in use. A [`Schedule`] sorts the same
//! pairs into rounds of small disjoint groups in which each ordered pair meets exactly once:
//!
//! ```text
//!   members, epoch ──▶ Schedule ──▶ round ──▶ group ──▶ peers in issue order
//!                        │  placement   hosts into columns of the plane
//!                        │  plane       lines of an affine plane are groups, directions are rounds
//!                        │  field       GF(p^k)
//!                        │  ring        members read at a distance that each round has
//!                        └─ rng         SplitMix64, the only source of randomness
//!   ranks ──▶ collective  the parts of an array that each rank sends and receives in each step
//! ```
//! The schedule is a preference, not a barrier: an endpoint that has finished a round's reads
//! begins the next round.
//!
//! This crate does no I/O, reads no clock, starts no thread and uses only integers (but for comparing
//! times that all ranks of a team share), so every endpoint computes the same schedule for itself. `tests/golden` holds the expected values for any
//! implementation. The idea of shuffled small groups is DS-Sync's (arXiv 2007.03298); exact
//! coverage of pairs comes from affine planes, and DS-Sync's convergence theorem is not claimed for
//! the shuffle.

pub mod collective;
mod error;
mod field;
mod member;
mod placement;
mod plane;
mod ring;
mod rng;
mod schedule;

pub use error::ExchangeError;
pub use field::Field;
pub use member::Member;
pub use plane::Shape;
pub use rng::SplitMix64;
pub use schedule::{Policy, Schedule, Visit};

/// Maximum number of members of a schedule; the plane's order stays at most 257.
pub const MAX_MEMBERS: usize = 65_536;
/// Minimum number of members for which `grouped` uses a plane; below, it is a rotation.
pub const MIN_PLANE: usize = 4;
