//! What members of an application, such as its driver, tell its service over the connections of
//! readers. They tell it where the application has no executor on the host that would tell it over
//! the Unix socket.
//!
//! It is told by a request for a block of an id that no map output has (`replica/names`), so it is
//! proven as a read is. The resolver only notes it, since to end an application ends its resolver
//! too; the next tick of the service does it. To be told twice is as to be told once. A service
//! that ends before its next tick has forgotten it; then `--idle` removes the outputs.

use crate::replica::ControlId;
use faro_sync::lock;
use faro_wire::OutputId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Most shuffles that are noted for one tick. Of more the lowest are noted.
const MAX_REMOVED: usize = 1 << 16;

/// The orders that were given and are not carried out yet.
#[derive(Debug, Default)]
struct PendingControl {
    /// Shuffles that were removed.
    removed: BTreeSet<u32>,
    /// Some that were taken are just being removed.
    is_removing: bool,
    /// The application has ended.
    ended: bool,
}

/// The place where the resolver notes it.
#[derive(Debug, Default)]
pub(crate) struct ControlInbox(Mutex<PendingControl>);

/// Shuffles that somebody is to remove. Until this is dropped nobody gets more of them, so a disk that hangs keeps a bounded
/// number of them in memory.
#[derive(Debug)]
pub(crate) struct RemovedShuffles {
    pub(crate) all: BTreeSet<u32>,
    of: Arc<ControlInbox>,
}

impl Drop for RemovedShuffles {
    fn drop(&mut self) {
        lock(&self.of.0).is_removing = false;
    }
}

impl ControlInbox {
    /// Notes what a question of that id tells, if it tells anything.
    pub(crate) fn hear(&self, id: OutputId) {
        match ControlId::of(id) {
            ControlId::Removed(shuffle) => {
                let removed = &mut lock(&self.0).removed;
                removed.insert(shuffle);
                if removed.len() > MAX_REMOVED {
                    removed.pop_last();
                }
            }
            ControlId::Ended => lock(&self.0).ended = true,
            ControlId::Output(_) | ControlId::Index(_) | ControlId::Page(_) => {}
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.0).ended
    }

    /// Those that were told since the last call; `None`: there are none, or the last ones are still being removed.
    pub(crate) fn take_removed(self: &Arc<Self>) -> Option<RemovedShuffles> {
        let mut news = lock(&self.0);
        if news.is_removing || news.removed.is_empty() {
            return None;
        }
        news.is_removing = true;
        Some(RemovedShuffles {
            all: std::mem::take(&mut news.removed),
            of: Arc::clone(self),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_are_told_once_and_bounded() {
        let told = Arc::new(ControlInbox::default());
        told.hear(ControlId::Page(7).id());
        assert!(told.take_removed().is_none() && !told.has_ended());
        for shuffle in (0..MAX_REMOVED as u32 + 5).chain([3]) {
            told.hear(ControlId::Removed(shuffle).id());
        }
        told.hear(ControlId::Ended.id());
        let removed = told.take_removed().unwrap();
        assert_eq!((removed.all.len(), told.has_ended()), (MAX_REMOVED, true));
        told.hear(ControlId::Removed(7).id());
        assert!(told.take_removed().is_none(), "the others are not done");
        drop(removed);
        assert_eq!(told.take_removed().unwrap().all, BTreeSet::from([7]));
        assert!(told.take_removed().is_none());
    }
}
