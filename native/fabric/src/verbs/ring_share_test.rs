//! Tests of the share, and a search through all states of two rings that give each other credits.

use super::*;
use std::collections::{HashSet, VecDeque};

fn share(total: u32, used: u32) -> RingShare {
    let used = AtomicU32::new(used);
    RingShare { total, used }
}

#[test]
fn the_share_is_an_eighth_of_the_arena() {
    for (limit, segments) in [(32 << 20, 1_024), (256 << 20, 8_192), (64 << 30, 1 << 21)] {
        assert_eq!(RingShare::of_arena(limit).total(), segments);
    }
    // A thousand connections fit that of the default limit, and a ring that is used grows.
    assert!(1_000 * (SMALLEST + 1) <= RingShare::of_arena(256 << 20).total());
}

#[test]
fn what_a_segment_may_be_taken_for_depends_on_how_many_are_taken() {
    use SegmentUse::{Connection, Growth, Send};
    #[rustfmt::skip]
    let table = [
        // Used of 100   a new connection  growth  a further send  crowded
        (0,         true,             true,   true,           false),
        (49,        true,             true,   true,           false),
        (50,        true,             false,  true,           false),
        (74,        true,             false,  true,           false),
        (75,        true,             false,  false,          false),
        (76,        true,             false,  false,          true),
        (99,        true,             false,  false,          true),
        (100,       false,            false,  false,          true),
    ];
    for (used, connection, growth, send, crowded) in table {
        assert_eq!(share(100, used).is_crowded(), crowded, "{used}");
        for (purpose, allowed) in [(Connection, connection), (Growth, growth), (Send, send)] {
            let share = share(100, used);
            assert_eq!(share.take(purpose), allowed, "{purpose:?} of {used}");
            assert_eq!(share.used(), used + u32::from(allowed));
        }
    }
}

#[test]
fn a_ring_doubles_when_half_of_it_is_returned() {
    #[rustfmt::skip]
    let table = [
        // Used of 1,000, size, returned, depth, expected growth
        (0,         4,    1,        64,    0),
        (0,         4,    2,        64,    4),
        (0,         32,   15,       64,    0),
        (0,         32,   16,       64,    32),
        (0,         64,   64,       64,    0),
        (0,         48,   24,       64,    16),
        (0,         16,   16,       20,    4),
        (0,         16,   16,       16,    0),
        (497,       4,    2,        64,    3),
        (500,       4,    4,        64,    0),
        (900,       4,    4,        64,    0),
    ];
    for (used, size, returned, depth, expected) in table {
        let got = share(1_000, used).growth(size, returned, depth);
        assert_eq!(got, expected, "{used} used, {size}, {returned}, {depth}");
    }
    // From the smallest to the largest in four steps.
    let sizes = std::iter::successors(Some(SMALLEST), |size| {
        let more = share(1_000, 0).growth(*size, *size, LARGEST);
        (more > 0).then_some(size + more)
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [4, 8, 16, 32, 64]);
}

#[test]
fn a_ring_shrinks_as_it_is_used_while_the_share_is_crowded() {
    #[rustfmt::skip]
    let table = [
        // Used of 1,000, size, returned, expected number that is not posted again
        (750,       64,   32,       0),
        (751,       64,   32,       1),
        (1_000,     64,   32,       32),
        (1_000,     8,    8,        4),
        (1_000,     4,    4,        0),
    ];
    for (used, size, returned, expected) in table {
        let got = share(1_000, used).shrinkage(size, returned);
        assert_eq!(got, expected, "{used} used, {size}, {returned}");
    }
}

/// One side of a connection. Its peer's ring is the other side's.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RingSide {
    /// Receive requests that the peer has posted for this side.
    credits: u32,
    /// Used by the peer, and not given back.
    to_return: u32,
    size: u32,
    /// On their way to this side: the credits that each carries.
    arriving: VecDeque<u32>,
}

/// Explores every interleaving of two sides that both always have something to send, with rings
/// that grow and shrink at any time. Some step must always be possible, so that neither side
/// waits for ever.
#[test]
fn two_sides_never_wait_for_each_other() {
    const LONGEST: u32 = 6;
    let side = RingSide {
        credits: SMALLEST,
        to_return: 0,
        size: SMALLEST,
        arriving: VecDeque::new(),
    };
    let start = [side.clone(), side];
    let (mut seen, mut next) = (HashSet::from([start.clone()]), vec![start]);
    while let Some(state) = next.pop() {
        let mut follow = Vec::new();
        let mut moves = 0;
        for me in [0, 1] {
            let send = |with_credits: bool| {
                let mut after = state.clone();
                after[me].credits -= 1;
                // A write carries no credits.
                let carried = if with_credits { after[me].to_return } else { 0 };
                after[me].to_return -= carried;
                after[1 - me].arriving.push_back(carried);
                after
            };
            let now = &state[me];
            let in_flight: u32 = now.arriving.iter().sum();
            let sent = state[1 - me].arriving.len() as u32;
            let known = now.credits + in_flight + state[1 - me].to_return + sent;
            assert_eq!(known, state[1 - me].size, "no credit is lost");
            if now.credits > RESERVE {
                follow.extend([send(true), send(false)]);
                moves += 2;
            }
            if now.credits > 0 && now.to_return >= needed_for_update(now.size) {
                follow.push(send(true));
                moves += 1;
            }
            if let Some(carried) = now.arriving.front() {
                let mut after = state.clone();
                after[me].credits += carried;
                after[me].to_return += 1;
                after[me].arriving.pop_front();
                follow.push(after);
                moves += 1;
            }
            // Progress does not need it, so it is not counted.
            if now.to_return >= needed_for_update(now.size) && now.size < LONGEST {
                let mut after = state.clone();
                after[me].size += 1;
                after[me].to_return += 1;
                follow.push(after);
            }
            if now.to_return > 0 && now.size > SMALLEST {
                let mut after = state.clone();
                after[me].size -= 1;
                after[me].to_return -= 1;
                follow.push(after);
            }
        }
        assert!(moves > 0, "both wait");
        next.extend(
            follow
                .into_iter()
                .filter(|state| seen.insert(state.clone())),
        );
    }
    assert!(seen.len() > 1_000, "{} states", seen.len());
}
