//! The client's queue for arena memory: who gets it next, who has waited too long, and who gives it
//! up for others.
//!
//! A block is handed out only when it is whole. If attempts took memory page by page, many could
//! each hold a part of a block and wait for pages that the others hold. Four rules prevent that:
//!
//! 1. Memory is leased for whole blocks, all or none
//!    ([`Stream::whole_blocks`](super::deliver::Stream)). An attempt that has it needs no more
//!    memory to hand its blocks out.
//! 2. Requests are served in the order in which they were made, on all fabrics together
//!    ([`PlaceInOrder`]). The first one that gets no memory stops the following ones, so that small
//!    blocks cannot overtake a large one for ever.
//! 3. The one exception to rule 1 is the buffer that is sent with a request, before the lengths are
//!    known. It has the size of the larger ones of the last replies, up to a page, and may hold the
//!    beginning of a large block. While more than half of the arena is in use, or an older request
//!    waits on another fabric, requests are sent without it. If only requests that hold such parts
//!    are left, or if no memory returns for a while, the youngest of them are requeued: their
//!    attempts end, and their blocks are asked for again later.
//! 4. An unresponsive server keeps no memory from other servers. In a shortage its buffers are taken
//!    from it, and each of its requests is asked again without a buffer, which costs no memory. The
//!    deadline stays the same, because nothing has arrived for the request. From then on its
//!    attempts wait *behind*: they get memory after all others, and during the shortage only while
//!    less than half of the arena is in use. Posted reads keep their memory: only the end of the
//!    connection returns it.
//!
//! ```text
//!   a connection                                waits behind until something arrives on it
//!   a request whose server answers only others  waits behind until bytes arrive for it
//! ```
//! A request that waits for memory has no deadline as long as memory returns to the arena. If none
//! does, it waits while bytes arrive for others, and no longer than its timeout.
//!
//! The queue decides and the service acts: the queue sends nothing and ends no attempt.

use super::attempt::Attempt;
use super::attempts::Attempts;
use super::memory_order::PlaceInOrder;
use super::request::FetchRequest;
use crate::limits::{MEMORY_WAIT, MEMORY_WAIT_BYTES, RELIEF_WAIT, SILENCE_IN_SHORTAGE, TICK};
use crate::memory::Memory;
use faro_fabric::ConnectionId;
use faro_pool::{Lease, Purpose, PAGE_BYTES, SIZE_CLASSES};
use faro_sync::{clock, HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An attempt, by its request's id and its id on the wire; the oldest request comes first.
type AttemptKey = (u64, u64);

/// The result of granting memory to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryGrant {
    /// It has all the memory that it should have now.
    Served,
    /// Its connection's queue is full. It waits for work there to end, and no other attempt waits
    /// for it.
    NoRoom,
    /// The arena has no memory. All later attempts wait, too.
    NoMemory,
}

/// One pass over the queue.
pub(super) struct GrantRound {
    /// The attempts that wait behind, until it is their turn.
    behind: Vec<AttemptKey>,
    serves_behind: bool,
    /// The grant to the attempt that [`ArenaQueue::next`] returned last.
    pub(super) last: MemoryGrant,
}

/// The way in which an attempt gives up its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relief {
    /// Its server is unresponsive: ask again on the same connection, without a buffer.
    AskAgain,
    /// It holds a part of a block: send its request again when no older one waits.
    Requeue,
}

/// The action for an attempt that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitVerdict {
    /// Look again at that time.
    Later(Instant),
    /// Ask again later: it has waited for memory for so long that its server is about to end its
    /// own part.
    Requeue,
    /// Fail it: it has waited for that time, and no memory has returned to the arena.
    NoMemory(Duration),
    /// Fail it: nothing has arrived for it for its idle timeout; if `is_silent`, nothing at all has on
    /// its connection.
    TimedOut { is_silent: bool },
}

