//! Commands of an application's members, such as its driver, to its service. They come over the
//! network, because the host may have no executor that could use the Unix socket.
//!
//! The application's endpoint receives them, so their senders are authenticated as readers are. The
//! progress thread only notes a command, because ending an application ends its endpoint too; the
//! next tick of the service carries it out. Commands are idempotent. A service that ends before its
//! next tick loses them; then `--idle` removes the outputs.

use faro_endpoint::CommandHandler;
use faro_sync::lock;
use faro_wire::message::{CommandStatus, MemberCommand};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Most shuffles that are noted for one tick. Further ones are refused.
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

/// The place where the progress thread notes it.
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

impl CommandHandler for ControlInbox {
    fn handle(&self, command: &MemberCommand) -> CommandStatus {
        let mut pending = lock(&self.0);
        match command {
            MemberCommand::ApplicationEnded => pending.ended = true,
            MemberCommand::ShufflesRemoved(shuffles) => {
                if pending.removed.len() + shuffles.len() > MAX_REMOVED {
                    return CommandStatus::Busy;
                }
                pending.removed.extend(shuffles);
            }
        }
        CommandStatus::Accepted
    }
}

impl ControlInbox {
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
        let removed =
            |shuffles: std::ops::Range<u32>| MemberCommand::ShufflesRemoved(shuffles.collect());
        assert!(told.take_removed().is_none() && !told.has_ended());
        let most = MAX_REMOVED as u32;
        for start in (0..most).step_by(1_024) {
            let status = told.handle(&removed(start..start + 1_024));
            assert_eq!(status, CommandStatus::Accepted);
        }
        let status = told.handle(&removed(most..most + 1));
        assert_eq!(status, CommandStatus::Busy, "what is noted is bounded");
        let status = told.handle(&MemberCommand::ApplicationEnded);
        assert_eq!((status, told.has_ended()), (CommandStatus::Accepted, true));
        let all = told.take_removed().unwrap();
        assert_eq!(all.all.len(), MAX_REMOVED);
        for _ in 0..2 {
            assert_eq!(told.handle(&removed(7..8)), CommandStatus::Accepted);
        }
        assert!(told.take_removed().is_none(), "the others are not done");
        drop(all);
        assert_eq!(told.take_removed().unwrap().all, BTreeSet::from([7]));
        assert!(told.take_removed().is_none());
    }
}
