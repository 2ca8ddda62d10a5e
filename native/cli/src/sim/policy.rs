//! The requests of each policy: their order, and bounds on how many are open at once.
//!
//! All policies have the same bytes in flight; they differ in order and in how many peers they may
//! read from at once. Spark cuts the bytes of one server into requests of a fifth of the bytes in
//! flight, and shuffles the requests; so does `random`. No policy waits for the end of a round.

use super::args::{PolicyName, SimArgs};
use super::model::Model;
use super::SimError;
use faro_exchange::{Member, Policy, Schedule, SplitMix64};

/// One request: part `part` of the bytes that a client reads from `server`.
#[derive(Clone, Copy)]
pub struct SimRequest {
    pub server: u16,
    pub part: u16,
}

pub struct PolicyFetch {
    /// Requests of each client, in order.
    pub orders: Vec<Vec<SimRequest>>,
    /// Bytes that one client may have requested and not received.
    pub in_flight: u64,
    /// Largest request.
    pub request: u64,
    /// Most peers that one client reads from at once, and that one server serves at once.
    pub max_peers: u32,
}

impl PolicyFetch {
    pub fn new(policy: PolicyName, args: &SimArgs, model: &Model) -> Result<PolicyFetch, SimError> {
        let n = model.endpoints;
        let request = (args.in_flight / 5).max(1);
        let (servers, max_peers): (Box<dyn Fn(usize) -> Vec<u16>>, u32) = match policy {
            PolicyName::Grouped | PolicyName::Rotated => {
                let policy = match policy {
                    PolicyName::Grouped => Policy::Grouped,
                    _ => Policy::Rotated,
                };
                let schedule = schedule(n, args.seed, policy)?;
                let peers = args.max_peers.unwrap_or(schedule.max_peers() as u32);
                let order = move |client: usize| {
                    schedule
                        .visits(client)
                        .iter()
                        .map(|v| v.peer as u16)
                        .collect()
                };
                (Box::new(order), peers)
            }
            PolicyName::Random | PolicyName::Sequential => {
                let order = move |client: usize| {
                    (0..n as u16)
                        .filter(|&o| usize::from(o) != client)
                        .collect()
                };
                (Box::new(order), u32::MAX)
            }
        };
        let mut orders = Vec::with_capacity(n);
        for client in 0..n {
            let mut order = Vec::with_capacity(n - 1);
            for server in servers(client) {
                let bytes = model.bytes(client, usize::from(server));
                let parts = bytes.div_ceil(request);
                let parts = u16::try_from(parts)
                    .map_err(|_| SimError::TooManyRequests { bytes, request })?;
                order.extend((0..parts).map(|part| SimRequest { server, part }));
            }
            if policy == PolicyName::Random {
                SplitMix64::stream(args.seed, client as u64).shuffle(&mut order);
            }
            orders.push(order);
        }
        Ok(PolicyFetch {
            orders,
            in_flight: args.in_flight,
            request,
            max_peers,
        })
    }
}

/// A schedule whose member numbers are the endpoints' numbers.
pub fn schedule(n: usize, seed: u64, policy: Policy) -> Result<Schedule, SimError> {
    let members = (0..n)
        .map(|i| Member::new(format!("{i:04}"), format!("h{i}")))
        .collect();
    Ok(Schedule::with_policy(members, seed, policy)?)
}
