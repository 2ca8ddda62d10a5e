//! The shuffled groups of a DS-Sync round.

use crate::rng::SplitMix64;
use crate::ExchangeError;

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
    let mut order: Vec<usize> = (0..ranks).collect();
    SplitMix64::stream(epoch, round).shuffle(&mut order);
    let count = (ranks / group.max(1)).max(1);
    let mut rest = order.as_slice();
    let mut groups = Vec::with_capacity(count);
    for g in 0..count {
        let (run, after) = rest.split_at(ranks / count + usize::from(g < ranks % count));
        let mut run = run.to_vec();
        run.sort_unstable();
        groups.push(run);
        rest = after;
    }
    Ok(groups)
}