/// All that waits for arena memory on one progress thread.
pub(super) struct ArenaQueue {
    memory: Arc<Memory>,
    /// The attempts that wait for arena memory.
    waiting: BTreeSet<AttemptKey>,
    /// The place of this thread among all that wait for memory.
    order: PlaceInOrder,
    /// True if a request was refused memory because an older one of another fabric waits for it.
    was_held_back: bool,
    /// The attempts that wait for room in the queue of their connection.
    backpressure: SendBackpressure,
    /// Requests whose attempts gave up their memory, by id.
    requeued: BTreeMap<u64, FetchRequest>,
    /// True if buffers were taken from attempts at some of the requests.
    any_preempted: bool,
    shortage: Shortage,
    activity: ServerActivity,
    /// Estimated size of a reply, in bytes, from the last replies.
    reply_bytes: u64,
}

impl ArenaQueue {
    pub(super) fn new(memory: Arc<Memory>, order: PlaceInOrder) -> Self {
        Self {
            memory,
            waiting: BTreeSet::new(),
            order,
            was_held_back: false,
            backpressure: SendBackpressure::default(),
            requeued: BTreeMap::new(),
            any_preempted: false,
            shortage: Shortage::new(),
            activity: ServerActivity::default(),
            reply_bytes: PAGE_BYTES as u64,
        }
    }

    /// A turn of the service's thread begins. Returns whether, in the last one, a request was refused
    /// memory for an older one of another fabric.
    pub(super) fn begin_turn(&mut self) -> bool {
        self.shortage.own_return = std::mem::take(&mut self.shortage.gave_back);
        std::mem::take(&mut self.was_held_back)
    }

    /// Notes that something has arrived from a server.
    pub(super) fn on_arrival(&mut self, connection: ConnectionId, now: Instant) {
        self.activity.record(connection, now);
        self.shortage.last_progress = now;
    }

    /// Notes that a write on the connection has ended. Returns whether an attempt that waited for it
    /// has joined the queue.
    pub(super) fn on_write_ended(&mut self, connection: ConnectionId) -> bool {
        if !self.backpressure.0.contains_key(&connection) {
            return false;
        }
        self.activity.record(connection, clock::now());
        self.has_room(connection)
    }

    /// Forgets a connection that was closed.
    pub(super) fn on_closed(&mut self, connection: ConnectionId) {
        self.activity.last.remove(&connection);
        self.activity.unresponsive.remove(&connection);
    }

    /// Notes a report that memory has returned to the arena, unless it may be about memory that the
    /// service has returned itself.
    pub(super) fn on_memory(&mut self) {
        if !self.shortage.own_return {
            self.shortage.memory_returned = clock::now();
        }
    }

    /// Notes that the service has returned memory that a connection had no room for.
    pub(super) fn gave_back(&mut self) {
        self.shortage.gave_back = true;
    }

    /// Notes a new attempt at the request.
    pub(super) fn on_attempt(&mut self, request: &FetchRequest) {
        self.any_preempted |= request.was_preempted;
    }

    /// Returns memory for the buffer that is sent with a request. Returns `None` if more than half
    /// of the arena is in use, if an older request of another fabric waits for memory, or if the
    /// server is unresponsive.
    pub(super) fn first_lease(&self, attempt: &Attempt) -> Option<Lease> {
        if self.memory.is_half_full(Purpose::Read)
            || self.activity.is_unresponsive(attempt.connection)
            || self.order.is_held_back(attempt.request.id)
        {
            return None;
        }
        let bytes = self
            .reply_bytes
            .clamp(SIZE_CLASSES[1] as u64, PAGE_BYTES as u64);
        self.memory.try_lease(bytes as usize, Purpose::Read).ok()
    }

    /// Queues an attempt whose reply has `bytes` bytes. A larger reply than the last ones takes effect
    /// on their estimate at once, smaller ones gradually.
    pub(super) fn on_reply(&mut self, attempts: &mut Attempts, id: u64, bytes: u64) {
        let faded = self.reply_bytes - self.reply_bytes / 16;
        self.reply_bytes = faded.max(bytes);
        self.join(attempts, id);
    }

