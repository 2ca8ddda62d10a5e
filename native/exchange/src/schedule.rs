//! The schedule: rounds of small groups, which each endpoint computes for itself.
//!
//! Three policies have one interface, so that they can be compared:
//! - `grouped`: an affine plane (see `plane`); below 4 members the same as `rotated`.
//! - `rotated`: members form a ring (see `ring`). Each endpoint has one server and one client in each
//!   round, and there are no groups.
//! - `random`: each endpoint reads in its own random order, as stock Spark does; the baseline.
//!
//! A schedule is a function of the members and the epoch; the order in which members are given does
//! not matter. The epoch seeds every choice: a new epoch gives other groups and another order of
//! rounds. Peers are numbers: positions in `members()`, which is sorted by id.
//!
//! Rounds are a preference: an endpoint that has finished a round's reads begins the next. Within a
//! group, member i first reads from i + 1, then from i + 2, so that a group's members do not all
//! serve the same client first.

use crate::plane::{Plane, Shape};
use crate::ring::Ring;
use crate::rng::SplitMix64;
use crate::{ExchangeError, Member, MAX_MEMBERS, MIN_PLANE};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    #[default]
    Grouped,
    Rotated,
    Random,
}

impl std::str::FromStr for Policy {
    type Err = ExchangeError;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "grouped" => Ok(Policy::Grouped),
            "rotated" => Ok(Policy::Rotated),
            "random" => Ok(Policy::Random),
            other => Err(ExchangeError::UnknownPolicy(other.to_owned())),
        }
    }
}

/// One read of an endpoint's cycle: its round and the peer that it reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    pub round: u32,
    pub peer: u32,
}

#[derive(Debug, Clone)]
pub struct Schedule {
    /// The members, sorted by id, each id once.
    members: Vec<Member>,
    epoch: u64,
    order: VisitOrder,
}

#[derive(Debug, Clone)]
enum VisitOrder {
    Plane(Box<Plane>),
    Ring(Ring),
    /// Member i reads in the order of a shuffle of all others by stream (epoch, i).
    Random,
}

impl Schedule {
    /// Returns the schedule of policy `grouped`.
    pub fn new(members: Vec<Member>, epoch: u64) -> Result<Self, ExchangeError> {
        Schedule::with_policy(members, epoch, Policy::Grouped)
    }

