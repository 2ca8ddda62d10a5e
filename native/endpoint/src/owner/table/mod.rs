//! All fetches that one progress thread serves.

mod turns;

use super::shown::Shown;
use super::{IoPool, Job};
use crate::config::limits::{MAX_CREDITS_HELD, MAX_SERVING, STAGED_WINDOW};
use crate::config::Staging;
use crate::counters::Counters;
use crate::exchange::Serving;
use crate::memory::Memory;
use crate::outbox::{Outbox, Post};
use crate::progress::Inbox;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Fabric, Message, Outcome};
use faro_wire::message::{Failed, FailureCode, Fetch, MoreBuffers};
use faro_wire::{kind, WireError};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One fetch.
struct Entry {
    peer: ConnectionId,
    endpoint: EndpointId,
    request: u64,
    /// At home: no I/O thread has it.
    job: Option<Box<Job>>,
    /// At home, with a turn asked for and not given yet.
    asked: bool,
    /// A turn was given and has not ended: an I/O thread has the job.
    turn: bool,
    /// Credits that came while it was out.
    credits: Vec<faro_wire::message::RemoteBuffer>,
    /// Writes posted that have not ended.
    in_flight: usize,
    /// Waits for arena memory.
    starved: bool,
    /// How long the reader waits without progress.
    patience: Duration,
    deadline: Instant,
}

/// Writes of a fetch that has nothing else to do.
struct Tail {
    peer: ConnectionId,
    endpoint: EndpointId,
    in_flight: usize,
}

/// See the module's comment.
pub(crate) struct Owner {
    io: Arc<IoPool>,
    inbox: Arc<Inbox>,
    counters: Arc<Counters>,
    memory: Arc<Memory>,
    shown: Shown,
    /// The arena's shortage that `shown` was last taken back for.
    shortage: u64,
    /// Whose turn it is.
    serving: Serving,
    entries: HashMap<u64, Entry>,
    by_request: HashMap<(ConnectionId, u64), u64>,
    /// By serial number, of fetches that are in `entries` no more.
    tails: HashMap<u64, Tail>,
    next_serial: u64,
}

