//! Lends the files of map outputs to a reader of this host, which then reads them on its own thread.
//!
//! Only a registered executor of the application gets here. Each file is opened anew for reading only. A process of
//! the files' own user can still open them for writing by `/proc/self/fd`, as it could by their path; executors of one
//! application trust each other, and those of others get no descriptor.

use crate::lending::{LoanCount, LoanLimits};
use crate::message::{Key, LoanState};
use crate::store::Store;
use faro_wire::OutputId;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The descriptors that go with an answer.
#[derive(Default)]
pub(crate) struct Loans {
    /// The state of each map output, in the order of the question.
    pub(crate) all: Vec<LoanState>,
    /// Open until the answer was sent.
    files: Vec<File>,
    counted: Vec<LoanCount>,
}

impl Loans {
    /// Makes the answer for these outputs. `files`: opens them, within the bounds of `lending`; an output that cannot be
    /// opened is "not here".
    pub(crate) fn of(
        store: &Store,
        lending: (&Arc<LoanLimits>, Key),
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

    fn open(
        &mut self,
        store: &Store,
        (lending, application): (&Arc<LoanLimits>, Key),
        id: OutputId,
    ) -> LoanState {
        // Opened without the store's lock.
        let Some(found) = store.find(id) else {
            return LoanState::NotHere;
        };
        let counted = match lending.take(application, found.state().files()) {
            Ok(counted) => counted,
            Err(on_their_way) => {
                log::debug!("no map output is lent: {on_their_way} files are on their way");
                return LoanState::NotHere;
            }
        };
        match found.open() {
            Ok(files) => {
                self.files.extend(files);
                self.counted.push(counted);
                found.state()
            }
            Err(error) => {
                let (shuffle, map) = (id.shuffle_id, id.map_id);
                log::debug!("map output {shuffle}/{map} cannot be lent: {error}");
                LoanState::NotHere
            }
        }
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// They were sent. Their files are closed here, and count until the reader has taken them.
    pub(crate) fn sent(self, lending: &LoanLimits, socket: &Arc<OwnedFd>) {
        lending.sent(socket, self.counted);
    }
}
