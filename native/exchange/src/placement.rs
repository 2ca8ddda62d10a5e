//! Places members into the columns of a plane so that neighbours share a column.
//!
//! The members of one column meet in one single round, the plane's vertical one; two members of
//! different columns meet in another round. So the members of a host that share a column read from
//! each other in one round, over shared memory.
//!
//! The method is first-fit decreasing: whole racks, then whole hosts of the racks that did not fit,
//! then the members of hosts that did not fit, each into the emptiest column. The epoch orders
//! racks (and hosts) of equal size, so that the members of a column change from epoch to epoch as
//! far as locality allows.
//!
//! A host is split only if no column had room for it, that is, if the whole hosts leave fewer free
//! points in every column than the host has members. Racks are placed first, and a rack that fits
//! also keeps its hosts whole.

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
    let mut open = Vec::new();
    for rack in racks(members, rng) {
        let whole: Vec<u32> = rack.iter().flatten().copied().collect();
        if !columns.first_fit(&whole) {
            open.extend(rack);
        }
    }
    open.sort_by_key(|host| std::cmp::Reverse(host.len()));
    let mut split = Vec::new();
    for host in open {
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

    /// Places the members of a unit into the emptiest columns, in the largest possible pieces. Of
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

/// Returns the racks, each a list of hosts, each a list of members. Larger ones come first; the
/// epoch orders those of equal size. Before that, racks and hosts are in the order of their names'
/// bytes.
fn racks(members: &[Member], rng: &mut SplitMix64) -> Vec<Vec<Vec<u32>>> {
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    // The sort is stable: members of one host stay sorted by id.
    order.sort_by_key(|&i| {
        let m = &members[i as usize];
        (&m.rack, &m.host)
    });
    let mut racks: Vec<Vec<Vec<u32>>> = Vec::new();
    let mut last: Option<&Member> = None;
    for i in order {
        let m = &members[i as usize];
        let same_rack = last.is_some_and(|l| l.rack == m.rack);
        let same_host = same_rack && last.is_some_and(|l| l.host == m.host);
        match racks.last_mut() {
            Some(rack) if same_rack => match rack.last_mut() {
                Some(host) if same_host => host.push(i),
                _ => rack.push(vec![i]),
            },
            _ => racks.push(vec![vec![i]]),
        }
        last = Some(m);
    }
    rng.shuffle(&mut racks);
    racks.sort_by_key(|rack| std::cmp::Reverse(rack.iter().map(Vec::len).sum::<usize>()));
    for rack in &mut racks {
        rng.shuffle(rack);
        rack.sort_by_key(|host| std::cmp::Reverse(host.len()));
    }
    racks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(hosts: &[(&str, &str, usize)]) -> Vec<Member> {
        let mut all = Vec::new();
        for (host, rack, n) in hosts {
            all.extend((0..*n).map(|i| Member::new(format!("{host}-{i}"), *host, *rack)));
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    #[test]
    fn a_rack_that_fits_shares_a_column() {
        let m = members(&[
            ("a", "r1", 2),
            ("b", "r1", 2),
            ("c", "r2", 3),
            ("d", "r2", 1),
        ]);
        let columns = columns(&m, 4, 4, &mut SplitMix64::new(1));
        for column in &columns[..2] {
            assert_eq!(column.len(), 4);
            let rack = &m[column[0] as usize].rack;
            assert!(column.iter().all(|&i| m[i as usize].rack == *rack));
        }
        assert!(columns[2].is_empty() && columns[3].is_empty());
    }

    #[test]
    fn a_host_is_split_only_when_no_column_has_room() {
        let m = members(&[
            ("a", "", 2),
            ("b", "", 2),
            ("c", "", 2),
            ("d", "", 2),
            ("e", "", 1),
        ]);
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
