//! Plans of collectives: the parts of an array that each rank sends and receives in each step. The
//! data itself is elsewhere.
//!
//! There are three modes:
//! - `dssync`: mean within a small group; membership is shuffled every round. The mean over all
//!   ranks stays the same, the values mix over rounds, and a rank waits only for its group. This is
//!   DS-Sync (arXiv 2007.03298), whose theorem is about SGD with smooth losses.
//! - `grid`: exact mean over all, along the rows and the columns of an m by k grid: the bytes of a
//!   ring in four steps.
//! - `full`: exact mean by a ring, the baseline: fewest bytes and a fan-in of one, but 2(N-1)
//!   steps.
//!
//! A plan works on sums and divides once at the end by `divisor`, so grid and full are exact
//! wherever addition is. All members of a group end with the same bits, floats included: each part
//! is summed in one place and copied. In a grid the part and the order of its sum are the same in
//! all columns, so all ranks end with the same bits.
//!
//! Where ranks are ([`RankPlaces`]) changes which of them exchange: `dssync` forms groups within racks, and
//! `grid` and `full` take the ranks rack by rack, so that a grid's rows and a ring's neighbours share one
//! where they can. [`slow_ranks()`] tells how `dssync` keeps ranks behind a slow link apart.
//!
//! To execute a plan, do the steps in order; within one step, first send from the values before the
//! step, then apply what arrives, by ascending sender. No barrier separates steps: a rank may be
//! ahead of ranks from which it receives nothing.

mod groups;
mod places;
mod plan;
mod slow_ranks;

pub use groups::{dssync_groups, dssync_groups_by_place, MIXING_ROUNDS};
pub use places::RankPlaces;
pub use plan::{Action, Part, Plan, Step, Transfer};
pub use slow_ranks::{slow_ranks, Stopwatch, LOOK_ROUNDS, SLOW};

use crate::{ExchangeError, MAX_MEMBERS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The mean within groups of about this size; epoch and round seed the shuffle.
    DsSync {
        group: usize,
        epoch: u64,
        round: u64,
    },
    Grid,
    Full,
}

/// Returns the plan for `ranks` participants of one rack.
pub fn plan(ranks: usize, mode: Mode) -> Result<Plan, ExchangeError> {
    check_ranks(ranks)?;
    plan_by_place(&RankPlaces::of_racks(&vec![""; ranks]), mode)
}

/// Returns the plan for participants at these places.
pub fn plan_by_place(places: &RankPlaces, mode: Mode) -> Result<Plan, ExchangeError> {
    let ranks = places.ranks();
    check_ranks(ranks)?;
    let exact = match mode {
        Mode::Full => Plan::ring(ranks),
        Mode::Grid => Plan::grid(ranks),
        Mode::DsSync {
            group,
            epoch,
            round,
        } => {
            let groups = dssync_groups_by_place(places, group, epoch, round)?;
            return Ok(Plan::groups(ranks, &groups));
        }
    };
    Ok(match places.order() {
        Some(order) => exact.of_ranks(&order),
        None => exact,
    })
}

fn check_ranks(ranks: usize) -> Result<(), ExchangeError> {
    match ranks {
        1..=MAX_MEMBERS => Ok(()),
        _ => Err(ExchangeError::BadRanks(ranks)),
    }
}

/// Returns the numbers of rows and columns of the grid for `ranks`. Of the remaining ranks, fewer
/// than there are rows, each belongs to a row of its own.
pub fn grid_shape(ranks: usize) -> (usize, usize) {
    let rows = ranks.isqrt().max(1);
    (rows, ranks / rows)
}
