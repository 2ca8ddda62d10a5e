//! Ids that no map output of Spark has, since Spark counts shuffles from 0 as an `Int`. A service answers them with files
//! of its own, so that others read its list and its indexes as they read map outputs.
//!
//! ```text
//!   shuffle 2^32 - 1, map n          page n of the list
//!   shuffle 2^31 + s, map m          the index file of output s/m, as one block
//! ```

use faro_wire::{BlockId, OutputId};

const PAGES: u32 = u32::MAX;
const INDEX: u32 = 1 << 31;

/// The subject of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListId {
    Output(OutputId),
    Index(OutputId),
    Page(u64),
}

impl ListId {
    pub(crate) fn of(id: OutputId) -> Self {
        match id.shuffle_id {
            PAGES => Self::Page(id.map_id as u64),
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
        for asked in [ListId::Output(id), ListId::Index(id), ListId::Page(9)] {
            assert_eq!(ListId::of(asked.id()), asked);
        }
        assert_eq!(indexes_of(7), ListId::Index(id).id().shuffle_id);
    }
}
