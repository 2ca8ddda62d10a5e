//! The estimate for one stage: its figures times the measured constants, as time of its tasks.

use super::constants as c;
use super::constants::CostRange;
use super::figures::StageFigures;
use serde::Serialize;

/// The reason of an estimate. A stage has one of the first six.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    SmallBlocks,
    RowStreams,
    Sorts,
    Bytes,
    FetchWait,
    Nothing,
    NoShuffle,
    LittleShuffle,
    LocalMode,
    UsedFaro,
    OtherShuffle,
    StillRuns,
    Compacted,
    NoEnd,
    Cut,
}

impl Reason {
    /// At most 13 letters, for a column.
    pub fn text(self) -> &'static str {
        match self {
            Self::SmallBlocks => "small blocks",
            Self::RowStreams => "row streams",
            Self::Sorts => "sorts",
            Self::Bytes => "bytes moved",
            Self::FetchWait => "fetch wait?",
            Self::Nothing => "–",
            Self::NoShuffle => "no shuffle",
            Self::LittleShuffle => "too little",
            Self::LocalMode => "local mode",
            Self::UsedFaro => "used Faro",
            Self::OtherShuffle => "other shuffle",
            Self::StillRuns => "still runs",
            Self::Compacted => "compacted",
            Self::NoEnd => "no end",
            Self::Cut => "log is cut",
        }
    }
}

/// Parts of a time, from 0 to 1.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Gain {
    pub low: f64,
    pub expected: f64,
    pub high: f64,
}

impl Gain {
    pub fn times(self, by: f64) -> Self {
        Self {
            low: self.low * by,
            expected: self.expected * by,
            high: self.high * by,
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            expected: self.expected + other.expected,
            high: self.high + other.high,
        }
    }

    fn of(number: f64, each: CostRange) -> Self {
        Self {
            low: number * each.low,
            expected: number * each.expected,
            high: number * each.high,
        }
    }
}

/// The part of the stage's task time that Faro would save, and the largest cause of it. `compressed`: whether
/// Spark compressed the shuffles.
pub fn estimate(stage: &StageFigures, compressed: bool) -> (Gain, Reason) {
    let run = stage.run_ms as f64 / 1e3;
    if run <= 0.0 {
        return (Gain::default(), Reason::Nothing);
    }
    let (remote_blocks, remote_bytes) = (stage.remote_blocks as f64, stage.remote_bytes as f64);
    let (mut blocks, mut rows, mut bytes) = (Gain::default(), Gain::default(), Gain::default());
    let mut sorts = Gain::default();
    if stage.reads_rows {
        sorts = Gain::of(stage.sort_ms as f64 / 1e3, c::SORT_SECOND);
        let all = remote_blocks + stage.local_blocks as f64;
        blocks = blocks.plus(Gain::of(all, c::ROW_BLOCK_READ));
        let read = remote_bytes + stage.local_bytes as f64;
        if compressed && narrow(read, stage.rows_read) {
            rows = rows.plus(Gain::of(read, c::NARROW_BYTE_READ));
        } else {
            bytes = bytes.plus(Gain::of(remote_bytes, c::WIDE_REMOTE_BYTE));
        }
    } else {
        blocks = blocks.plus(Gain::of(remote_blocks, c::OTHER_REMOTE_BLOCK));
        bytes = bytes.plus(Gain::of(remote_bytes, c::OTHER_REMOTE_BYTE));
    }
    if stage.writes_rows {
        blocks = blocks.plus(Gain::of(stage.blocks_written, c::ROW_BLOCK_WRITTEN));
        let written = stage.bytes_written as f64;
        if compressed && narrow(written, stage.rows_written) {
            rows = rows.plus(Gain::of(written, c::NARROW_BYTE_WRITTEN));
        } else {
            bytes = bytes.plus(Gain::of(written, c::WIDE_BYTE_WRITTEN));
        }
    }
    let wait = wait_saved(stage);
    let mut all = blocks.plus(rows).plus(sorts).plus(bytes);
    all.high = all.high.max(all.expected + wait);
    let share = all.times(1.0 / run);
    let gain = Gain {
        low: share.low.min(c::MAX_STAGE_SHARE),
        expected: share.expected.min(c::MAX_STAGE_SHARE),
        high: share.high.min(c::MAX_STAGE_SHARE),
    };
    let causes = [
        (blocks.expected, Reason::SmallBlocks),
        (rows.expected, Reason::RowStreams),
        (sorts.expected, Reason::Sorts),
        (bytes.expected, Reason::Bytes),
    ];
    let largest = causes.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let reason = match largest {
        Some((_, reason)) if gain.expected >= c::NOTICEABLE => reason,
        _ if wait / run >= c::NOTICEABLE => Reason::FetchWait,
        _ => Reason::Nothing,
    };
    (gain, reason)
}

