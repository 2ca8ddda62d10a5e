//! The offsets of a map output's partitions, as an index file has them and as memory has them.

/// Offsets of `partitions + 1` positions in the data file, in 4 bytes each if all of them fit.
pub(super) enum Offsets {
    Narrow(Box<[u32]>),
    Wide(Box<[u64]>),
}

impl Offsets {
    /// Parses all offsets of an index file.
    pub(super) fn parse(raw: &[u8]) -> Self {
        let all = || raw.chunks_exact(8).map(big_endian);
        match all().map(u32::try_from).collect() {
            Ok(narrow) => Self::Narrow(narrow),
            Err(_) => Self::Wide(all().collect()),
        }
    }

    pub(super) fn get(&self, position: usize) -> Option<u64> {
        match self {
            Self::Narrow(table) => table.get(position).copied().map(u64::from),
            Self::Wide(table) => table.get(position).copied(),
        }
    }

    /// Returns the memory that this takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let table = match self {
            Self::Narrow(table) => size_of_val(&**table),
            Self::Wide(table) => size_of_val(&**table),
        };
        (table + size_of::<Self>()) as u64
    }
}

/// Decodes one offset of an index file from its 8 bytes.
pub(super) fn big_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_take_four_bytes_where_they_fit() {
        for (last, bytes) in [(u64::from(u32::MAX), 12), (1 << 32, 24)] {
            let offsets = [0, 7, last];
            let table = Offsets::parse(&offsets.map(u64::to_be_bytes).concat());
            for (position, offset) in offsets.into_iter().enumerate() {
                assert_eq!(table.get(position), Some(offset));
            }
            assert_eq!(table.get(3), None);
            assert_eq!(table.bytes() as usize, bytes + size_of::<Offsets>());
        }
    }
}
