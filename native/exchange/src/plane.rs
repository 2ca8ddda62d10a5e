//! An affine plane whose points are members: lines are groups, directions are rounds.
//!
//! The points are (x, y) over GF(q). The lines of one direction (y = s·x + b for a slope s, or
//! x = c) cover each point once: disjoint groups, one round. Two points lie on exactly one line, so
//! each pair meets in exactly one of the q + 1 rounds. With N = q² all groups have q members.
//!
//! For any other N, the plane is padded. With r = ⌊√N⌋ and q the smallest prime power with q ≥
//! ⌈√N⌉, members are on a rectangle of `rows` = min(q, r + 2) by `columns` = ⌈N / rows⌉; all other
//! points are empty. A vertical line has at most `rows` members, any other at most `columns` ≤ q,
//! so a member has at most max(rows, columns) - 1 ≤ r + 1 peers in a round, for every N. This needs
//! more rounds, q + 1 instead of √N + 1 (60 instead of 54 at N = 2810, 8 instead of 6 at N = 26),
//! and smaller groups. Since rounds are no barrier, that costs no time.
//! The whole q by q plane with scattered holes was rejected: its groups reach q - 1 = 36 peers at
//! 1025.

use crate::field::{prime_power_from, Field};
use crate::rng::SplitMix64;
use crate::{placement, ExchangeError, Member};

/// A point without a member.
const EMPTY: u32 = u32::MAX;

/// Measures of the plane behind a grouped schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Order of the field. The schedule has `order + 1` rounds.
    pub order: usize,
    pub columns: usize,
    pub rows: usize,
}

impl Shape {
    pub(crate) fn of(members: usize) -> Self {
        let root = members.isqrt();
        let ceil = if root * root == members {
            root
        } else {
            root + 1
        };
        let order = prime_power_from(ceil as u32) as usize;
        let rows = order.min(root + 2);
        Shape {
            order,
            columns: members.div_ceil(rows),
            rows,
        }
    }

    /// Returns the maximum number of peers of an endpoint in one round, at most ⌊√N⌋ + 1.
    pub fn max_peers(&self) -> usize {
        self.rows.max(self.columns) - 1
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Plane {
    shape: Shape,
    field: Field,
    /// The direction of each round: a slope below q, or q for the vertical lines. This is a
    /// permutation.
    directions: Vec<u32>,
    /// The round of each direction; inverse of `directions`.
    rounds: Vec<u32>,
    /// The member at x · rows + y, or EMPTY.
    points: Vec<u32>,
    /// The point (x, y) of each member; inverse of `points`.
    positions: Vec<(u32, u32)>,
}

impl Plane {
    /// Returns a plane of these members. Draws from `rng` in this order: the order of rounds;
    /// placement; the order of columns; the rows of each column, from column 0 up, each a shuffle
    /// of its members followed by its empty points.
    pub(crate) fn new(members: &[Member], rng: &mut SplitMix64) -> Result<Self, ExchangeError> {
        let shape = Shape::of(members.len());
        let field = Field::new(shape.order as u32)?;
        let mut directions: Vec<u32> = (0..=field.order()).collect();
        rng.shuffle(&mut directions);
        let mut rounds = vec![0; directions.len()];
        for (round, &d) in directions.iter().enumerate() {
            rounds[d as usize] = round as u32;
        }
        let mut columns = placement::columns(members, shape.columns, shape.rows, rng);
        rng.shuffle(&mut columns);
        let mut points = Vec::with_capacity(shape.columns * shape.rows);
        let mut positions = vec![(0, 0); members.len()];
        for (x, mut column) in columns.into_iter().enumerate() {
            column.resize(shape.rows, EMPTY);
            rng.shuffle(&mut column);
            for (y, &member) in column.iter().enumerate() {
                if member != EMPTY {
                    positions[member as usize] = (x as u32, y as u32);
                }
            }
            points.extend(column);
        }
        Ok(Plane {
            shape,
            field,
            directions,
            rounds,
            points,
            positions,
        })
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) fn rounds(&self) -> usize {
        self.directions.len()
    }

    /// Returns the round of the columns, in which members of one host meet.
    pub(crate) fn local_round(&self) -> usize {
        self.rounds[self.shape.order] as usize
    }

    /// Returns the members of `member`'s line in `round`, by ascending x, or by ascending y in a
    /// column.
    pub(crate) fn group(&self, round: usize, member: usize) -> Vec<usize> {
        let (x, y) = self.positions[member];
        let direction = self.directions[round];
        if direction as usize == self.shape.order {
            let start = x as usize * self.shape.rows;
            let column = &self.points[start..start + self.shape.rows];
            return column
                .iter()
                .filter(|&&m| m != EMPTY)
                .map(|&m| m as usize)
                .collect();
        }
        let b = self.field.sub(y, self.field.mul(direction, x));
        (0..self.shape.columns)
            .filter_map(|x| {
                let y = self.field.add(self.field.mul(direction, x as u32), b) as usize;
                self.member_at(x, y)
            })
            .collect()
    }

    /// Returns the round in which two different members meet.
    pub(crate) fn round_of(&self, a: usize, b: usize) -> usize {
        let ((xa, ya), (xb, yb)) = (self.positions[a], self.positions[b]);
        let rise = self.field.sub(yb, ya);
        let run = self.field.sub(xb, xa);
        let direction = self.field.div(rise, run).unwrap_or(self.field.order());
        self.rounds[direction as usize] as usize
    }

    fn member_at(&self, x: usize, y: usize) -> Option<usize> {
        if y >= self.shape.rows {
            return None;
        }
        let member = self.points[x * self.shape.rows + y];
        (member != EMPTY).then_some(member as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_hold_all_members_within_the_bound() {
        for n in 4..=crate::MAX_MEMBERS {
            let s = Shape::of(n);
            let root = n.isqrt();
            assert!(s.columns * s.rows >= n, "{n}: {s:?}");
            assert!(s.columns <= s.order && s.rows <= s.order, "{n}: {s:?}");
            assert!(s.max_peers() <= root + 1, "{n}: {s:?}");
        }
    }

    #[test]
    fn worst_padding_up_to_4096() {
        let extra = |n: usize| Shape::of(n).order - n.isqrt();
        assert_eq!((4..=4096).map(extra).max(), Some(6));
        assert_eq!((extra(2810), Shape::of(26).order), (6, 7));
        assert_eq!(
            Shape::of(4096),
            Shape {
                order: 64,
                columns: 64,
                rows: 64
            }
        );
    }
}
