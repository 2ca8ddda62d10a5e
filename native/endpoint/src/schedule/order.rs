//! Decides the order in which peers have their turn, for one endpoint and one direction, and how
//! many at once: from a schedule, or without one (policy `random`).

use super::{ExchangePolicy, AUTO_PEERS, MIN_PERMITS};
use faro_exchange::{ExchangeError, Member, Policy, Schedule};
use faro_fabric::EndpointId;
use faro_sync::HashMap;
use std::collections::BTreeMap;

/// Position of a peer in the schedule: its round, and its position among the round's peers. Peers
/// that the schedule does not know yet come after all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SchedulePosition {
    pub(super) round: u32,
    pub(super) position: u32,
}

const UNKNOWN: SchedulePosition = SchedulePosition {
    round: u32::MAX,
    position: 0,
};

/// The order in which peers are due, in one direction.
#[derive(Debug, Clone)]
pub(crate) struct PeerOrder {
    /// Peers at once.
    pub(super) permits: usize,
    /// The peers by round, in the order in which they are due.
    rounds: Vec<Vec<EndpointId>>,
    due: HashMap<EndpointId, SchedulePosition>,
}

impl PeerOrder {
    /// Returns an order in which all peers have permits, in the order in which they come.
    pub(crate) fn none() -> Self {
        Self {
            permits: usize::MAX,
            rounds: Vec::new(),
            due: HashMap::default(),
        }
    }

    pub(super) fn new(permits: usize, rounds: Vec<Vec<EndpointId>>) -> Self {
        let mut due = HashMap::default();
        for (round, peers) in (0..).zip(&rounds) {
            due.extend(
                (0..)
                    .zip(peers)
                    .map(|(position, peer)| (*peer, SchedulePosition { round, position })),
            );
        }
        Self {
            permits,
            rounds,
            due,
        }
    }

    pub(super) fn rounds(&self) -> u32 {
        self.rounds.len() as u32
    }

    pub(super) fn due(&self, peer: EndpointId) -> SchedulePosition {
        self.due.get(&peer).copied().unwrap_or(UNKNOWN)
    }

    /// Returns the peers of a round, cyclically.
    pub(super) fn of_round(&self, round: u32) -> &[EndpointId] {
        match self.rounds.len() {
            0 => &[],
            rounds => &self.rounds[round as usize % rounds],
        }
    }
}

/// An endpoint's plan for a set of members: the order in which it reads from them, and in which it serves them.
pub(crate) struct ExchangePlan {
    pub(crate) reads: PeerOrder,
    pub(crate) serves: PeerOrder,
    /// The order that the members have; `Random` goes with no bound.
    pub(crate) policy: Policy,
    /// Epoch of the members; the same on every node that knows the same ones.
    pub(crate) epoch: u64,
}

impl ExchangePlan {
    /// Returns the plan without any known members.
    pub(crate) fn empty() -> Self {
        Self {
            reads: PeerOrder::none(),
            serves: PeerOrder::none(),
            policy: Policy::Random,
            epoch: 0,
        }
    }

    /// Returns the plan of these members. `members` holds the host by endpoint, `own` among them.
    ///
    /// # Errors
    /// More members than a schedule takes.
    pub(crate) fn new(
        own: EndpointId,
        members: &BTreeMap<EndpointId, String>,
        policy: ExchangePolicy,
    ) -> Result<Self, ExchangeError> {
        let epoch = epoch_of(members);
        let unbounded = Self {
            epoch,
            ..Self::empty()
        };
        let (policy, bound) = match policy {
            ExchangePolicy::Auto if members.len() <= AUTO_PEERS + 1 => return Ok(unbounded),
            ExchangePolicy::Auto => (Policy::Rotated, Some(AUTO_PEERS)),
            ExchangePolicy::Grouped => (Policy::Grouped, None),
            ExchangePolicy::Rotated => (Policy::Rotated, None),
            ExchangePolicy::Random => return Ok(unbounded),
        };
        // Fixed width, so that the order of the texts is that of the numbers.
        let name = |id: EndpointId| format!("{id:032x}");
        let known = members.iter();
        let known = known
            .map(|(id, host)| Member::new(name(*id), host))
            .collect();
        let schedule = Schedule::with_policy(known, epoch, policy)?;
        let ids: Vec<EndpointId> = members.keys().copied().collect();
        let me = schedule
            .index_of(&name(own))
            .ok_or_else(|| ExchangeError::NotAMember(name(own)))?;
        let permits = bound.unwrap_or(schedule.max_peers()).max(MIN_PERMITS);
        let order = |of_round: &dyn Fn(usize) -> Vec<usize>| {
            let peers = |round| of_round(round).into_iter().map(|at| ids[at]).collect();
            PeerOrder::new(permits, (0..schedule.rounds()).map(peers).collect())
        };
        Ok(Self {
            reads: order(&|round| schedule.servers(round, me)),
            serves: order(&|round| schedule.clients(round, me)),
            policy,
            epoch,
        })
    }
}

