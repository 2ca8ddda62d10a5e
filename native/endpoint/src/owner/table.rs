//! All fetches that one progress thread serves.

use super::shown::Shown;
use super::{IoPool, Job, Turn};
use crate::config::limits::{MAX_CREDITS_HELD, MAX_SERVING, STAGED_WINDOW};
use crate::counters::Counters;
use crate::memory::Memory;
use crate::outbox::{Outbox, Post};
use crate::progress::Inbox;
use faro_fabric::{CloseReason, Fabric, Message, Outcome, PeerId, RemoteRange, Write};
use faro_wire::message::{Failed, FailureCode, Fetch, MoreCredit, Pushed};
use faro_wire::{kind, WireError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One fetch.
struct Entry {
    peer: PeerId,
    request: u64,
    /// At home: no I/O thread has it.
    job: Option<Box<Job>>,
    /// Credits that came while it was out.
    credits: Vec<faro_wire::message::Credit>,
    /// Writes posted that have not ended.
    in_flight: usize,
    /// Waits for arena memory.
    starved: bool,
    /// How long the reader waits without progress.
    patience: Duration,
    deadline: Instant,
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
    entries: HashMap<u64, Entry>,
    by_request: HashMap<(PeerId, u64), u64>,
    next_serial: u64,
}

impl Owner {
    pub(crate) fn new(
        io: Arc<IoPool>,
        inbox: Arc<Inbox>,
        counters: Arc<Counters>,
        memory: Arc<Memory>,
    ) -> Self {
        let (entries, by_request) = (HashMap::new(), HashMap::new());
        Self {
            io,
            inbox,
            counters,
            shortage: memory.shortages(),
            memory,
            shown: Shown::default(),
            entries,
            by_request,
            next_serial: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    /// Is a fetch of that connection being served?
    pub(crate) fn serves(&self, peer: PeerId) -> bool {
        self.by_request.keys().any(|(at, _)| *at == peer)
    }

    /// `FETCH`, `CREDIT` and `CANCEL`.
    ///
    /// # Errors
    /// What the peer sent breaks the protocol.
    pub(crate) fn on_message(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        peer: PeerId,
        message: &Message,
    ) -> Result<(), WireError> {
        match message.kind {
            kind::FETCH => self.fetch(
                fabric,
                outbox,
                peer,
                message.id,
                Fetch::decode(&message.body)?,
            ),
            kind::CREDIT => self.credit(peer, message.id, MoreCredit::decode(&message.body)?),
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
        peer: PeerId,
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
        let entry = Entry {
            peer,
            request,
            job: None,
            credits: Vec::new(),
            in_flight: 0,
            starved: false,
            patience,
            deadline: Instant::now() + patience,
        };
        self.entries.insert(serial, entry);
        self.counters.served_requests.add(1);
        match self.io.at_once(job) {
            Ok((job, turn)) => self.on_turn(fabric, outbox, job, turn),
            Err(job) => self.io.submit(job, &self.inbox),
        }
        Ok(())
    }

    fn credit(&mut self, peer: PeerId, request: u64, more: MoreCredit) -> Result<(), WireError> {
        // Unknown: the request ended while the credit was on its way.
        let Some(&serial) = self.by_request.get(&(peer, request)) else {
            return Ok(());
        };
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Ok(());
        };
        entry.deadline = Instant::now() + entry.patience;
        match &mut entry.job {
            Some(job) => job.add_credits(more.credits)?,
            None => {
                entry.credits.extend(more.credits);
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

    /// A turn came back.
    pub(crate) fn on_turn(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        mut job: Box<Job>,
        turn: Turn,
    ) {
        let serial = job.serial;
        // Gone: cancelled, past its deadline, or the connection closed.
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        let (peer, request) = (entry.peer, entry.request);
        let (layout, filled, last, starved) = match turn {
            Turn::Staged {
                layout,
                filled,
                last,
                starved,
            } => (layout, filled, last, starved),
            Turn::Located { layout, places } => {
                let versions = self.memory.residency.versions();
                let shown = versions.and_then(|v| self.shown.show(fabric, peer, v, &places));
                match shown {
                    Some(located) => {
                        let bodies = [(kind::LOCATED, located.encode()), (kind::LAYOUT, layout)];
                        for (kind, body) in bodies {
                            let id = request;
                            let message = Message { kind, id, body };
                            outbox.post(fabric, peer, Post::Message(message));
                        }
                        self.counters.pulls_offered.add(1);
                        self.served(fabric, &job);
                        self.remove(serial);
                    }
                    None => {
                        job.push_instead(layout);
                        self.io.submit(job, &self.inbox);
                    }
                }
                return;
            }
            Turn::Cold => return self.io.submit(job, &self.inbox),
            Turn::Broken { detail } => {
                self.remove(serial);
                fail(fabric, outbox, peer, request, FailureCode::Internal, detail);
                return;
            }
        };
        let mut chunks = Vec::with_capacity(filled.len());
        for piece in filled {
            entry.in_flight += 1;
            chunks.push(piece.chunk);
            let target = RemoteRange {
                key: piece.target.key.get(),
                offset: piece.target.offset.get(),
                length: piece.target.length.get(),
            };
            let length = piece.chunk.length.get() as usize;
            let write = Write {
                token: serial,
                source: piece.lease,
                offset: 0,
                length,
                target,
                immediate: None,
                // A credit is filled once.
                last: true,
            };
            outbox.post(fabric, peer, Post::Write(write));
        }
        if let Some(body) = layout {
            let message = Message {
                kind: kind::LAYOUT,
                id: request,
                body,
            };
            outbox.post(fabric, peer, Post::Message(message));
        }
        if last || !chunks.is_empty() {
            let message = Message {
                kind: kind::PUSHED,
                id: request,
                body: Pushed { chunks, last }.encode(),
            };
            outbox.post(fabric, peer, Post::Message(message));
        }
        if last {
            self.served(fabric, &job);
            self.remove(serial);
            return;
        }
        let credits = std::mem::take(&mut entry.credits);
        let added = job.add_credits(credits);
        entry.starved = starved;
        entry.job = Some(job);
        match added {
            Ok(()) => self.advance(serial),
            Err(error) => fabric.disconnect(peer, CloseReason::Protocol(error)),
        }
    }

    /// Sends the job into its next turn if there is something to do and room to do it.
    fn advance(&mut self, serial: u64) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        if entry.starved || entry.in_flight >= STAGED_WINDOW {
            return;
        }
        if let Some(job) = entry.job.take_if(|job| job.can_turn()) {
            self.io.submit(job, &self.inbox);
        }
    }

    /// A write of ours ended.
    pub(crate) fn on_write_ended(&mut self, serial: u64, outcome: &Outcome) {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        entry.in_flight = entry.in_flight.saturating_sub(1);
        if *outcome == Outcome::Done {
            entry.deadline = Instant::now() + entry.patience;
        }
        self.advance(serial);
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

    pub(crate) fn on_closed(&mut self, fabric: &mut dyn Fabric, peer: PeerId) {
        self.shown.take_back(fabric, peer);
        let entries = &mut self.entries;
        self.by_request.retain(|(at, _), serial| {
            let stays = *at != peer;
            if !stays {
                entries.remove(serial);
            }
            stays
        });
    }

    /// Ends what is past its deadline. A peer that does not take the bytes it gave credit for is
    /// disconnected, because the frames on their way to it are not ours until then.
    pub(crate) fn tick(&mut self, fabric: &mut dyn Fabric, outbox: &mut Outbox, now: Instant) {
        self.on_memory();
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
        Some(entry)
    }
}

fn fail(
    fabric: &mut dyn Fabric,
    outbox: &mut Outbox,
    peer: PeerId,
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