    /// Queues the attempt for memory.
    pub(super) fn join(&mut self, attempts: &mut Attempts, id: u64) {
        if let Some(attempt) = attempts.get_mut(id) {
            self.waiting.insert((attempt.request.id, id));
            if !attempt.is_under_way() {
                attempts.starve(id);
            }
        }
    }

    /// Called when work on the connection has ended: the oldest attempt that waits for room there
    /// joins the queue again. Returns whether there was one.
    pub(super) fn has_room(&mut self, connection: ConnectionId) -> bool {
        let attempt = self.backpressure.pop(connection);
        self.waiting.extend(attempt);
        attempt.is_some()
    }

    /// Returns whether an attempt at an older request waits for room on the connection.
    pub(super) fn older_waits_for_room(&self, connection: ConnectionId, request: u64) -> bool {
        self.backpressure.has_older(connection, request)
    }

    /// Removes an attempt that has ended.
    pub(super) fn leave(&mut self, connection: ConnectionId, request: u64, id: u64) {
        self.waiting.remove(&(request, id));
        self.backpressure.remove(connection, (request, id));
    }

    /// Begins to grant memory. The service calls `next`, and `granted` for what that returns, until
    /// there is no next one.
    pub(super) fn begin_round(&mut self, attempts: &Attempts) -> GrantRound {
        GrantRound {
            behind: self.take_behind(attempts),
            serves_behind: false,
            last: MemoryGrant::Served,
        }
    }

    /// Removes the next attempt from the queue and returns its id on the wire. Those behind come
    /// last.
    pub(super) fn next(&mut self, round: &mut GrantRound) -> Option<u64> {
        let was_refused = round.last == MemoryGrant::NoMemory;
        if !round.serves_behind {
            if !was_refused {
                if let Some((_, id)) = self.waiting.pop_first() {
                    return Some(id);
                }
            }
            debug_assert_eq!(was_refused, !self.waiting.is_empty());
            if was_refused {
                self.shortage.short_at = clock::now();
            }
            round.serves_behind = true;
            if round.behind.is_empty() {
                return None;
            }
            self.waiting.extend(round.behind.drain(..));
        }
        if was_refused || !self.has_memory_for_those_behind() {
            return None;
        }
        self.waiting.pop_first().map(|(_, id)| id)
    }

    /// Offers an attempt all the buffers that it should have now, as far as memory and room allow.
    /// `offer` exposes the first bytes of a lease to the attempt's server and returns the buffer, or
    /// nothing if its connection has no room. Returns the buffers that the server must be told of.
    pub(super) fn offer_more<B>(
        &mut self,
        attempts: &mut Attempts,
        id: u64,
        mut offer: impl FnMut(&mut Attempt, Lease, u32) -> Option<B>,
    ) -> (MemoryGrant, Vec<B>) {
        let mut buffers = Vec::new();
        let Some(mut attempt) = attempts.take_out(id) else {
            return (MemoryGrant::Served, buffers);
        };
        let granted = loop {
            let mut bytes = attempt.next_bytes();
            if bytes == 0 {
                break MemoryGrant::Served;
            }
            if self.is_held_back(attempts, attempt.request.id) {
                break MemoryGrant::NoMemory;
            }
            let Ok(leases) = self.memory.try_lease_all(bytes, Purpose::Read) else {
                break MemoryGrant::NoMemory;
            };
            for lease in leases {
                let capacity = bytes.min(lease.capacity() as u64) as u32;
                match offer(&mut attempt, lease, capacity) {
                    Some(buffer) => buffers.push(buffer),
                    None => break,
                }
                bytes -= u64::from(capacity);
            }
            if bytes > 0 {
                // The fabric cannot expose more to that peer now, or the connection is closed.
                self.gave_back();
                break MemoryGrant::NoRoom;
            }
        };
        attempts.put_in(id, attempt);
        (granted, buffers)
    }