/// Returns the FNV-1a hash of the members' ids and hosts, in the order of ids. Endpoints that know
/// the same members compute the same epoch without a message.
fn epoch_of(members: &BTreeMap<EndpointId, String>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (id, host) in members {
        eat(&id.to_le_bytes());
        eat(&(host.len() as u64).to_le_bytes());
        eat(host.as_bytes());
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(n: u128) -> BTreeMap<EndpointId, String> {
        (0..n)
            .map(|id| (id << 90 | id, format!("10.0.0.{}", id / 2)))
            .collect()
    }

    fn plans(n: u128, policy: ExchangePolicy) -> Vec<(EndpointId, ExchangePlan)> {
        let members = members(n);
        let plan = |id: &EndpointId| (*id, ExchangePlan::new(*id, &members, policy).unwrap());
        members.keys().map(plan).collect()
    }

    #[test]
    fn every_node_makes_the_same_schedule_of_the_same_members() {
        for policy in [ExchangePolicy::Grouped, ExchangePolicy::Rotated] {
            for n in [2, 3, 4, 9, 16, 23] {
                let plans = plans(n, policy);
                for (client, plan) in &plans {
                    assert_eq!(plan.epoch, plans[0].1.epoch);
                    for (server, server_plan) in plans.iter().filter(|(server, _)| server != client)
                    {
                        // While one endpoint reads from another, the other serves it.
                        assert_eq!(
                            plan.reads.due(*server).round,
                            server_plan.serves.due(*client).round
                        );
                        assert_ne!(plan.reads.due(*server), UNKNOWN);
                    }
                    assert_eq!(
                        plan.reads.due(*client),
                        UNKNOWN,
                        "no endpoint reads from itself"
                    );
                }
            }
        }
    }

    #[test]
    fn permits_are_about_the_root_of_the_members() {
        for (n, max) in [(9, 4), (16, 5), (25, 6), (100, 11), (400, 21)] {
            let (_, plan) = plans(n, ExchangePolicy::Grouped).swap_remove(0);
            assert!(
                plan.reads.permits <= max.max(MIN_PERMITS),
                "{n}: {}",
                plan.reads.permits
            );
            assert_eq!(plan.serves.permits, plan.reads.permits);
        }
    }

    #[test]
    fn auto_bounds_the_peers_where_there_are_more() {
        for (n, policy) in [(400, ExchangePolicy::Random), (17, ExchangePolicy::Auto)] {
            let (_, plan) = plans(n, policy).swap_remove(0);
            assert_eq!((plan.reads.permits, plan.reads.rounds()), (usize::MAX, 0));
            assert_eq!(plan.policy, Policy::Random);
        }
        for n in [18, 65, 400] {
            let (_, plan) = plans(n, ExchangePolicy::Auto).swap_remove(0);
            assert_eq!((plan.reads.permits, plan.serves.permits), (16, 16));
            assert_eq!(
                (plan.policy, plan.reads.rounds()),
                (Policy::Rotated, n as u32 - 1)
            );
        }
    }

    #[test]
    fn an_epoch_is_a_set_of_members() {
        let base = members(9);
        let mut more = base.clone();
        more.insert(7, "10.0.0.9".to_owned());
        let mut moved = base.clone();
        moved.insert(0, "10.0.0.9".to_owned());
        let epochs = [&base, &more, &moved].map(epoch_of);
        assert_ne!(epochs[0], epochs[1]);
        assert_ne!(epochs[0], epochs[2]);
        assert_eq!(epochs[0], epoch_of(&members(9)));
    }

    #[test]
    fn rounds_go_round() {
        let order = PeerOrder::new(2, vec![vec![5, 6], vec![7]]);
        assert_eq!(order.of_round(0), [5, 6]);
        assert_eq!(order.of_round(3), [7]);
        assert_eq!(
            order.due(6),
            SchedulePosition {
                round: 0,
                position: 1
            }
        );
        assert!(order.due(6) < order.due(7) && order.due(7) < order.due(8));
        assert!(PeerOrder::none().of_round(3).is_empty());
    }
}
