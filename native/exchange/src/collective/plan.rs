//! Steps and transfers, and the three shapes that they are built from.
//!
//! In a small group, each member sums one part, which all others send to it, and then sends the sum
//! to all others: two steps, 2(g-1)/g arrays sent by each member, fan-in g-1. A ring moves the same
//! bytes in 2(g-1) steps; `full` uses it to avoid a fan-in of N-1.
//!
//! A grid of m rows and k columns has the two steps of its rows around those of its columns, which
//! have a k-th of the array: 2(N-1)/N arrays sent by each member, the least that is possible, in four
//! steps with k-1 + m-1 partners. A rank beyond the grid sends one array, and the members of its row
//! 1/k more than the others. All ranks together send 2(N-1) arrays, whatever N is.

use super::grid_shape;

/// A slice of the array: the elements from len · index / of up to len · (index + 1) / of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    pub index: u32,
    pub of: u32,
}

impl Part {
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

    /// Returns the plan of the grid of [`grid_shape`]: the sums of each row are scattered over its
    /// members, and each of these parts over its column; then the columns gather, and the rows. A
    /// rank beyond the grid takes part in one row's first and last step: each member of the row gets
    /// the part that it sums, and returns the sum.
    pub(super) fn grid(ranks: usize) -> Plan {
        let (rows, columns) = grid_shape(ranks);
        let inside = rows * columns;
        let (mut along, mut across) = (SharedSums::default(), SharedSums::default());
        for row in 0..rows {
            let beyond = Some(inside + row).filter(|rank| *rank < ranks);
            for column in 0..columns {
                let summer = row * columns + column;
                let of_row = (row * columns..(row + 1) * columns).chain(beyond);
                along.add(summer, of_row, part(column, columns));
                // The parts of a column's members make up the column's part of the rows.
                let of_column = (0..rows).map(|row| row * columns + column);
                across.add(summer, of_column, part(column * rows + row, inside));
            }
        }
        let steps = [along.reduce, across.reduce, across.share, along.share];
        Plan::new(vec![ranks as u32; ranks], steps.into())
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

    /// Returns the same plan with `ranks[i]` in the place of rank i. All ranks must be in the same sums.
    pub(super) fn of_ranks(self, ranks: &[u32]) -> Plan {
        let rank = |at: u32| ranks[at as usize];
        let placed = |t: Transfer| Transfer {
            from: rank(t.from),
            to: rank(t.to),
            ..t
        };
        let steps = self.steps.into_iter().map(|step| Step {
            transfers: step.transfers.into_iter().map(placed).collect(),
        });
        Plan::new(self.divisors, steps.collect())
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
    let mut sums = SharedSums::default();
    for group in groups {
        for (j, &summer) in group.iter().enumerate() {
            sums.add(summer, group.iter().copied(), part(j, group.len()));
        }
    }
    [sums.reduce, sums.share]
}

/// Two steps: parts go to the ranks that sum them, and the sums go back.
#[derive(Default)]
struct SharedSums {
    reduce: Step,
    share: Step,
}

impl SharedSums {
    /// Adds a part that `summer`, one of `members`, sums for all of them.
    fn add(&mut self, summer: usize, members: impl Iterator<Item = usize>, part: Part) {
        for other in members.filter(|other| *other != summer) {
            let (reduce, share) = (&mut self.reduce.transfers, &mut self.share.transfers);
            reduce.push(transfer(other, summer, part, Action::Add));
            share.push(transfer(summer, other, part, Action::Replace));
        }
    }
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