    /// Notes what an attempt was granted that is not in the queue. Without room it waits for that,
    /// and without memory it joins the queue.
    pub(super) fn granted(&mut self, attempts: &mut Attempts, id: u64, grant: MemoryGrant) {
        let Some(attempt) = attempts.get_mut(id) else {
            return;
        };
        let key = (attempt.request.id, id);
        let has_none = attempt.has_no_buffers() || attempt.is_pulling();
        match grant {
            MemoryGrant::Served => {}
            MemoryGrant::NoRoom => self.backpressure.insert(attempt.connection, key),
            MemoryGrant::NoMemory => {
                self.waiting.insert(key);
                if has_none {
                    return attempts.starve(id);
                }
            }
        }
        attempt.memory_granted();
    }

    /// Returns whether a request gets no memory now because an older one of another fabric waits for
    /// it. The thread is woken when that one has it.
    pub(super) fn is_held_back(&mut self, attempts: &Attempts, request: u64) -> bool {
        if !self.order.is_held_back(request) {
            return false;
        }
        let first = self.first_in_line(attempts);
        let first = first.map_or(request, |first| first.min(request));
        self.order.publish(Some(first));
        let is_held_back = self.order.is_held_back(request);
        self.was_held_back |= is_held_back;
        is_held_back
    }

    /// Publishes the oldest request that waits for memory. Called in each turn, before the thread
    /// waits for events.
    pub(super) fn publish_first(&self, attempts: &Attempts) {
        self.order.publish(self.first_in_line(attempts));
    }

    /// Notes the time, and what has happened on other fabrics. Returns the connections on which
    /// attempts wait for room.
    pub(super) fn tick(&mut self, attempts: &Attempts, now: Instant) -> Vec<ConnectionId> {
        let (arrived, shortage) = (self.memory.arrived(), &mut self.shortage);
        if arrived - shortage.enough_arrived.1 >= MEMORY_WAIT_BYTES {
            shortage.enough_arrived = (now, arrived);
        }
        let others_wait = self.order.first_of_others().is_some();
        let since = shortage.others_wait_since.unwrap_or(now);
        shortage.others_wait_since = others_wait.then_some(since);
        self.any_preempted =
            self.any_preempted && attempts.values().any(|a| a.request.was_preempted);
        self.backpressure.0.keys().copied().collect()
    }

    /// Returns the attempts that must give up their memory, when attempts that hold parts of blocks
    /// wait for each other, for an unresponsive server, or for an older request of another fabric.
    pub(super) fn relieve(&mut self, attempts: &Attempts, now: Instant) -> Vec<(u64, Relief)> {
        let recently = |at: Instant| now.duration_since(at) < TICK;
        let first = self.first_in_line(attempts);
        if first.is_none() && self.shortage.others_wait_since.is_none() {
            return Vec::new();
        }
        // Posted work will return memory, unless none has returned for a while: one slow or
        // unresponsive peer must not make the others wait. Under traffic, the time of the last
        // arrival saves the search below.
        let stuck = self.is_stuck(attempts, now);
        if stuck {
            self.find_unresponsive(attempts, now);
            // Attempts that wait behind do not count from now on.
            if self.is_stuck(attempts, now) {
                let taken = self.held_by_unresponsive(attempts, now);
                if !taken.is_empty() {
                    return taken;
                }
            }
        }
        if !stuck
            && (recently(self.shortage.last_progress)
                || attempts.values().any(Attempt::is_under_way))
        {
            return Vec::new();
        }
        // The oldest request of all keeps what it has.
        let oldest = first.filter(|first| !self.order.is_held_back(*first));
        let waits = |a: &Attempt| a.starved_since.is_some_and(|at| !recently(at));
        let holding = self.waiting.iter().filter(|(request, id)| {
            let attempt = attempts.get(*id);
            oldest != Some(*request) && attempt.is_some_and(|a| waits(a) && a.holds_part())
        });
        let mut holding: Vec<_> = holding.map(|(_, id)| (*id, Relief::Requeue)).collect();
        // The youngest half gives up its memory at once. The oldest attempt may need no more than
        // this.
        let mut youngest = holding.split_off(holding.len() / 2);
        youngest.reverse();
        youngest
    }

