//! Steps and transfers, and the three shapes that they are built from.
//!
//! In a small group, each member sums one part, which all others send to it, and then sends the sum
//! to all others: two steps, 2(g-1)/g arrays sent by each member, fan-in g-1. A ring moves the same
//! bytes in 2(g-1) steps; `full` uses it to avoid a fan-in of N-1.

use super::grid_shape;

/// A slice of the array: the elements from len · index / of up to len · (index + 1) / of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub index: u32,
    pub of: u32,
}

impl Part {
    const WHOLE: Part = Part { index: 0, of: 1 };

    /// Returns the elements of this part in an array of `len`. Parts with the same `of` are
    /// disjoint and cover the array.
    pub fn range(self, len: usize) -> std::ops::Range<usize> {
        let at = |i: u32| (len as u128 * u128::from(i) / u128::from(self.of)) as usize;
        at(self.index)..at(self.index + 1)
    }
}

/// The action of the receiver on the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Add,
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Transfer {
    pub from: u32,
    pub to: u32,
    pub part: Part,
    pub action: Action,
}

/// Transfers that do not depend on each other, by ascending sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    pub transfers: Vec<Transfer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// For each rank, the number of ranks whose values are in its sums: the mean's divisor.
    divisors: Vec<u32>,
    steps: Vec<Step>,
}

impl Plan {
    pub fn ranks(&self) -> usize {
        self.divisors.len()
    }

    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the number of ranks whose values are in the sums of `rank`; `None` if there is no
    /// such rank.
    pub fn divisor(&self, rank: usize) -> Option<u32> {
        self.divisors.get(rank).copied()
    }

    /// Returns the transfers that `rank` sends in `step`.
    pub fn sends(&self, step: usize, rank: usize) -> impl Iterator<Item = &Transfer> {
        self.in_step(step).filter(move |t| t.from as usize == rank)
    }

    /// Returns the transfers that `rank` receives in `step`, in the order in which it applies them.
    pub fn receives(&self, step: usize, rank: usize) -> impl Iterator<Item = &Transfer> {
        self.in_step(step).filter(move |t| t.to as usize == rank)
    }

    fn in_step(&self, step: usize) -> impl Iterator<Item = &Transfer> {
        self.steps.get(step).into_iter().flat_map(|s| &s.transfers)
    }

    /// Returns the plan for sums within disjoint groups, all at the same time.
    pub(super) fn groups(ranks: usize, groups: &[Vec<usize>]) -> Plan {
        let mut divisors = vec![1; ranks];
        for group in groups {
            for &rank in group {
                divisors[rank] = group.len() as u32;
            }
        }
        Plan::new(divisors, group_steps(groups).into())
    }

    /// Returns the plan for the rows, then the columns, of the grid of [`grid_shape`]. Each rank
    /// beyond the grid first sends its values to one rank of the grid, and finally gets the sums
    /// back.
    pub(super) fn grid(ranks: usize) -> Plan {
        let (rows, columns) = grid_shape(ranks);
        let inside = rows * columns;
        let along: Vec<Vec<usize>> = (0..rows)
            .map(|r| (r * columns..(r + 1) * columns).collect())
            .collect();
        let across: Vec<Vec<usize>> = (0..columns)
            .map(|c| (0..rows).map(|r| r * columns + c).collect())
            .collect();
        let (mut fold, mut unfold) = (Step::default(), Step::default());
        for extra in inside..ranks {
            let proxy = extra - inside;
            fold.transfers
                .push(transfer(extra, proxy, Part::WHOLE, Action::Add));
            unfold
                .transfers
                .push(transfer(proxy, extra, Part::WHOLE, Action::Replace));
        }
        let mut steps = vec![fold];
        steps.extend(group_steps(&along));
        steps.extend(group_steps(&across));
        steps.push(unfold);
        Plan::new(vec![ranks as u32; ranks], steps)
    }

    /// Returns the plan for reduce-scatter and all-gather around one ring.
    pub(super) fn ring(ranks: usize) -> Plan {
        let n = ranks;
        // In step s, rank r passes part r - s on; the last sum of part p is at rank p - 1.
        let pass = |s: usize, shift: usize, action| Step {
            transfers: (0..n)
                .map(|r| transfer(r, (r + 1) % n, part((r + shift + n - s) % n, n), action))
                .collect(),
        };
        let reduce = (0..n - 1).map(|s| pass(s, 0, Action::Add));
        let gather = (0..n - 1).map(|s| pass(s, 1, Action::Replace));
        Plan::new(vec![n as u32; n], reduce.chain(gather).collect())
    }

    /// Returns a plan without the empty steps.
    fn new(divisors: Vec<u32>, mut steps: Vec<Step>) -> Plan {
        steps.retain(|s| !s.transfers.is_empty());
        for step in &mut steps {
            step.transfers.sort_by_key(|t| (t.from, t.to));
        }
        Plan { divisors, steps }
    }
}

/// Returns the two steps of groups: all members send part j to the group's j-th member, which then
/// sends the sum to all.
fn group_steps(groups: &[Vec<usize>]) -> [Step; 2] {
    let (mut reduce, mut share) = (Step::default(), Step::default());
    for group in groups {
        for (j, &summer) in group.iter().enumerate() {
            let part = part(j, group.len());
            for &other in group.iter().filter(|&&other| other != summer) {
                reduce
                    .transfers
                    .push(transfer(other, summer, part, Action::Add));
                share
                    .transfers
                    .push(transfer(summer, other, part, Action::Replace));
            }
        }
    }
    [reduce, share]
}

fn part(index: usize, of: usize) -> Part {
    Part {
        index: index as u32,
        of: of as u32,
    }
}

fn transfer(from: usize, to: usize, part: Part, action: Action) -> Transfer {
    Transfer {
        from: from as u32,
        to: to as u32,
        part,
        action,
    }
}
