//! The names in an application's directory.

use faro_wire::OutputId;

/// What names of pages begin with (`replica`). They say nothing to a service that is started again.
pub(crate) const PAGE: &str = "page_";
/// The beginning of the names of copies.
const REPLICA: &str = "replica_";

/// Whether a name is of a page.
pub(crate) fn is_list(name: &str) -> bool {
    name.starts_with(PAGE)
}

/// Whose output one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The link is of an output of an executor of this host.
    Own,
    /// A copy of an output of another host.
    Replica,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFile {
    Index,
    Data,
}

/// One name in the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) kind: Kind,
    pub(crate) id: OutputId,
    pub(crate) generation: u64,
    pub(crate) part: OutputFile,
}

impl Link {
    pub(crate) fn name(self) -> String {
        let Self { id, generation, .. } = self;
        let end = match self.part {
            OutputFile::Index => "index",
            OutputFile::Data => "data",
        };
        let start = match self.kind {
            Kind::Own => "",
            Kind::Replica => REPLICA,
        };
        format!("{start}{}_{}_{generation}.{end}", id.shuffle_id, id.map_id)
    }

    /// Reads what `name` writes, and nothing else.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (ids, part) = match name.rsplit_once('.')? {
            (ids, "index") => (ids, OutputFile::Index),
            (ids, "data") => (ids, OutputFile::Data),
            _ => return None,
        };
        let (kind, ids) = match ids.strip_prefix(REPLICA) {
            Some(ids) => (Kind::Replica, ids),
            None => (Kind::Own, ids),
        };
        let mut numbers = ids.split('_');
        let link = Self {
            kind,
            id: OutputId {
                shuffle_id: numbers.next()?.parse().ok()?,
                map_id: numbers.next()?.parse().ok()?,
            },
            generation: numbers.next()?.parse().ok()?,
            part,
        };
        (link.name() == name).then_some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_store_writes_are_read() {
        for name in [
            "3_1_2.data",
            "0_0_0.index",
            "2147483647_9223372036854775807_1.data",
        ] {
            assert_eq!(Link::parse(name).unwrap().name(), name);
        }
        for name in [
            "",
            ".data",
            "3_1_2.crc",
            "3_1_2_.data",
            "+3_1_2.data",
            "3_1_ 2.data",
            "3_1_2.data.data",
        ] {
            assert_eq!(Link::parse(name), None, "{name}");
        }
    }
}
