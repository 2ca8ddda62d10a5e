//! Answers members of the application that ask for pages of the list or for indexes of outputs. They are read on the
//! application's threads for its disk, so a disk that hangs stops no progress thread.

use super::pages::Pages;
use crate::disk::Disk;
use crate::store::Store;
use faro_endpoint::ReplySender;
use faro_wire::message::{CommandReply, CommandStatus, MAX_CONTENT_BYTES};
use faro_wire::OutputId;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Most answers that are not sent yet.
const MAX_OPEN: usize = 64;

pub(crate) struct ListServer {
    pub(crate) store: Arc<Store>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) disk: Arc<Disk>,
}

impl fmt::Debug for ListServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListServer").finish_non_exhaustive()
    }
}

impl ListServer {
    /// Sends what `read` reads; `None`: it is not here. Does not block.
    pub(crate) fn answer(
        self: &Arc<Self>,
        reply: ReplySender,
        read: impl FnOnce(&Self) -> io::Result<Option<Vec<u8>>> + Send + 'static,
    ) {
        // Each open answer has a clone.
        if Arc::strong_count(self) > MAX_OPEN {
            return reply.send(CommandReply::Status(CommandStatus::Busy));
        }
        let own = Arc::clone(self);
        let put = self.disk.put(move || {
            reply.send(match read(&own) {
                Ok(Some(content)) => CommandReply::Content(content),
                Ok(None) => CommandReply::Status(CommandStatus::Unknown),
                Err(error) => {
                    log::debug!("another service gets no answer: {error}");
                    CommandReply::Status(CommandStatus::Unreadable)
                }
            });
        });
        if let Err(error) = put {
            log::debug!("another service gets no answer: {error}");
        }
    }

    /// The index files of these outputs, one after the other, from byte `from` on.
    pub(crate) fn indexes(&self, outputs: &[OutputId], from: u64) -> io::Result<Option<Vec<u8>>> {
        let (mut skip, mut bytes) = (from, Vec::new());
        for id in outputs {
            // `found` keeps the files open: their paths are good for no longer.
            let Some(found) = self.store.find(*id) else {
                return Ok(None);
            };
            let file = File::open(&found.files.index)?;
            let length = file.metadata()?.len();
            let first = skip.min(length);
            skip -= first;
            let begin = bytes.len();
            let room = MAX_CONTENT_BYTES as usize - begin;
            bytes.resize(begin + room.min((length - first) as usize), 0);
            file.read_exact_at(&mut bytes[begin..], first)?;
        }
        Ok(Some(bytes))
    }
}