fn narrow(bytes: f64, rows: u64) -> bool {
    bytes <= rows as f64 * c::NARROW_ROW
}

/// Seconds of fetch wait that Faro may save at most.
fn wait_saved(stage: &StageFigures) -> f64 {
    if stage.remote_blocks == 0 {
        return 0.0;
    }
    let size = stage.remote_bytes as f64 / stage.remote_blocks as f64;
    let part = c::WAIT_SAVED.iter().find(|(max, _)| size <= *max);
    stage.wait_ms as f64 / 1e3 * part.map_or(0.0, |p| p.1)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceVerdict {
    Helps,
    Perhaps,
    /// The log is not of a whole run of Spark's own shuffle.
    CannotSay,
    DoesNotHelp,
}

impl AdviceVerdict {
    pub fn of(gain: Gain) -> Self {
        if gain.low >= c::NOTICEABLE {
            Self::Helps
        } else if gain.expected >= c::NOTICEABLE {
            Self::Perhaps
        } else {
            Self::DoesNotHelp
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Perhaps => "perhaps",
            Self::CannotSay => "cannot say",
            Self::DoesNotHelp => "no",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// A stage that reads and writes 100 MB of rows of so many bytes in 100 s of tasks.
    fn stage(row: u64) -> StageFigures {
        StageFigures {
            run_ms: 100_000,
            remote_blocks: 50,
            local_blocks: 50,
            remote_bytes: 50 * MB,
            local_bytes: 50 * MB,
            rows_read: 100 * MB / row,
            bytes_written: 100 * MB,
            rows_written: 100 * MB / row,
            reads_rows: true,
            writes_rows: true,
            ..StageFigures::default()
        }
    }

    #[test]
    fn narrow_rows_save_by_their_bytes() {
        let (gain, _) = estimate(&stage(20), true);
        assert!((gain.expected - 0.019).abs() < 0.001, "{gain:?}");
        let more = StageFigures {
            bytes_written: 1000 * MB,
            rows_written: 50 * MB,
            ..stage(20)
        };
        let (gain, reason) = estimate(&more, true);
        assert!((gain.expected - 0.1225).abs() < 0.001, "{gain:?}");
        assert!(gain.low < gain.expected && gain.expected < gain.high);
        assert_eq!(reason, Reason::RowStreams);
    }

    #[test]
    fn wide_rows_and_uncompressed_ones_promise_little() {
        for (row, compressed) in [(100, true), (20, false)] {
            let (gain, reason) = estimate(&stage(row), compressed);
            assert!(gain.high < 0.004, "{gain:?}");
            assert_eq!(reason, Reason::Nothing);
        }
    }

    #[test]
    fn sorts_behind_a_shuffle_are_saved_and_others_are_not() {
        let sorting = StageFigures {
            sort_ms: 50_000,
            ..stage(20)
        };
        let (gain, reason) = estimate(&sorting, true);
        let most = 0.019 + 0.5 * c::SORT_SECOND.expected;
        assert!((gain.expected - most).abs() < 0.001, "{gain:?}");
        assert_eq!(reason, Reason::Sorts);
        let other = StageFigures {
            reads_rows: false,
            ..sorting
        };
        assert!(estimate(&other, true).0.high < 0.03);
    }

    #[test]
    fn nothing_is_saved_where_nothing_is_shuffled() {
        let none = StageFigures {
            run_ms: 100_000,
            ..StageFigures::default()
        };
        let (gain, reason) = estimate(&none, true);
        assert_eq!((gain.high, reason), (0.0, Reason::Nothing));
    }
}
