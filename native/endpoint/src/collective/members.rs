//! The members at one endpoint, and what arrives for each.
//!
//! Progress threads put events into a member's mailbox, the caller of its team takes them out. The
//! ABORT of a member that is gone is kept for a while, so that a late JOIN is answered with it.

use super::pending::PendingSend;
use super::CollectiveError;
use crate::counters::Counter;
use crossbeam_channel::{Receiver, Sender};
use faro_fabric::{ConnectionId, FabricKind};
use faro_pool::Lease;
use faro_sync::{lock, HashMap};
use faro_wire::message::{Abort, AbortCause, ClearToSend, Join, WrittenBuffer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Events that may wait for one member. An honest peer causes far fewer.
const MAX_EVENTS: usize = 1 << 16;
/// ABORTs kept of members that are gone.
const MAX_GONE: usize = 1_024;

/// The connection that an answer has to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyPath {
    pub(super) fabric: FabricKind,
    pub(super) connection: ConnectionId,
}

/// An event for a member.
pub(super) enum MemberEvent {
    /// Another member has joined.
    Joined(Join),
    /// A member has memory for one of this member's parts.
    Cleared(ReplyPath, ClearToSend),
    /// A chunk has arrived, and the partner writes into the lease no more.
    Arrived {
        rank: u32,
        buffer: WrittenBuffer,
        lease: Lease,
    },
    /// A member cannot be reached any more.
    Lost { rank: u32, detail: String },
    /// A member takes no further part.
    Aborted(Abort),
    /// This member or its endpoint closes.
    Closing,
}

/// The events of one member.
pub(super) struct Mailbox {
    sender: Sender<MemberEvent>,
    receiver: Receiver<MemberEvent>,
}

impl Mailbox {
    fn new() -> Arc<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Arc::new(Self { sender, receiver })
    }

    pub(super) fn push(&self, event: MemberEvent) {
        // Cannot fail: this struct holds a receiver.
        let _ = self.sender.send(event);
    }

    /// Takes the next event. Returns `None` if none arrives before `until`.
    pub(super) fn take(&self, until: Instant) -> Option<MemberEvent> {
        self.receiver.recv_deadline(until).ok()
    }

    /// Takes an event that has arrived already.
    pub(super) fn take_now(&self) -> Option<MemberEvent> {
        self.receiver.try_recv().ok()
    }

    /// Returns whether peers have sent more events than honest peers would.
    pub(super) fn is_full(&self) -> bool {
        self.receiver.len() >= MAX_EVENTS
    }
}

/// The counters of all rounds.
#[derive(Default)]
pub(crate) struct CollectiveCounters {
    /// Rounds that were completed.
    pub(super) rounds: Counter,
    /// Rounds that failed.
    pub(super) rounds_failed: Counter,
    /// Bytes of parts sent.
    pub(super) bytes: Counter,
}

impl CollectiveCounters {
    pub(super) fn list(&self) -> [(&'static str, u64); 3] {
        [
            ("collectiveRounds", self.rounds.get()),
            ("collectiveRoundsFailed", self.rounds_failed.get()),
            ("collectiveBytes", self.bytes.get()),
        ]
    }
}

#[derive(Default)]
struct MembersState {
    open: HashMap<u64, Arc<Mailbox>>,
    gone: VecDeque<(u64, Abort)>,
    closed: bool,
}

/// All members at one endpoint.
#[derive(Default)]
pub(super) struct MemberTable {
    members: Mutex<MembersState>,
    pub(super) counters: CollectiveCounters,
}

impl MemberTable {
    /// Adds a member. Returns its number and its mailbox.
    pub(super) fn add(&self) -> Result<(u64, Arc<Mailbox>), CollectiveError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(CollectiveError::NoRandomness)?;
        let member = u64::from_le_bytes(bytes);
        let mut members = self.lock();
        if members.closed {
            return Err(CollectiveError::Closed);
        }
        let mailbox = Mailbox::new();
        if members.open.insert(member, Arc::clone(&mailbox)).is_some() {
            return Err(CollectiveError::NumberTaken(member));
        }
        Ok((member, mailbox))
    }

    /// Returns whether there is a member that has not ended.
    pub(super) fn has_any(&self) -> bool {
        !self.lock().open.is_empty()
    }

    /// The mailbox of a member.
    ///
    /// # Errors
    /// It is gone, and with which ABORT, if that is still known.
    pub(super) fn find(&self, member: u64) -> Result<Arc<Mailbox>, Option<Abort>> {
        let members = self.lock();
        if let Some(mailbox) = members.open.get(&member) {
            return Ok(Arc::clone(mailbox));
        }
        let gone = members.gone.iter().rev().find(|(gone, _)| *gone == member);
        Err(gone.map(|(_, abort)| abort.clone()))
    }

    /// Puts an event into a member's mailbox, if it has not ended.
    pub(super) fn tell(&self, member: u64, event: MemberEvent) {
        if let Ok(mailbox) = self.find(member) {
            mailbox.push(event);
        }
    }

    /// Tells the member that a pending send cannot reach its partner.
    pub(super) fn lost(&self, pending: &PendingSend, detail: String) {
        let rank = pending.to.rank;
        self.tell(pending.member, MemberEvent::Lost { rank, detail });
    }

    /// Ends a member. Returns false if it had ended before.
    pub(super) fn leave(&self, member: u64, abort: &Abort) -> bool {
        let mut members = self.lock();
        if members.open.remove(&member).is_none() {
            return false;
        }
        if members.gone.len() == MAX_GONE {
            members.gone.pop_front();
        }
        members.gone.push_back((member, abort.clone()));
        true
    }

    /// Ends all members: their callers get `Closing`.
    pub(super) fn close(&self) {
        let mut members = self.lock();
        members.closed = true;
        for mailbox in members.open.values() {
            mailbox.push(MemberEvent::Closing);
        }
    }

    fn lock(&self) -> MutexGuard<'_, MembersState> {
        // Every critical section leaves the tables whole.
        lock(&self.members)
    }
}

/// Returns the answer to a JOIN for a member that this endpoint does not know.
pub(super) fn unknown_member(rank: u32) -> Abort {
    Abort {
        round: 0,
        from_rank: rank,
        culprit: rank,
        cause: AbortCause::Left,
        detail: format!("rank {rank} is not at this endpoint, or not any more"),
    }
}
