//! Ids that no map output of Spark has, since Spark counts shuffles from 0 as an `Int`. A service answers them with files
//! of its own, so that others read its list and its indexes as they read map outputs.
//!
//! ```text
//!   shuffle 2^32 - 1, map n          page n of the list
//!   shuffle 2^31 + s, map m          the index file of output s/m, as one block
//!   shuffle 2^32 - 2, map s          nothing; the question says that shuffle s was removed
//!   shuffle 2^32 - 2, map -1         nothing; the question says that the application has ended
//! ```

use faro_wire::{BlockId, OutputId};

const PAGES: u32 = u32::MAX;
const NEWS: u32 = u32::MAX - 1;
const ENDED: i64 = -1;
const INDEX: u32 = 1 << 31;

/// The subject of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlId {
    Output(OutputId),
    Index(OutputId),
    Page(u64),
    /// Says that a shuffle was removed.
    Removed(u32),
    /// Says that the application has ended.
    Ended,
}

impl ControlId {
    pub(crate) fn of(id: OutputId) -> Self {
        match id.shuffle_id {
            PAGES => Self::Page(id.map_id as u64),
            NEWS if id.map_id == ENDED => Self::Ended,
            NEWS => match i32::try_from(id.map_id) {
                Ok(shuffle) if shuffle >= 0 => Self::Removed(shuffle as u32),
                // No output either.
                _ => Self::Output(id),
            },
            shuffle if shuffle & INDEX != 0 => Self::Index(OutputId {
                shuffle_id: shuffle & !INDEX,
                ..id
            }),
            _ => Self::Output(id),
        }
    }

    pub(crate) fn id(self) -> OutputId {
        match self {
            Self::Output(id) => id,
            Self::Index(id) => OutputId {
                shuffle_id: id.shuffle_id | INDEX,
                ..id
            },
            Self::Page(page) => OutputId {
                shuffle_id: PAGES,
                map_id: page as i64,
            },
            Self::Removed(shuffle) => OutputId {
                shuffle_id: NEWS,
                map_id: shuffle.into(),
            },
            Self::Ended => OutputId {
                shuffle_id: NEWS,
                map_id: ENDED,
            },
        }
    }

    /// All `partitions` of it as one block.
    pub(crate) fn block(self, partitions: u32, piece: u32) -> BlockId {
        let id = self.id();
        BlockId {
            map_id: id.map_id.into(),
            shuffle_id: id.shuffle_id.into(),
            start_reduce: 0.into(),
            end_reduce: partitions.into(),
            piece: piece.into(),
        }
    }
}

/// The shuffle that the indexes of a shuffle's outputs seem to be of.
pub(crate) fn indexes_of(shuffle: u32) -> u32 {
    shuffle | INDEX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_apart() {
        let id = OutputId {
            shuffle_id: 7,
            map_id: 9,
        };
        for asked in [
            ControlId::Output(id),
            ControlId::Index(id),
            ControlId::Page(9),
            ControlId::Removed(7),
            ControlId::Ended,
        ] {
            assert_eq!(ControlId::of(asked.id()), asked);
        }
        let no_shuffle = OutputId {
            map_id: -2,
            ..ControlId::Ended.id()
        };
        assert_eq!(ControlId::of(no_shuffle), ControlId::Output(no_shuffle));
        assert_eq!(indexes_of(7), ControlId::Index(id).id().shuffle_id);
    }
}
