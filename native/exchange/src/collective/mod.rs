//! Plans of collectives: the parts of an array that each rank sends and receives in each step. The
//! data itself is elsewhere.
//!
//! There are three modes:
//! - `dssync`: mean within a small group; membership is shuffled every round. The mean over all
//!   ranks stays the same, the values mix over rounds, and a rank waits only for its group. This is
//!   DS-Sync (arXiv 2007.03298), whose theorem is about SGD with smooth losses.
//! - `grid`: exact mean over all in two rounds, along the rows and then the columns of an m by k
//!   grid.
//! - `full`: exact mean by a ring, the baseline: fewest bytes and a fan-in of one, but 2(N-1)
//!   steps.
//!
//! A plan works on sums and divides once at the end by `divisor`, so grid and full are exact
//! wherever addition is. All members of a group end with the same bits, floats included: each part
//! is summed in one place and copied. In a grid the part and the order of its sum are the same in
//! all columns, so all ranks end with the same bits.
//!
//! To execute a plan, do the steps in order; within one step, first send from the values before the
//! step, then apply what arrives, by ascending sender. No barrier separates steps: a rank may be
//! ahead of ranks from which it receives nothing.

mod groups;
mod plan;

pub use groups::dssync_groups;
pub use plan::{Action, Part, Plan, Step, Transfer};

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

/// Returns the plan for `ranks` participants.
pub fn plan(ranks: usize, mode: Mode) -> Result<Plan, ExchangeError> {
    if ranks == 0 || ranks > MAX_MEMBERS {
        return Err(ExchangeError::BadRanks(ranks));
    }
    match mode {
        Mode::Full => Ok(Plan::ring(ranks)),
        Mode::Grid => Ok(Plan::grid(ranks)),
        Mode::DsSync {
            group,
            epoch,
            round,
        } => {
            let groups = dssync_groups(ranks, group, epoch, round)?;
            Ok(Plan::groups(ranks, &groups))
        }
    }
}

/// Returns the numbers of rows and columns of the grid for `ranks`. The remaining ranks, fewer than
/// a column, send their values to ranks of the grid.
pub fn grid_shape(ranks: usize) -> (usize, usize) {
    let rows = ranks.isqrt().max(1);
    (rows, ranks / rows)
}
