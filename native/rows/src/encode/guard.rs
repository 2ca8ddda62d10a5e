//! Decides for each block whether rows are packed or compressed by the codec alone.
//!
//! Word columns do not see that rows repeat with a period: seven rows in turn take 50 times the
//! bytes that LZ4 takes. So some blocks are made in both ways, and the following blocks use the
//! shorter way. While the same way wins, the pause between tries doubles.

use crate::format::block::TailCodec;

/// Maximum pause between two tries, in blocks: a try of texts takes about three times the CPU of a
/// block.
const LONGEST: u32 = 64;
/// Rows that LZ4 compresses to less than this many percent are cheap for LZ4: for 60 columns that
/// are mostly null, packing takes a fifth more CPU. So their packed blocks must be shorter than
/// LZ4's. Rows in which LZ4 finds little cost it a long search, and zstd costs more than packing
/// for all rows: packed blocks of these may be longer.
const COMPRESSIBLE: usize = 90;
/// Maximum size of packed blocks while packing is in use, in percent of the codec's block: first for
/// rows that are not cheap for the codec, then for those that are.
const KEPT: [usize; 2] = [102, 98];
/// The same maximum for a return to packing. It is lower, because otherwise two ways of about the
/// same size would alternate, and each change would cause tries.
const TAKEN_UP: [usize; 2] = [100, 96];
/// A packed block that is longer than the last tried one by this many percent shows that the rows
/// have changed.
const CHANGED: usize = 25;
/// Minimum number of blocks between a try and one that a change causes.
const LEAST: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardPlan {
    Packed,
    /// Make the block in both ways; [`Guard::tell`] chooses.
    Both,
}

#[derive(Debug)]
pub(crate) struct Guard {
    codec: TailCodec,
    packed: bool,
    pause: u32,
    /// Blocks before the next try.
    left: u32,
    since: u32,
    /// Packed bytes per 1,024 original bytes in the last try.
    share: usize,
    /// The rows of the last planned block repeated nearby.
    repeated: bool,
}

impl Guard {
    /// Returns a guard. `codec` makes the blocks that are not packed.
    pub fn new(codec: TailCodec) -> Self {
        Self {
            codec,
            packed: true,
            pause: 0,
            left: 0,
            since: 0,
            share: usize::MAX,
            repeated: false,
        }
    }

    /// Returns whether to compress the next block by the codec alone, without looking for its rows.
    pub fn skips_rows(&mut self) -> bool {
        let skips = !self.packed && self.left > 0;
        if skips {
            self.left -= 1;
        }
        skips
    }

    /// Plans the next block, if [`skips_rows`](Self::skips_rows) returned false for it. `repeat`
    /// says whether its rows repeat nearby.
    pub fn plan(&mut self, repeat: bool) -> GuardPlan {
        let news = self.packed && repeat && !self.repeated;
        self.repeated = repeat;
        self.since = self.since.saturating_add(1);
        if self.left == 0 || news {
            return GuardPlan::Both;
        }
        self.left -= 1;
        GuardPlan::Packed
    }

    /// Returns whether a packed block has become so long that the codec must be tried too.
    pub fn is_changed(&self, packed: usize, original: usize) -> bool {
        let share = share(packed, original);
        self.since >= LEAST && share > self.share.saturating_add(self.share * CHANGED / 100)
    }

    /// Records a try: the bytes of the packed block, `None` if packing failed, and those of the
    /// codec. Returns whether to use the packed block.
    pub fn tell(&mut self, packed: Option<usize>, codec: usize, original: usize) -> bool {
        let is_cheap = match self.codec {
            TailCodec::Lz4 => 100 * codec < COMPRESSIBLE * original,
            TailCodec::Zstd => false,
        };
        let limits = if self.packed { KEPT } else { TAKEN_UP };
        let wins = packed.is_some_and(|bytes| 100 * bytes <= limits[usize::from(is_cheap)] * codec);
        self.pause = match wins == self.packed {
            true => (2 * self.pause + 1).min(LONGEST),
            false => 1,
        };
        self.packed = wins;
        (self.left, self.since) = (self.pause, 0);
        self.share = packed.map_or(usize::MAX, |bytes| share(bytes, original));
        wins
    }
}

fn share(packed: usize, original: usize) -> usize {
    1024 * packed / original.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the indices of the blocks that are tried, if packing makes `packed` and the codec
    /// `codec` bytes of each.
    fn tries(guard: &mut Guard, blocks: usize, packed: usize, codec: usize) -> Vec<usize> {
        (0..blocks)
            .filter(|_| {
                let tried = !guard.skips_rows() && guard.plan(false) == GuardPlan::Both;
                if tried {
                    guard.tell(Some(packed), codec, 10_000);
                }
                tried
            })
            .collect()
    }

    #[test]
    fn the_pause_doubles_while_one_way_wins() {
        let mut guard = Guard::new(TailCodec::Lz4);
        assert_eq!(tries(&mut guard, 100, 500, 1000), [0, 2, 6, 14, 30, 62]);
        assert_eq!(guard.plan(false), GuardPlan::Packed);
        // The other way wins from the next try on.
        let found = tries(&mut guard, 100, 1000, 500);
        assert_eq!(&found[1..4], [found[0] + 2, found[0] + 6, found[0] + 14]);
        assert!(guard.skips_rows());
    }

    #[test]
    fn ways_that_take_the_same_do_not_take_turns() {
        let mut guard = Guard::new(TailCodec::Lz4);
        assert!(guard.tell(Some(1020), 1000, 1_100));
        assert!(!guard.tell(Some(1021), 1000, 1_100));
        assert!(!guard.tell(Some(1001), 1000, 1_100));
        assert!(guard.tell(Some(1000), 1000, 1_100));
        assert!(guard.tell(Some(1001), 1000, 1_100));
    }

    #[test]
    fn rows_that_are_cheap_for_the_codec_are_packed_for_a_gain_only() {
        let mut guard = Guard::new(TailCodec::Lz4);
        assert!(guard.tell(Some(980), 1000, 10_000));
        assert!(!guard.tell(Some(981), 1000, 10_000));
        assert!(!guard.tell(Some(961), 1000, 10_000));
        assert!(guard.tell(Some(960), 1000, 10_000));
        // No rows are cheap for zstd.
        assert!(Guard::new(TailCodec::Zstd).tell(Some(1020), 1000, 10_000));
    }

    #[test]
    fn a_change_is_tried_at_once() {
        let mut guard = Guard::new(TailCodec::Lz4);
        tries(&mut guard, 20, 500, 1000);
        assert_eq!(guard.plan(false), GuardPlan::Packed);
        assert_eq!(guard.plan(true), GuardPlan::Both);
        guard.tell(Some(500), 1000, 10_000);
        // The rows still repeat, and packing won.
        assert_eq!(guard.plan(true), GuardPlan::Packed);
        // Longer blocks count as a change once a few blocks have passed.
        assert!(!guard.is_changed(700, 10_000));
        tries(&mut guard, 20, 500, 1000);
        assert!(guard.is_changed(700, 10_000));
        assert!(!guard.is_changed(600, 10_000));
    }
}
