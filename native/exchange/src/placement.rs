//! RankPlaces members into the columns of a plane so that neighbours share a column.
//!
//! The members of one column meet in one single round, the plane's vertical one; two members of
//! different columns meet in another round. So the members of a host that share a column read from
//! each other in one round, over shared memory.
//!
//! The method is first-fit decreasing: whole hosts, then the members of hosts that did not fit, each
//! into the emptiest column. The epoch orders hosts of equal size, so that the members of a column
//! change from epoch to epoch as far as locality allows.
//!
//! A host is split only if no column had room for it, that is, if the whole hosts leave fewer free
//! points in every column than the host has members.
//!
//! Racks are not considered: each pair of members exchanges once in every order, so as many bytes cross
//! from rack to rack whatever the order is.

use crate::rng::SplitMix64;
use crate::Member;

/// Returns the member indices of each column. `members` must be sorted by id.
pub(crate) fn columns(
    members: &[Member],
    count: usize,
    capacity: usize,
    rng: &mut SplitMix64,
) -> Vec<Vec<u32>> {
    let mut columns = ColumnFill {
        columns: vec![Vec::with_capacity(capacity); count],
        capacity,
    };
    let mut split = Vec::new();
    for host in hosts(members, rng) {
        if !columns.first_fit(&host) {
            split.push(host);
        }
    }
    for host in split {
        columns.spread(&host);
    }
    columns.columns
}

struct ColumnFill {
    /// The columns, each of at most `capacity` members.
    columns: Vec<Vec<u32>>,
    capacity: usize,
}

impl ColumnFill {
    fn first_fit(&mut self, unit: &[u32]) -> bool {
        let room = self.capacity.checked_sub(unit.len());
        let column = room.and_then(|room| self.columns.iter_mut().find(|c| c.len() <= room));
        column.map(|c| c.extend_from_slice(unit)).is_some()
    }

    /// RankPlaces the members of a unit into the emptiest columns, in the largest possible pieces. Of
    /// equally empty columns it takes the first.
    fn spread(&mut self, mut unit: &[u32]) {
        while !unit.is_empty() {
            let Some(column) = self.columns.iter_mut().min_by_key(|c| c.len()) else {
                return;
            };
            let (piece, rest) = unit.split_at(unit.len().min(self.capacity - column.len()));
            column.extend_from_slice(piece);
            unit = rest;
        }
    }
}

/// Returns the hosts, each a list of members. Larger ones come first; the epoch orders those of equal
/// size. Before that, hosts are in the order of their names' bytes.
fn hosts(members: &[Member], rng: &mut SplitMix64) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    let host = |i: u32| &members[i as usize].host;
    // The sort is stable: members of one host stay sorted by id.
    order.sort_by_key(|&i| host(i));
    let of_hosts = order.chunk_by(|&a, &b| host(a) == host(b));
    let mut hosts: Vec<Vec<u32>> = of_hosts.map(<[u32]>::to_vec).collect();
    rng.shuffle(&mut hosts);
    hosts.sort_by_key(|host| std::cmp::Reverse(host.len()));
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(hosts: &[(&str, usize)]) -> Vec<Member> {
        let mut all = Vec::new();
        for (host, n) in hosts {
            all.extend((0..*n).map(|i| Member::new(format!("{host}-{i}"), *host)));
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    #[test]
    fn a_host_is_split_only_when_no_column_has_room() {
        let m = members(&[("a", 2), ("b", 2), ("c", 2), ("d", 2), ("e", 1)]);
        let columns = columns(&m, 3, 3, &mut SplitMix64::new(2));
        let whole = |host: &str| {
            columns
                .iter()
                .any(|c| c.iter().filter(|&&i| m[i as usize].host == host).count() == 2)
        };
        assert_eq!(["a", "b", "c", "d"].iter().filter(|h| whole(h)).count(), 3);
        assert!(columns.iter().all(|c| c.len() == 3));
    }
}