    /// Takes a request whose attempt has given up its memory.
    pub(super) fn requeue(&mut self, request: FetchRequest) {
        self.requeued.insert(request.id, request);
    }

    /// Takes out the requeued requests than which no older one waits for memory.
    pub(super) fn take_due(&mut self, attempts: &Attempts) -> impl Iterator<Item = FetchRequest> {
        let first = self.first_in_line(attempts).into_iter();
        let older = first.chain(self.order.first_of_others()).min();
        let wait = older.map(|older| self.requeued.split_off(&older));
        std::mem::replace(&mut self.requeued, wait.unwrap_or_default()).into_values()
    }

    /// Takes out a requeued request.
    pub(super) fn withdraw(&mut self, request: u64) -> Option<FetchRequest> {
        self.requeued.remove(&request)
    }

    /// Returns whether no request is requeued.
    pub(super) fn is_empty(&self) -> bool {
        self.requeued.is_empty()
    }

    /// Ends all waits, when the fabric is gone. Returns the requeued requests.
    pub(super) fn close(&mut self) -> impl Iterator<Item = FetchRequest> {
        self.order.publish(None);
        std::mem::take(&mut self.requeued).into_values()
    }

    /// Decides about an attempt that is due.
    pub(super) fn judge(&self, attempt: &Attempt, now: Instant) -> WaitVerdict {
        let Some(since) = attempt.starved_since else {
            let (deadline, timeout) = (self.deadline_of(attempt), attempt.request.idle_timeout);
            if deadline > now {
                return WaitVerdict::Later(deadline);
            }
            let is_silent = self.is_silent_for(attempt.connection, timeout, now);
            return WaitVerdict::TimedOut { is_silent };
        };
        let requeue = since + attempt.request.idle_timeout / 2;
        match self.no_memory_at(attempt, since) {
            (from, at) if at <= now => WaitVerdict::NoMemory(now.duration_since(from)),
            _ if requeue <= now => WaitVerdict::Requeue,
            (_, at) => WaitVerdict::Later(at.min(requeue)),
        }
    }

    /// Returns whether nothing has arrived on the connection for that time, or ever.
    fn is_silent_for(&self, connection: ConnectionId, time: Duration, now: Instant) -> bool {
        let last = self.activity.last.get(&connection);
        last.is_none_or(|at| now.duration_since(*at) >= time)
    }

    /// Returns the time since which an attempt that waits for memory has waited in vain, and the
    /// time at which it fails. While bytes arrive for others, memory is about to return, unless
    /// they are so few that it would take too long.
    fn no_memory_at(&self, attempt: &Attempt, since: Instant) -> (Instant, Instant) {
        let since = attempt.request.starved_since.unwrap_or(since);
        let from = since.max(self.shortage.memory_returned);
        let quiet = from.max(self.shortage.enough_arrived.0) + MEMORY_WAIT;
        let latest = from + attempt.request.idle_timeout.max(MEMORY_WAIT);
        (from, quiet.min(latest))
    }

    /// Returns the deadline of an attempt that has the memory it needs. An attempt that waits for
    /// room on its connection depends on other attempts there: its server is unresponsive only if
    /// nothing arrives for them either.
    fn deadline_of(&self, attempt: &Attempt) -> Instant {
        let (connection, request) = (attempt.connection, &attempt.request);
        match self.activity.last.get(&connection) {
            Some(last) if self.backpressure.has(connection, request.id) => {
                attempt.deadline.max(*last + request.idle_timeout)
            }
            _ => attempt.deadline,
        }
    }