impl Owner {
    pub(crate) fn new(
        io: Arc<IoPool>,
        inbox: Arc<Inbox>,
        counters: Arc<Counters>,
        memory: Arc<Memory>,
        serving: Serving,
    ) -> Self {
        let (entries, by_request) = (HashMap::new(), HashMap::new());
        Self {
            io,
            inbox,
            counters,
            shortage: memory.shortages(),
            memory,
            shown: Shown::default(),
            serving,
            entries,
            by_request,
            tails: HashMap::new(),
            next_serial: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// Is a fetch of that connection being served?
    pub(crate) fn serves(&self, peer: ConnectionId) -> bool {
        self.by_request.keys().any(|(at, _)| *at == peer)
    }

    /// `FETCH`, `MORE_BUFFERS` and `CANCEL`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(crate) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        (peer, endpoint): (ConnectionId, EndpointId),
        message: &Message,
    ) -> Result<(), WireError> {
        match message.kind {
            kind::FETCH => self.fetch(
                fabric,
                outbox,
                (peer, endpoint),
                message.id,
                Fetch::decode(&message.body)?,
            ),
            kind::MORE_BUFFERS => {
                self.credit(peer, message.id, MoreBuffers::decode(&message.body)?)
            }
            _ => {
                let found = self.by_request.get(&(peer, message.id)).copied();
                if let Some(serial) = found {
                    self.remove(serial);
                    fail(
                        fabric,
                        outbox,
                        peer,
                        message.id,
                        FailureCode::Cancelled,
                        String::new(),
                    );
                }
                Ok(())
            }
        }
    }

    fn fetch(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        (peer, endpoint): (ConnectionId, EndpointId),
        request: u64,
        fetch: Fetch,
    ) -> Result<(), WireError> {
        if self.by_request.contains_key(&(peer, request)) {
            return Err(WireError::BadValue {
                what: "request id of FETCH (in use)",
                got: request,
            });
        }
        if self.entries.len() >= MAX_SERVING {
            self.counters.busy_refusals.add(1);
            let detail = format!("{MAX_SERVING} requests are being served");
            fail(fabric, outbox, peer, request, FailureCode::Busy, detail);
            return Ok(());
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let patience = Duration::from_millis(u64::from(fetch.deadline_ms));
        let job = Box::new(Job::new(serial, fetch)?);
        self.by_request.insert((peer, request), serial);
        let due = self.serving.submit(endpoint, serial, Instant::now());
        let turn = due.contains(&serial);
        if !turn && self.memory.staging == Staging::Planned {
            self.io.prepare(&job);
        }
        let (job, waits) = if turn {
            (Some(job), None)
        } else {
            (None, Some(job))
        };
        let entry = Entry {
            peer,
            endpoint,
            request,
            job: waits,
            asked: !turn,
            turn,
            credits: Vec::new(),
            in_flight: 0,
            starved: false,
            patience,
            deadline: Instant::now() + patience,
        };
        self.entries.insert(serial, entry);
        self.counters.served_requests.add(1);
        self.take_turns(due);
        if let Some(job) = job {
            match self.io.at_once(job) {
                Ok((job, turn)) => self.on_turn(fabric, outbox, job, turn),
                Err(job) => self.io.submit(job, &self.inbox),
            }
        }
        Ok(())
    }

    fn credit(
        &mut self,
        peer: ConnectionId,
        request: u64,
        more: MoreBuffers,
    ) -> Result<(), WireError> {
        // Unknown: the request ended while the credit was on its way.
        let Some(&serial) = self.by_request.get(&(peer, request)) else {
            return Ok(());
        };
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Ok(());
        };
        let now = Instant::now();
        entry.deadline = now + entry.patience;
        self.serving.sign(entry.endpoint, now);
        match &mut entry.job {
            Some(job) => job.add_credits(more.buffers)?,
            None => {
                entry.credits.extend(more.buffers);
                let (got, limit) = (entry.credits.len() as u64, MAX_CREDITS_HELD as u64);
                if got > limit {
                    return Err(WireError::TooLarge {
                        what: "credits of a request",
                        got,
                        limit,
                    });
                }
            }
        }
        self.advance(serial);
        Ok(())
    }

    /// Asks for the job's next turn if there is something to do and room to do it.
    fn advance(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        if entry.asked || entry.starved || entry.in_flight >= STAGED_WINDOW {
            return;
        }
        if entry.job.as_ref().is_some_and(|job| job.can_turn()) {
            entry.asked = true;
            let due = self.serving.submit(entry.endpoint, serial, Instant::now());
            self.take_turns(due);
        }
    }

    /// These have their turn now.
    fn take_turns(&mut self, due: Vec<u64>) {
        let mut due = VecDeque::from(due);
        while let Some(serial) = due.pop_front() {
            let Some(entry) = self.entries.get_mut(&serial) else {
                continue;
            };
            entry.asked = false;
            if let Some(job) = entry.job.take() {
                entry.turn = true;
                self.io.submit(job, &self.inbox);
            }
        }
    }

    /// Turns and writes of a peer have ended: others may be due.
    fn ended(&mut self, endpoint: EndpointId, pieces: usize) {
        if pieces > 0 {
            let due = self.serving.ended(endpoint, pieces, Instant::now());
            self.take_turns(due);
        }
    }

    /// A write of ours ended.
    pub(crate) fn on_write_ended(&mut self, serial: u64, outcome: &Outcome) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return self.tail_ended(serial);
        };
        entry.in_flight = entry.in_flight.saturating_sub(1);
        let endpoint = entry.endpoint;
        if *outcome == Outcome::Done {
            let now = Instant::now();
            entry.deadline = now + entry.patience;
            self.serving.sign(endpoint, now);
        }
        self.advance(serial);
        self.ended(endpoint, 1);
    }

    /// Keeps count of the writes of a fetch that is about to be removed.
    fn keep_tail(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        let tail = Tail {
            peer: entry.peer,
            endpoint: entry.endpoint,
            in_flight: std::mem::take(&mut entry.in_flight),
        };
        if tail.in_flight > 0 {
            self.tails.insert(serial, tail);
        }
    }

    fn tail_ended(&mut self, serial: u64) {
        let Some(tail) = self.tails.get_mut(&serial) else {
            return;
        };
        let endpoint = tail.endpoint;
        tail.in_flight -= 1;
        if tail.in_flight == 0 {
            self.tails.remove(&serial);
        }
        self.serving.sign(endpoint, Instant::now());
        self.ended(endpoint, 1);
    }

    /// Arena memory may have come back.
    pub(crate) fn on_memory(&mut self) {
        let starved: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, e)| e.starved)
            .map(|(serial, _)| *serial)
            .collect();
        for serial in starved {
            if let Some(entry) = self.entries.get_mut(&serial) {
                entry.starved = false;
            }
            self.advance(serial);
        }
    }

    pub(crate) fn on_closed(&mut self, fabric: &mut dyn Fabric, peer: ConnectionId) {
        self.shown.take_back(fabric, peer);
        let requests = self.by_request.iter();
        let gone: Vec<u64> = requests
            .filter(|((at, _), _)| *at == peer)
            .map(|(_, serial)| *serial)
            .collect();
        for serial in gone {
            self.remove(serial);
        }
        let mut tails = Vec::new();
        self.tails.retain(|_, tail| {
            let stays = tail.peer != peer;
            if !stays {
                tails.push((tail.endpoint, tail.in_flight));
            }
            stays
        });
        for (endpoint, in_flight) in tails {
            self.ended(endpoint, in_flight);
        }
    }

    /// Ends what is past its deadline. A peer that does not take the bytes it gave credit for is
    /// disconnected, because the frames on their way to it are not ours until then.
    pub(crate) fn tick(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, now: Instant) {
        self.on_memory();
        let due = self.serving.tick(now);
        self.take_turns(due);
        let shortages = self.memory.shortages();
        if shortages != self.shortage {
            self.shortage = shortages;
            self.shown.take_all_back(fabric);
        }
        let late: Vec<u64> = self
            .entries
            .iter()
            .filter(|(_, e)| e.deadline <= now)
            .map(|(serial, _)| *serial)
            .collect();
        for serial in late {
            let Some(entry) = self.remove(serial) else {
                continue;
            };
            if entry.in_flight > 0 {
                let limit = entry.patience.as_millis() as u64;
                let what = "milliseconds without progress of a peer that gave credit";
                fabric.disconnect(entry.peer, CloseReason::Bound { what, limit });
                continue;
            }
            let detail = format!("no progress for {} ms", entry.patience.as_millis());
            let code = FailureCode::DeadlinePassed;
            fail(fabric, outbox, entry.peer, entry.request, code, detail);
        }
    }

    /// Tells every reader that this endpoint is closing.
    pub(crate) fn close(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox) {
        self.by_request.clear();
        for (_, entry) in self.entries.drain() {
            fail(
                fabric,
                outbox,
                entry.peer,
                entry.request,
                FailureCode::Closing,
                String::new(),
            );
        }
    }

    fn served(&self, fabric: &dyn Fabric, job: &Job) {
        let counters = self.counters.fabric(fabric.kind());
        counters.served_blocks.add(job.served.blocks);
        counters.served_bytes.add(job.served.bytes);
        self.counters.blocks_refused.add(job.served.refused);
    }

    fn remove(&mut self, serial: u64) -> Option<Entry> {
        let entry = self.entries.remove(&serial)?;
        self.by_request.remove(&(entry.peer, entry.request));
        if entry.asked {
            self.serving.withdraw(serial);
        }
        self.ended(entry.endpoint, entry.in_flight + usize::from(entry.turn));
        Some(entry)
    }
}

fn fail(
    fabric: &mut dyn Fabric,
    outbox: &mut Outbox,
    peer: ConnectionId,
    id: u64,
    code: FailureCode,
    detail: String,
) {
    let message = Message {
        kind: kind::FAILED,
        id,
        body: Failed { code, detail }.encode(),
    };
    outbox.post(fabric, peer, Post::Message(message));
}
