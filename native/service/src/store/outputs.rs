//! Which map outputs there are, and what they add up to.

use super::directory::Links;
use super::held::HeldFiles;
use super::records::CountedRecord;
use crate::links::Kind;
use faro_wire::OutputId;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Most shuffles that are known to be removed; their ids grow, so the lowest go.
pub(super) const MAX_REMOVED: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(super) enum OutputPlace {
    Linked,
    Held(Arc<HeldFiles>),
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) kind: Kind,
    pub(super) generation: u64,
    pub(super) has_data: bool,
    pub(super) bytes: u64,
    pub(super) place: OutputPlace,
    pub(super) _record: CountedRecord,
}

impl Kept {
    pub(super) fn links(&self, id: OutputId) -> Links {
        Links {
            kind: self.kind,
            id,
            generation: self.generation,
        }
    }
}

/// The outputs of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    /// All outputs, with copies.
    pub outputs: usize,
    pub bytes: u64,
    /// Copies of outputs of other hosts.
    pub replicas: usize,
}

#[derive(Debug, Default)]
pub(super) struct Outputs {
    all: HashMap<OutputId, Kept>,
    bytes: u64,
    pub(super) generation: u64,
    /// Own outputs of each shuffle.
    own: HashMap<u32, u64>,
    replicas: usize,
    /// Shuffles of which no copy is kept any more, the latest ones.
    removed: BTreeSet<u32>,
    /// No more outputs are kept.
    pub(super) ended: bool,
}

impl Outputs {
    pub(super) fn get(&self, id: OutputId) -> Option<&Kept> {
        self.all.get(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = OutputId> + '_ {
        self.all.keys().copied()
    }

    /// Returns the ids of a shuffle and a kind; `None`: of all.
    pub(super) fn ids_of(&self, shuffle: Option<u32>, kind: Option<Kind>) -> Vec<OutputId> {
        let of = self.all.iter().filter(|(id, kept)| {
            shuffle.is_none_or(|shuffle| id.shuffle_id == shuffle)
                && kind.is_none_or(|kind| kept.kind == kind)
        });
        of.map(|(id, _)| *id).collect()
    }

    /// Returns the older one that it replaces.
    pub(super) fn insert(&mut self, id: OutputId, kept: Kept) -> Option<Kept> {
        self.bytes += kept.bytes;
        match kept.kind {
            Kind::Own => *self.own.entry(id.shuffle_id).or_default() += 1,
            Kind::Replica => self.replicas += 1,
        }
        let older = self.all.insert(id, kept);
        older.inspect(|older| self.gone(id, older))
    }

    pub(super) fn remove(&mut self, id: OutputId) -> Option<Kept> {
        let kept = self.all.remove(&id);
        kept.inspect(|kept| self.gone(id, kept))
    }

    fn gone(&mut self, id: OutputId, kept: &Kept) {
        self.bytes -= kept.bytes;
        match kept.kind {
            Kind::Replica => self.replicas -= 1,
            Kind::Own => {
                let left = self.own.get_mut(&id.shuffle_id);
                let left = left.map_or(0, |count| {
                    *count -= 1;
                    *count
                });
                if left == 0 {
                    self.own.remove(&id.shuffle_id);
                }
            }
        }
    }

    /// No copy of that shuffle is kept from now on.
    pub(super) fn shuffle_removed(&mut self, shuffle: u32) {
        self.removed.insert(shuffle);
        if self.removed.len() > MAX_REMOVED {
            self.removed.pop_first();
        }
    }

    pub(super) fn is_removed(&self, shuffle: u32) -> bool {
        self.removed.contains(&shuffle)
    }

    pub(super) fn own_by_shuffle(&self) -> HashMap<u32, u64> {
        self.own.clone()
    }

    pub(super) fn holding(&self) -> Holding {
        Holding {
            outputs: self.all.len(),
            bytes: self.bytes,
            replicas: self.replicas,
        }
    }
}
