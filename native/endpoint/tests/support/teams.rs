//! Teams of threads: each rank on a thread of its own, on one of a few endpoints.

use crate::support::{config, TIMEOUT};
use faro_endpoint::collective::{
    CollectiveError, Grouping, NanPolicy, Operation, Round, Team, TeamMember,
};
use faro_endpoint::{Endpoint, FabricChoice};
use std::sync::Arc;

pub fn endpoints(fabric: FabricChoice, count: usize) -> Vec<Arc<Endpoint>> {
    (0..count)
        .map(|n| Endpoint::start(config(&format!("executor-{n}"), fabric)).unwrap())
        .collect()
}

/// Makes a team of `ranks` members, dealt out to the endpoints in turn.
pub fn team(endpoints: &[Arc<Endpoint>], ranks: usize) -> Vec<Team> {
    team_in_racks(endpoints, ranks, |_| String::new())
}

/// Makes a team of members in racks, by rank.
pub fn team_in_racks(
    endpoints: &[Arc<Endpoint>],
    ranks: usize,
    rack: impl Fn(usize) -> String,
) -> Vec<Team> {
    let member = |rank: usize| {
        let mut member = endpoints[rank % endpoints.len()].member().unwrap();
        member.set_rack(&rack(rank));
        member
    };
    let members: Vec<TeamMember> = (0..ranks).map(member).collect();
    let ids: Vec<Vec<u8>> = members.iter().map(TeamMember::bootstrap_id).collect();
    members
        .into_iter()
        .enumerate()
        .map(|(rank, member)| member.join(rank, &ids).unwrap())
        .collect()
}

pub fn round(grouping: Grouping, operation: Operation) -> Round {
    Round {
        grouping,
        operation,
        nan: NanPolicy::Fail,
        timeout: TIMEOUT,
    }
}

pub fn dssync(group: u32) -> Grouping {
    Grouping::DsSync { group, epoch: 11 }
}

/// Runs `body` for every member at once; what each returned, by rank.
pub fn all<T: Send>(teams: Vec<Team>, body: impl Fn(&mut Team) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = teams
            .into_iter()
            .map(|mut team| scope.spawn(move || body(&mut team)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Runs one round over floats that is not cancelled.
pub fn floats(team: &mut Team, values: &mut [f32], round: &Round) -> Result<(), CollectiveError> {
    let mut array: &mut [f32] = values;
    team.all_reduce(&mut array, round, &mut || false)
}

/// Runs one round over doubles that is not cancelled.
pub fn doubles(team: &mut Team, values: &mut [f64], round: &Round) -> Result<(), CollectiveError> {
    let mut array: &mut [f64] = values;
    team.all_reduce(&mut array, round, &mut || false)
}
