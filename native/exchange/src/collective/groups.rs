//! The shuffled groups of a DS-Sync round.

use super::RankPlaces;
use crate::rng::SplitMix64;
use crate::ExchangeError;

/// In one of this many rounds groups are formed of all ranks, wherever they are, so that values get
/// everywhere: the last one.
pub const MIXING_ROUNDS: u64 = 8;

/// Returns disjoint groups that cover the ranks below `ranks` once. Each round shuffles the ranks
/// by stream (epoch, round) and cuts them into ⌊ranks / group⌋ runs whose lengths differ by at most
/// one, longer ones first. So no group is smaller than `group`.
pub fn dssync_groups(
    ranks: usize,
    group: usize,
    epoch: u64,
    round: u64,
) -> Result<Vec<Vec<usize>>, ExchangeError> {
    // A single rank has no group, so its group size does not matter.
    if ranks > 1 && !(2..=ranks).contains(&group) {
        return Err(ExchangeError::BadGroup { group, ranks });
    }
    Ok(runs(&shuffled(ranks, epoch, round), group))
}

/// Returns the groups of a round by the ranks' places. In each [`MIXING_ROUNDS`]th round they are
/// those of [`dssync_groups`]. In all others, of the same shuffled ranks:
/// 1. A rank that is apart is a group of its own: it keeps its values and delays nobody.
/// 2. The others are taken rack by rack. A rack with fewer than `group` of them is joined with the
///    next one, until there are as many; what remains in the end joins the last.
/// 3. Each of these is cut into runs as all ranks are in `dssync_groups`.
///
/// With one rack and nobody apart these are the groups of `dssync_groups`. The mean over all ranks
/// stays the same, whatever the sizes of the groups are: a group's sum does not change.
pub fn dssync_groups_by_place(
    places: &RankPlaces,
    group: usize,
    epoch: u64,
    round: u64,
) -> Result<Vec<Vec<usize>>, ExchangeError> {
    let ranks = places.ranks();
    if round % MIXING_ROUNDS == MIXING_ROUNDS - 1 {
        return dssync_groups(ranks, group, epoch, round);
    }
    // Checks the group's size.
    dssync_groups(ranks, group, epoch, round)?;
    let (apart, mut order): (Vec<usize>, Vec<usize>) = shuffled(ranks, epoch, round)
        .into_iter()
        .partition(|rank| places.apart[*rank]);
    // The sort is stable: each rack's ranks stay shuffled.
    order.sort_by_key(|rank| places.racks[*rank]);
    let mut areas: Vec<Vec<usize>> = Vec::new();
    for rack in order.chunk_by(|a, b| places.racks[*a] == places.racks[*b]) {
        match areas.last_mut().filter(|area| area.len() < group) {
            Some(area) => area.extend(rack),
            None => areas.push(rack.to_vec()),
        }
    }
    if let [.., last, rest] = areas.as_mut_slice() {
        if rest.len() < group {
            last.append(rest);
            areas.pop();
        }
    }
    let of_area = |area: &Vec<usize>| runs(area, group);
    let mut groups: Vec<Vec<usize>> = areas.iter().flat_map(of_area).collect();
    groups.extend(apart.into_iter().map(|rank| vec![rank]));
    Ok(groups)
}

fn shuffled(ranks: usize, epoch: u64, round: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks).collect();
    SplitMix64::stream(epoch, round).shuffle(&mut order);
    order
}

/// Cuts ranks into runs of at least `group`, or into one; each is sorted.
fn runs(order: &[usize], group: usize) -> Vec<Vec<usize>> {
    let ranks = order.len();
    let count = (ranks / group.max(1)).max(1);
    let mut rest = order;
    let mut groups = Vec::with_capacity(count);
    for g in 0..count {
        let (run, after) = rest.split_at(ranks / count + usize::from(g < ranks % count));
        let mut run = run.to_vec();
        run.sort_unstable();
        groups.push(run);
        rest = after;
    }
    groups
}
