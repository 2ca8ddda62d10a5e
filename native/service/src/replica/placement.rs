//! Rendezvous hashing: each host has a score for each output, and those with the highest scores have its copies. A host
//! that joins takes some outputs over, and moves no other.

use faro_wire::OutputId;

/// The step of SplitMix64; `mix` is its finish (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn score(host: usize, id: OutputId) -> u64 {
    let host = mix((host as u64).wrapping_add(STEP));
    mix(mix(host ^ u64::from(id.shuffle_id)) ^ id.map_id as u64)
}

/// All of the hosts but the one that has the output, the first to get a copy first.
#[must_use]
pub fn order(hosts: impl IntoIterator<Item = usize>, source: usize, id: OutputId) -> Vec<usize> {
    let others = hosts.into_iter().filter(|host| *host != source);
    let mut others: Vec<usize> = others.collect();
    others.sort_by_key(|host| (std::cmp::Reverse(score(*host, id)), *host));
    others
}

/// Whether `host` is among the first `replicas` of `order`.
pub(crate) fn has_copy(
    host: usize,
    hosts: &[usize],
    source: usize,
    replicas: usize,
    id: OutputId,
) -> bool {
    let own = score(host, id);
    let before = |other: usize| {
        let theirs = score(other, id);
        theirs > own || (theirs == own && other < host)
    };
    let others = hosts
        .iter()
        .filter(|other| **other != source && **other != host);
    host != source && others.filter(|other| before(**other)).count() < replicas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(map_id: i64) -> OutputId {
        OutputId {
            shuffle_id: 3,
            map_id,
        }
    }

    #[test]
    fn copies_are_on_other_hosts_and_evenly_spread() {
        let (mut got, hosts) = ([0; 8], Vec::from_iter(0..8));
        for map in 0..8_000 {
            let order = order(0..8, 2, id(map));
            assert_eq!(order.len(), 7);
            assert!(!order.contains(&2));
            for host in 0..8 {
                let is_first = order[..2].contains(&host);
                assert_eq!(has_copy(host, &hosts, 2, 2, id(map)), is_first);
            }
            got[order[0]] += 1;
        }
        let others = got.iter().filter(|count| **count > 0);
        assert!(others.clone().count() == 7 && others.clone().all(|count| *count > 900));
    }

    #[test]
    fn a_host_that_joins_moves_nothing_between_others() {
        for map in 0..1_000 {
            let mut after = order(0..9, 0, id(map));
            after.retain(|host| *host != 8);
            assert_eq!(after, order(0..8, 0, id(map)));
        }
    }

    /// A service of an older build has its copies where this one looks for them.
    #[test]
    fn the_order_is_the_same_in_every_build() {
        let of = |shuffle_id, map_id| order(0..6, 1, OutputId { shuffle_id, map_id });
        assert_eq!(of(0, 0), [3, 4, 2, 0, 5]);
        assert_eq!(of(7, 123_456_789_012), [4, 0, 3, 2, 5]);
        assert_eq!(of(2_147_483_646, i64::MAX), [4, 3, 0, 5, 2]);
    }

    #[test]
    fn few_hosts_have_fewer_copies() {
        assert_eq!(order(0..1, 0, id(1)), [0; 0]);
        assert!(has_copy(1, &[0, 1], 0, 3, id(1)) && !has_copy(0, &[0, 1], 0, 3, id(1)));
    }
}
