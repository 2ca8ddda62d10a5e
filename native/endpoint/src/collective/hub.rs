//! The seats of one endpoint, and what comes for each.
//!
//! Progress threads put events into a seat's mailbox, the caller of its team takes them out. A seat
//! that is gone leaves its farewell behind for a while, so that who knocks late learns why.

use super::{CollectiveError, Errand};
use crate::counters::Counter;
use crossbeam_channel::{Receiver, Sender};
use faro_fabric::{ConnectionId, FabricKind};
use faro_pool::Lease;
use faro_wire::message::{Abort, AbortCause, ClearToSend, Join, WrittenBuffer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Events that may wait for one seat. What a peer can cause is far less, but for one that lies.
const MAX_EVENTS: usize = 1 << 16;
/// Farewells kept of seats that are gone.
const MAX_GONE: usize = 1_024;

/// The connection that an answer has to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    pub(super) fabric: FabricKind,
    pub(super) peer: ConnectionId,
}

/// What comes for a seat.
pub(super) enum Event {
    /// A member is there.
    Knocked(Join),
    /// A member wants a part of ours.
    Granted(Reply, ClearToSend),
    /// A chunk that was granted is there; nobody writes into the lease any more.
    DataReady {
        rank: u32,
        chunk: WrittenBuffer,
        lease: Lease,
    },
    /// A member cannot be reached any more.
    Lost { rank: u32, detail: String },
    /// A member takes no further part.
    Abort(Abort),
    /// This seat or its endpoint closes.
    Closing,
}

/// See the module's comment.
pub(super) struct Mailbox {
    sender: Sender<Event>,
    receiver: Receiver<Event>,
}

impl Mailbox {
    fn new() -> Arc<Self> {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Arc::new(Self { sender, receiver })
    }

    pub(super) fn push(&self, event: Event) {
        // Cannot fail: this struct holds a receiver.
        let _ = self.sender.send(event);
    }

    /// The next event; `None`: none came before `until`.
    pub(super) fn take(&self, until: Instant) -> Option<Event> {
        self.receiver.recv_deadline(until).ok()
    }

    /// One that is there already.
    pub(super) fn take_now(&self) -> Option<Event> {
        self.receiver.try_recv().ok()
    }

    /// Peers have filled it beyond reason.
    pub(super) fn is_full(&self) -> bool {
        self.receiver.len() >= MAX_EVENTS
    }
}

/// What was done, by the names of the metrics.
#[derive(Default)]
pub(crate) struct Tally {
    /// Rounds that ended well.
    pub(crate) rounds: Counter,
    /// Rounds that did not.
    pub(crate) rounds_failed: Counter,
    /// Bytes of parts sent.
    pub(crate) bytes: Counter,
}

#[derive(Default)]
struct Seats {
    open: HashMap<u64, Arc<Mailbox>>,
    gone: VecDeque<(u64, Abort)>,
    closed: bool,
}

/// See the module's comment.
#[derive(Default)]
pub(crate) struct Hub {
    seats: Mutex<Seats>,
    pub(crate) tally: Tally,
}

impl Hub {
    /// A new seat: its number and mailbox.
    pub(super) fn sit(&self) -> Result<(u64, Arc<Mailbox>), CollectiveError> {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| CollectiveError::NoSeat(error.to_string()))?;
        let seat = u64::from_le_bytes(bytes);
        let mut seats = self.lock();
        if seats.closed {
            return Err(CollectiveError::Closed);
        }
        let mailbox = Mailbox::new();
        if seats.open.insert(seat, Arc::clone(&mailbox)).is_some() {
            return Err(CollectiveError::NoSeat(format!(
                "seat {seat:#x} is taken already"
            )));
        }
        Ok((seat, mailbox))
    }

    /// The mailbox of a seat.
    ///
    /// # Errors
    /// What a seat that is gone left behind.
    pub(super) fn find(&self, seat: u64) -> Result<Arc<Mailbox>, Option<Abort>> {
        let seats = self.lock();
        if let Some(mailbox) = seats.open.get(&seat) {
            return Ok(Arc::clone(mailbox));
        }
        let gone = seats.gone.iter().rev().find(|(gone, _)| *gone == seat);
        Err(gone.map(|(_, farewell)| farewell.clone()))
    }

    /// Puts an event into a seat's mailbox, if it is open.
    pub(super) fn tell(&self, seat: u64, event: Event) {
        if let Ok(mailbox) = self.find(seat) {
            mailbox.push(event);
        }
    }

    /// An errand has no way to its partner.
    pub(crate) fn lost(&self, errand: &Errand, detail: String) {
        let rank = errand.to.rank;
        self.tell(errand.seat, Event::Lost { rank, detail });
    }

    /// Ends a seat. False: it had ended.
    pub(super) fn leave(&self, seat: u64, farewell: &Abort) -> bool {
        let mut seats = self.lock();
        if seats.open.remove(&seat).is_none() {
            return false;
        }
        if seats.gone.len() == MAX_GONE {
            seats.gone.pop_front();
        }
        seats.gone.push_back((seat, farewell.clone()));
        true
    }

    /// Ends all seats: whoever waits in one is told.
    pub(crate) fn close(&self) {
        let mut seats = self.lock();
        seats.closed = true;
        for mailbox in seats.open.values() {
            mailbox.push(Event::Closing);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seats> {
        // Every critical section leaves the tables whole.
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is said of a seat that nobody here remembers.
pub(super) fn nobody(rank: u32) -> Abort {
    Abort {
        round: 0,
        from_rank: rank,
        culprit: rank,
        cause: AbortCause::Left,
        detail: format!("rank {rank} has no seat here, or not any more"),
    }
}
