//! Lends the files of map outputs to a reader of this host, which then reads them on its own thread.
//!
//! Only a registered executor of the application gets here. Each file is opened anew for reading only. A process of
//! the files' own user can still open them for writing by `/proc/self/fd`, as it could by their path; executors of one
//! application trust each other, and those of others get no descriptor.

use crate::message::Lent;
use crate::store::{Held, HeldFiles, Store};
use faro_wire::OutputId;
use std::fs::File;
use std::sync::Arc;

/// The descriptors that go with an answer.
#[derive(Default)]
pub(crate) struct Loans {
    /// The state of each map output, in the order of the question.
    pub(crate) all: Vec<Lent>,
    /// Open until the answer was sent.
    held: Vec<HeldFiles>,
}

impl Loans {
    /// Makes the answer for these outputs. `files`: opens them, within the bound of `lending`; an output that cannot be
    /// opened is "not here".
    pub(crate) fn of(
        store: &Store,
        lending: &Arc<Held>,
        shuffle: u32,
        maps: &[i64],
        files: bool,
    ) -> Self {
        let mut loans = Self::default();
        for &map_id in maps {
            let id = OutputId {
                shuffle_id: shuffle,
                map_id,
            };
            let lent = match files {
                true => loans.open(store, lending, id),
                false => store.has(id),
            };
            loans.all.push(lent);
        }
        loans
    }

    fn open(&mut self, store: &Store, lending: &Arc<Held>, id: OutputId) -> Lent {
        // Opened without the store's lock.
        let Some(found) = store.find(id) else {
            return Lent::NotHere;
        };
        let files = match found.open() {
            Ok(files) => files,
            Err(error) => {
                let (shuffle, map) = (id.shuffle_id, id.map_id);
                log::debug!("map output {shuffle}/{map} cannot be lent: {error}");
                return Lent::NotHere;
            }
        };
        let lent = match files.len() {
            1 => Lent::Empty,
            _ => Lent::Whole,
        };
        match lending.take(files) {
            Ok(held) => self.held.push(held),
            Err(open) => {
                log::debug!("no map output is lent: {open} files are being lent");
                return Lent::NotHere;
            }
        }
        lent
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.held.iter().flat_map(|held| &held.files)
    }
}