    fn is_behind(&self, attempt: &Attempt) -> bool {
        attempt.request.was_preempted || self.activity.is_unresponsive(attempt.connection)
    }

    /// Returns false if no attempt waits behind, which saves the search.
    fn has_behind(&self) -> bool {
        self.any_preempted || !self.activity.unresponsive.is_empty()
    }

    /// Removes the attempts that wait behind from the queue, and returns them.
    fn take_behind(&mut self, attempts: &Attempts) -> Vec<AttemptKey> {
        if !self.has_behind() {
            return Vec::new();
        }
        let is_behind = |id| attempts.get(id).is_some_and(|a| self.is_behind(a));
        let behind = self.waiting.iter().filter(|(_, id)| is_behind(*id));
        let behind: Vec<_> = behind.copied().collect();
        for attempt in &behind {
            self.waiting.remove(attempt);
        }
        behind
    }

    /// Returns whether attempts behind may have memory: no request of another fabric waits, and half
    /// of the arena is free or no attempt has found the arena empty for a while.
    fn has_memory_for_those_behind(&self) -> bool {
        self.order.first_of_others().is_none()
            && (!self.memory.is_half_full(Purpose::Read)
                || clock::now().duration_since(self.shortage.short_at) >= RELIEF_WAIT)
    }

    /// Returns the oldest request that waits for memory, and not behind.
    fn first_in_line(&self, attempts: &Attempts) -> Option<u64> {
        let is_in_line = |id| attempts.get(id).is_none_or(|a| !self.is_behind(a));
        let (request, _) = match self.has_behind() {
            false => self.waiting.first(),
            true => self.waiting.iter().find(|(_, id)| is_in_line(*id)),
        }?;
        Some(*request)
    }

    /// Returns whether an attempt in line, or a request of another fabric, has waited for memory for
    /// a while and none has returned.
    fn is_stuck(&self, attempts: &Attempts, now: Instant) -> bool {
        let is_long = |at: Instant| now.duration_since(at) >= RELIEF_WAIT;
        let waits = |a: &Attempt| a.starved_since.is_some_and(is_long) && !self.is_behind(a);
        let mut waiting = self.waiting.iter();
        is_long(self.shortage.memory_returned)
            && (waiting.any(|(_, id)| attempts.get(*id).is_some_and(waits))
                || self.shortage.others_wait_since.is_some_and(is_long))
    }

    /// Notes the servers that have sent nothing for [`SILENCE_IN_SHORTAGE`].
    fn find_unresponsive(&mut self, attempts: &Attempts, now: Instant) {
        let is_due = |a: &&Attempt| a.is_under_way() && is_silence(a.last_progress(), now);
        for attempt in attempts.values().filter(is_due) {
            let connection = attempt.connection;
            if self.is_silent_for(connection, SILENCE_IN_SHORTAGE, now) {
                self.activity.unresponsive.insert(connection);
            }
        }
    }

    /// Returns the attempts at unresponsive servers that have buffers. If there are none, returns the
    /// younger half of those for which nothing has arrived although their server answers others.
    fn held_by_unresponsive(&self, attempts: &Attempts, now: Instant) -> Vec<(u64, Relief)> {
        let holding = attempts.iter().filter(|(_, a)| !a.has_no_buffers());
        let (unresponsive, others): (Vec<_>, Vec<_>) =
            holding.partition(|(_, a)| self.activity.is_unresponsive(a.connection));
        let key = |(id, a): (u64, &Attempt)| (a.request.id, id);
        let mut taken: Vec<_> = unresponsive.into_iter().map(key).collect();
        taken.sort_unstable();
        if taken.is_empty() {
            let slow = others.into_iter();
            let slow = slow.filter(|(_, a)| is_silence(a.last_progress(), now));
            taken = slow.map(key).collect();
            taken.sort_unstable();
            taken = taken.split_off(taken.len() / 2);
        }
        let taken = taken.into_iter();
        taken.map(|(_, id)| (id, Relief::AskAgain)).collect()
    }
}