    pub fn with_policy(
        mut members: Vec<Member>,
        epoch: u64,
        policy: Policy,
    ) -> Result<Self, ExchangeError> {
        if members.is_empty() {
            return Err(ExchangeError::NoMembers);
        }
        if members.len() > MAX_MEMBERS {
            return Err(ExchangeError::TooManyMembers(members.len()));
        }
        members.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some(pair) = members.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(ExchangeError::DuplicateMember(pair[0].id.clone()));
        }
        let mut rng = SplitMix64::new(epoch);
        let order = match policy {
            Policy::Grouped if members.len() >= MIN_PLANE => {
                VisitOrder::Plane(Box::new(Plane::new(&members, &mut rng)?))
            }
            Policy::Grouped | Policy::Rotated => {
                VisitOrder::Ring(Ring::new(members.len(), &mut rng))
            }
            Policy::Random => VisitOrder::Random,
        };
        Ok(Schedule {
            members,
            epoch,
            order,
        })
    }

    /// Returns the members, sorted by id. Peers are positions in this list.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.members
            .binary_search_by(|m| m.id.as_str().cmp(id))
            .ok()
    }

    /// Returns the number of rounds of one cycle, in which each ordered pair meets once.
    pub fn rounds(&self) -> usize {
        match &self.order {
            VisitOrder::Plane(p) => p.rounds(),
            _ => self.members.len() - 1,
        }
    }

    /// Returns the measures of the plane; `None` for a schedule without one.
    pub fn shape(&self) -> Option<Shape> {
        match &self.order {
            VisitOrder::Plane(p) => Some(p.shape()),
            _ => None,
        }
    }

    /// Returns the round in which members of one host meet if they share a column; `None` without a
    /// plane.
    pub fn local_round(&self) -> Option<usize> {
        match &self.order {
            VisitOrder::Plane(p) => Some(p.local_round()),
            _ => None,
        }
    }

    /// Returns the number of peers that an endpoint should read from at once: the size of the
    /// largest group, less one. The other policies, with one peer in a round, return the same
    /// number.
    pub fn max_peers(&self) -> usize {
        let n = self.members.len();
        match &self.order {
            VisitOrder::Plane(p) => p.shape().max_peers(),
            _ if n < MIN_PLANE => n - 1,
            _ => Shape::of(n).max_peers(),
        }
    }

    /// Returns the group of `member` in `round`, `member` included; `None` for policies without
    /// groups.
    pub fn group(&self, round: usize, member: usize) -> Option<Vec<usize>> {
        match &self.order {
            VisitOrder::Plane(p) if self.has(round, member) => Some(p.group(round, member)),
            _ => None,
        }
    }

    /// Returns all groups of a round with at least two members, ordered by their lowest member.
    pub fn groups(&self, round: usize) -> Vec<Vec<usize>> {
        (0..self.members.len())
            .filter_map(|m| self.group(round, m).filter(|g| g.iter().min() == Some(&m)))
            .filter(|g| g.len() > 1)
            .collect()
    }

    /// Returns the peers that `member` reads from in `round`, in issue order; possibly none.
    pub fn servers(&self, round: usize, member: usize) -> Vec<usize> {
        if !self.has(round, member) {
            return Vec::new();
        }
        match &self.order {
            VisitOrder::Plane(p) => rotated_after(p.group(round, member), member),
            VisitOrder::Ring(ring) => vec![ring.server(round, member)],
            VisitOrder::Random => vec![self.random_order(member)[round] as usize],
        }
    }

    /// Returns the peers that read from `member` in `round`, in the order in which they are
    /// expected.
    pub fn clients(&self, round: usize, member: usize) -> Vec<usize> {
        if !self.has(round, member) {
            return Vec::new();
        }
        match &self.order {
            VisitOrder::Plane(p) => {
                let mut group = rotated_after(p.group(round, member), member);
                group.reverse();
                group
            }
            VisitOrder::Ring(ring) => vec![ring.client(round, member)],
            VisitOrder::Random => (0..self.members.len())
                .filter(|&r| r != member && self.random_order(r)[round] as usize == member)
                .collect(),
        }
    }

    /// Returns the round in which `client` reads from `server`; `None` if they are equal or not
    /// members.
    pub fn round_of(&self, client: usize, server: usize) -> Option<usize> {
        let n = self.members.len();
        if client == server || client >= n || server >= n {
            return None;
        }
        match &self.order {
            VisitOrder::Plane(p) => Some(p.round_of(client, server)),
            VisitOrder::Ring(ring) => ring.round_of(client, server),
            VisitOrder::Random => self
                .random_order(client)
                .iter()
                .position(|&p| p as usize == server),
        }
    }

    /// Returns all reads of `member`'s cycle in order of preference, each other member once.
    pub fn visits(&self, member: usize) -> Vec<Visit> {
        let visit = |(round, peer): (usize, u32)| Visit {
            round: round as u32,
            peer,
        };
        match &self.order {
            VisitOrder::Random if member < self.members.len() => self
                .random_order(member)
                .into_iter()
                .enumerate()
                .map(visit)
                .collect(),
            _ => (0..self.rounds())
                .flat_map(|r| {
                    self.servers(r, member)
                        .into_iter()
                        .map(move |p| (r, p as u32))
                })
                .map(visit)
                .collect(),
        }
    }

    fn has(&self, round: usize, member: usize) -> bool {
        round < self.rounds() && member < self.members.len()
    }

    fn random_order(&self, member: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.members.len() as u32)
            .filter(|&p| p as usize != member)
            .collect();
        SplitMix64::stream(self.epoch, member as u64).shuffle(&mut order);
        order
    }
}

/// Returns the other members of a group, cyclically from the one after `member` on.
fn rotated_after(mut group: Vec<usize>, member: usize) -> Vec<usize> {
    if let Some(at) = group.iter().position(|&m| m == member) {
        group.rotate_left(at);
        group.remove(0);
    }
    group
}
