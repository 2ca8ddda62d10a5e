//! Frames that are cut into smaller leases.
//!
//! One shelf per purpose and small class. A shelf knows its frames with at least one free piece,
//! each with a bit mask of what is free (64 pieces of 4 KiB are just one word); a frame with none
//! free is on no list at all, and one whose last piece returned leaves the shelf at once.
//!
//! Purposes do not share a cut frame, and a cut frame counts as a whole (`admission`): otherwise
//! readers could scatter one small lease over every frame and the reserve for serving would be a
//! sum of bytes in which not a single frame is free.
//!
//! A lock and an ordered map instead of a queue of pieces. A frame can only be joined again if
//! its pieces can be withdrawn from the middle of the free list, which a queue cannot do, and the
//! map's order packs leases into the lowest frames, which is what lets the others become whole
//! (address-ordered first fit, as jemalloc does). A small lease is taken per reply, not per block;
//! the section under the lock is a few dozen instructions.

use crate::frames::FrameIndex;
use crate::sync::{lock, Mutex};
use std::collections::BTreeMap;

/// Pieces of a frame that are free, one bit each.
type Mask = u64;

/// Free pieces of one size for one purpose.
pub(crate) struct Shelf {
    /// Mask of a frame with nothing in use; its set bits are the pieces of this class.
    whole: Mask,
    cut: Mutex<Cut>,
}

/// What the lock of a shelf guards.
struct Cut {
    /// Frames with some pieces free and some in use: no mask here is 0 or `whole`.
    partial: BTreeMap<FrameIndex, Mask>,
    /// Pieces taken of frames that were cut already, since the start.
    taken: u64,
}

impl Shelf {
    /// A shelf that cuts a frame in `pieces` (2 to 64).
    pub(crate) fn new(pieces: u32) -> Self {
        debug_assert!((2..=64).contains(&pieces));
        Self {
            whole: Mask::MAX >> (64 - pieces),
            cut: Mutex::new(Cut {
                partial: BTreeMap::new(),
                taken: 0,
            }),
        }
    }

    /// Pieces taken since the start, but for the first of each cut.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.cut).taken
    }

    /// A free piece of a frame that is already cut.
    pub(crate) fn take(&self) -> Option<(FrameIndex, u32)> {
        let mut cut = lock(&self.cut);
        let cut = &mut *cut;
        let mut entry = cut.partial.first_entry()?;
        cut.taken += 1;
        let frame = *entry.key();
        let mask = entry.get_mut();
        let piece = mask.trailing_zeros();
        *mask &= *mask - 1;
        if *mask == 0 {
            entry.remove();
        }
        Some((frame, piece))
    }

    /// Cuts `frame`, which the caller holds, and takes its first piece.
    pub(crate) fn cut(&self, frame: FrameIndex) -> u32 {
        let before = lock(&self.cut).partial.insert(frame, self.whole & !1);
        debug_assert!(before.is_none(), "frame {frame} was cut twice");
        0
    }

    /// Returns a piece. `true`: it was the last in use, the frame is whole and the caller's.
    #[must_use]
    pub(crate) fn give(&self, frame: FrameIndex, piece: u32) -> bool {
        let partial = &mut lock(&self.cut).partial;
        let mask = partial.entry(frame).or_insert(0);
        debug_assert!(*mask & (1 << piece) == 0, "{frame}/{piece} returned twice");
        *mask |= 1 << piece;
        if *mask != self.whole {
            return false;
        }
        partial.remove(&frame);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_whole_again_exactly_when_its_last_piece_returns() {
        for pieces in [4, 16, 64] {
            let shelf = Shelf::new(pieces);
            assert_eq!(shelf.take(), None);
            let mut out = vec![(9, shelf.cut(9))];
            out.extend((1..pieces).map(|_| shelf.take().unwrap()));
            assert_eq!(shelf.take(), None, "{pieces} pieces and no more");
            let mut numbers: Vec<_> = out.iter().map(|(_, piece)| *piece).collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..pieces).collect::<Vec<_>>());
            let last = out.pop().unwrap();
            for (frame, piece) in out {
                assert!(!shelf.give(frame, piece));
            }
            assert!(shelf.give(last.0, last.1));
            assert_eq!(shelf.take(), None, "a whole frame is the caller's");
        }
    }

    #[test]
    fn the_lowest_frame_is_filled_first() {
        let shelf = Shelf::new(4);
        shelf.cut(7);
        shelf.cut(3);
        let order: Vec<_> = (0..6).map(|_| shelf.take().unwrap().0).collect();
        assert_eq!(order, [3, 3, 3, 7, 7, 7]);
    }
}