fn is_silence(since: Instant, now: Instant) -> bool {
    now.duration_since(since) >= SILENCE_IN_SHORTAGE
}

/// The times by which a shortage of memory is judged.
struct Shortage {
    /// The time of the last arrival for any attempt.
    last_progress: Instant,
    /// The time at which memory last returned to the arena after a lease was refused.
    memory_returned: Instant,
    /// The time at which the last [`MEMORY_WAIT_BYTES`] had arrived, on all fabrics together, and the
    /// number of bytes then.
    enough_arrived: (Instant, u64),
    /// The time at which an attempt in line last found no memory.
    short_at: Instant,
    /// The time since which requests of other fabrics have waited for memory.
    others_wait_since: Option<Instant>,
    /// True if the service, in this turn of its thread, has returned memory that a connection had
    /// no room for.
    gave_back: bool,
    /// The value of `gave_back` in the last turn: a report of returned memory may be about that
    /// memory.
    own_return: bool,
}

impl Shortage {
    fn new() -> Self {
        let now = clock::now();
        Self {
            last_progress: now,
            memory_returned: now,
            enough_arrived: (now, 0),
            short_at: now,
            others_wait_since: None,
            gave_back: false,
            own_return: false,
        }
    }
}

/// What each server has sent lately.
#[derive(Default)]
struct ServerActivity {
    /// The time at which something last arrived on each connection with attempts.
    last: HashMap<ConnectionId, Instant>,
    /// Connections whose servers have sent nothing for a while, although other attempts waited for
    /// the memory that requests there hold.
    unresponsive: HashSet<ConnectionId>,
}

impl ServerActivity {
    /// Notes that something has arrived on the connection.
    fn record(&mut self, connection: ConnectionId, now: Instant) {
        self.last.insert(connection, now);
        if !self.unresponsive.is_empty() {
            self.unresponsive.remove(&connection);
        }
    }

    fn is_unresponsive(&self, connection: ConnectionId) -> bool {
        self.unresponsive.contains(&connection)
    }
}

/// The attempts that wait for room in the queue of their connection.
///
/// A slow peer fills the queue of its own connection. Its attempts wait here without memory that
/// they do not use yet, so that attempts at other peers proceed.
#[derive(Default)]
struct SendBackpressure(BTreeMap<ConnectionId, BTreeSet<AttemptKey>>);

impl SendBackpressure {
    fn insert(&mut self, connection: ConnectionId, attempt: AttemptKey) {
        self.0.entry(connection).or_default().insert(attempt);
    }

    fn remove(&mut self, connection: ConnectionId, attempt: AttemptKey) {
        if let Some(attempts) = self.0.get_mut(&connection) {
            attempts.remove(&attempt);
            if attempts.is_empty() {
                self.0.remove(&connection);
            }
        }
    }

    /// Removes and returns a connection's oldest attempt.
    fn pop(&mut self, connection: ConnectionId) -> Option<AttemptKey> {
        let first = *self.0.get(&connection)?.first()?;
        self.remove(connection, first);
        Some(first)
    }

    /// Returns whether an attempt at an older request waits on the connection.
    fn has_older(&self, connection: ConnectionId, request: u64) -> bool {
        let first = self.0.get(&connection).and_then(BTreeSet::first);
        first.is_some_and(|(oldest, _)| *oldest < request)
    }

    /// Returns whether an attempt at this request waits on the connection.
    fn has(&self, connection: ConnectionId, request: u64) -> bool {
        let attempts = self.0.get(&connection);
        let of_request = (request, 0)..=(request, u64::MAX);
        attempts.is_some_and(|attempts| attempts.range(of_request).next().is_some())
    }
}

#[cfg(test)]
#[path = "arena_queue_test.rs"]
mod tests;
