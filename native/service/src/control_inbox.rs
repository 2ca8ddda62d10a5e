//! Commands of an application's members, such as its driver, to its service. They come over the
//! network, because the host may have no executor that could use the Unix socket.
//!
//! The application's endpoint receives them, so their senders are authenticated as readers are. The
//! progress thread only notes a command, because ending an application ends its endpoint too; the
//! next tick of the service carries it out. Commands are idempotent. A service that ends before its
//! next tick loses them; then `--idle` removes the outputs.

use crate::replica::ListServer;
use faro_endpoint::{CommandHandler, ReplySender};
use faro_sync::lock;
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand};
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

/// Takes all commands of an application's members.
#[derive(Debug)]
pub(crate) struct MemberCommands {
    pub(crate) inbox: Arc<ControlInbox>,
    pub(crate) lists: Arc<ListServer>,
}

impl CommandHandler for MemberCommands {
    fn handle(&self, command: MemberCommand, reply: ReplySender) {
        let status = match command {
            MemberCommand::ApplicationEnded => self.inbox.end(),
            MemberCommand::ShufflesRemoved(shuffles) => self.inbox.remove(&shuffles),
            MemberCommand::SendPage(page) => {
                return self
                    .lists
                    .answer(reply, move |lists| lists.pages.read(page));
            }
            MemberCommand::SendIndexes { outputs, from } => {
                return self
                    .lists
                    .answer(reply, move |lists| lists.indexes(&outputs, from));
            }
        };
        reply.send(CommandReply::Status(status));
    }
}

impl ControlInbox {
    fn end(&self) -> CommandStatus {
        lock(&self.0).ended = true;
        CommandStatus::Accepted
    }

    fn remove(&self, shuffles: &[u32]) -> CommandStatus {
        let mut pending = lock(&self.0);
        if pending.removed.len() + shuffles.len() > MAX_REMOVED {
            return CommandStatus::Busy;
        }
        pending.removed.extend(shuffles);
        CommandStatus::Accepted
    }

    pub(crate) fn has_ended(&self) -> bool {
        lock(&self.0).ended
    }

    /// Shuffles since the last call; `None`: there are none, or the last ones are still being removed.
    pub(crate) fn take_removed(self: &Arc<Self>) -> Option<RemovedShuffles> {
        let mut pending = lock(&self.0);
        if pending.is_removing || pending.removed.is_empty() {
            return None;
        }
        pending.is_removing = true;
        Some(RemovedShuffles {
            all: std::mem::take(&mut pending.removed),
            of: Arc::clone(self),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_taken_once_and_bounded() {
        let inbox = Arc::new(ControlInbox::default());
        let remove = |shuffles: std::ops::Range<u32>| inbox.remove(&shuffles.collect::<Vec<_>>());
        assert!(inbox.take_removed().is_none() && !inbox.has_ended());
        let most = MAX_REMOVED as u32;
        for start in (0..most).step_by(1_024) {
            assert_eq!(remove(start..start + 1_024), CommandStatus::Accepted);
        }
        let status = remove(most..most + 1);
        assert_eq!(status, CommandStatus::Busy, "what is noted is bounded");
        assert_eq!(
            (inbox.end(), inbox.has_ended()),
            (CommandStatus::Accepted, true)
        );
        let all = inbox.take_removed().unwrap();
        assert_eq!(all.all.len(), MAX_REMOVED);
        for _ in 0..2 {
            assert_eq!(remove(7..8), CommandStatus::Accepted);
        }
        assert!(inbox.take_removed().is_none(), "the others are not done");
        drop(all);
        assert_eq!(inbox.take_removed().unwrap().all, BTreeSet::from([7]));
        assert!(inbox.take_removed().is_none());
    }
}
