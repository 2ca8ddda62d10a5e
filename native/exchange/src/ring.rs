//! A ring of members: in round r an endpoint reads from the member d_r positions further.

use crate::rng::SplitMix64;

/// The members on a ring, and the distance of each round.
#[derive(Debug, Clone)]
pub(crate) struct Ring {
    /// The member at each position.
    positions: Vec<u32>,
    /// The position of each member; inverse of `positions`.
    position_of: Vec<u32>,
    /// The distance to the server in each round: a permutation of 1..N.
    distances: Vec<u32>,
}

impl Ring {
    /// Returns a ring of `n` members. It draws positions first, then distances.
    pub(crate) fn new(n: usize, rng: &mut SplitMix64) -> Self {
        let mut positions: Vec<u32> = (0..n as u32).collect();
        rng.shuffle(&mut positions);
        let mut position_of = vec![0; n];
        for (position, &member) in positions.iter().enumerate() {
            position_of[member as usize] = position as u32;
        }
        let mut distances: Vec<u32> = (1..n as u32).collect();
        rng.shuffle(&mut distances);
        Ring {
            positions,
            position_of,
            distances,
        }
    }

    /// Returns the member that `member` reads from in `round`.
    pub(crate) fn server(&self, round: usize, member: usize) -> usize {
        self.at(member, self.distances[round])
    }

    /// Returns the member that reads from `member` in `round`.
    pub(crate) fn client(&self, round: usize, member: usize) -> usize {
        self.at(member, self.positions.len() as u32 - self.distances[round])
    }

    fn at(&self, member: usize, distance: u32) -> usize {
        let position = self.position_of[member] as usize + distance as usize;
        self.positions[position % self.positions.len()] as usize
    }

    /// Returns the round in which `client` reads from `server`.
    pub(crate) fn round_of(&self, client: usize, server: usize) -> Option<usize> {
        let n = self.positions.len() as u32;
        let distance = (self.position_of[server] + n - self.position_of[client]) % n;
        self.distances.iter().position(|&d| d == distance)
    }
}
