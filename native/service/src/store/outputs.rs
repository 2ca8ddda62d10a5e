//! Which map outputs there are, and what they add up to.

use super::directory::Links;
use super::open_file_count::HeldFiles;
use super::records::CountedRecord;
use crate::links::Kind;
use faro_wire::OutputId;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Most shuffles that are known to be removed; their ids grow, so the lowest go.
pub(super) const MAX_REMOVED: usize = 1 << 16;

#[derive(Debug, Clone)]
pub(super) enum OutputPlace {
    /// Linked by a service before this one, and not looked at yet.
    Left,
    Linked,
    Held(Arc<HeldFiles>),
}

#[derive(Debug)]
pub(super) struct StoredOutput {
    pub(super) kind: Kind,
    pub(super) generation: u64,
    pub(super) has_data: bool,
    pub(super) bytes: u64,
    pub(super) place: OutputPlace,
    pub(super) _record: CountedRecord,
}

impl StoredOutput {
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
pub struct StoredTotals {
    /// All outputs, with copies.
    pub outputs: usize,
    pub bytes: u64,
    /// Copies of outputs of other hosts.
    pub replicas: usize,
}

#[derive(Debug, Default)]
pub(super) struct Outputs {
    all: HashMap<OutputId, StoredOutput>,
    bytes: u64,
    pub(super) generation: u64,
    /// Own outputs of each shuffle.
    own: HashMap<u32, u64>,
    replicas: usize,
    /// Shuffles of which no copy is kept any more, the latest ones.
    removed: BTreeSet<u32>,
    /// No more outputs are kept.
    pub(super) ended: bool,
    /// Outputs that are just being kept, and their bytes.
    coming: u64,
    coming_bytes: u64,
}

impl Outputs {
    pub(super) fn get(&self, id: OutputId) -> Option<&StoredOutput> {
        self.all.get(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = OutputId> + '_ {
        self.all.keys().copied()
    }

    /// Takes out those of a shuffle and a kind; `None`: of all.
    pub(super) fn take(
        &mut self,
        shuffle: Option<u32>,
        kind: Option<Kind>,
    ) -> Vec<(OutputId, StoredOutput)> {
        let of = self.all.iter().filter(|(id, kept)| {
            shuffle.is_none_or(|shuffle| id.shuffle_id == shuffle)
                && kind.is_none_or(|kind| kept.kind == kind)
        });
        let ids: Vec<OutputId> = of.map(|(id, _)| *id).collect();
        let taken = ids.into_iter().map(|id| (id, self.remove(id)));
        taken.filter_map(|(id, kept)| Some((id, kept?))).collect()
    }

    /// Those that a service before this one has left, and that were not looked at yet.
    pub(super) fn ids_left(&self) -> Vec<OutputId> {
        let is_left = |kept: &StoredOutput| matches!(kept.place, OutputPlace::Left);
        let left = self.all.iter().filter(|(_, kept)| is_left(kept));
        left.map(|(id, _)| *id).collect()
    }

    /// One that was left is whole, and has so many bytes.
    pub(super) fn is_whole(&mut self, id: OutputId, bytes: u64) {
        if let Some(kept) = self.all.get_mut(&id) {
            self.bytes = self.bytes - kept.bytes + bytes;
            kept.bytes = bytes;
            kept.place = OutputPlace::Linked;
        }
    }

    /// Takes out those whose links have gone with their directory; how many that were.
    pub(super) fn remove_linked(&mut self) -> usize {
        let is_held = |kept: &StoredOutput| matches!(kept.place, OutputPlace::Held(_));
        let linked = self.all.iter().filter(|(_, kept)| !is_held(kept));
        let ids: Vec<OutputId> = linked.map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| drop(self.remove(*id)));
        ids.len()
    }

    /// An output of so many bytes is being kept.
    pub(super) fn enter(&mut self, bytes: u64) {
        self.coming += 1;
        self.coming_bytes += bytes;
    }

    /// It counts by itself now, or is not kept.
    pub(super) fn leave(&mut self, bytes: u64) {
        self.coming -= 1;
        self.coming_bytes -= bytes;
    }

    pub(super) fn are_coming(&self) -> bool {
        self.coming > 0
    }

    /// What there is, with all that is being kept.
    pub(super) fn with_room(&self) -> StoredTotals {
        let now = self.holding();
        StoredTotals {
            outputs: now.outputs + self.coming as usize,
            bytes: now.bytes + self.coming_bytes,
            ..now
        }
    }

    /// Returns the older one that it replaces.
    pub(super) fn insert(&mut self, id: OutputId, kept: StoredOutput) -> Option<StoredOutput> {
        self.bytes += kept.bytes;
        match kept.kind {
            Kind::Own => *self.own.entry(id.shuffle_id).or_default() += 1,
            Kind::Replica => self.replicas += 1,
        }
        let older = self.all.insert(id, kept);
        older.inspect(|older| self.gone(id, older))
    }

    pub(super) fn remove(&mut self, id: OutputId) -> Option<StoredOutput> {
        let kept = self.all.remove(&id);
        kept.inspect(|kept| self.gone(id, kept))
    }

    fn gone(&mut self, id: OutputId, kept: &StoredOutput) {
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

    pub(super) fn holding(&self) -> StoredTotals {
        StoredTotals {
            outputs: self.all.len(),
            bytes: self.bytes,
            replicas: self.replicas,
        }
    }
}
