//! What a turn gave, on its way to the reader.

use super::{fail, Owner};
use crate::outbox::{Outbox, Post};
use crate::owner::job::Filled;
use crate::owner::locate::Place;
use crate::owner::{Job, Turn};
use faro_fabric::{CloseReason, ConnectionId, Fabric, Message, RemoteRange, Write};
use faro_wire::kind;
use faro_wire::message::{DataWritten, FailureCode};

impl Owner {
    /// A turn came back.
    pub(crate) fn on_turn(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        job: Box<Job>,
        turn: Turn,
    ) {
        let serial = job.serial;
        // Gone: cancelled, past its deadline, or the connection closed.
        let Some(entry) = self.entries.get(&serial) else {
            return;
        };
        let (peer, request) = (entry.peer, entry.request);
        match turn {
            Turn::Cold => self.io.submit(job, &self.inbox),
            Turn::Broken { detail } => {
                self.remove(serial);
                fail(fabric, outbox, peer, request, FailureCode::Internal, detail);
            }
            Turn::ReadOffer { layout, places } => {
                self.located(fabric, outbox, job, layout, &places)
            }
            Turn::Staged {
                layout,
                filled,
                last,
                starved,
            } => {
                let chunks = self.write(fabric, outbox, serial, filled);
                let mut say = |kind, body| {
                    let id = request;
                    outbox.post(fabric, peer, Post::Message(Message { kind, id, body }));
                };
                if let Some(body) = layout {
                    say(kind::FETCH_RESPONSE, body);
                }
                if last || !chunks.is_empty() {
                    say(
                        kind::DATA_WRITTEN,
                        DataWritten {
                            buffers: chunks,
                            last,
                        }
                        .encode(),
                    );
                }
                self.staged(fabric, job, last, starved);
            }
        }
    }

    /// All of it is resident: the reader is told where, and the request is over for us. What cannot
    /// be shown is pushed.
    fn located(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        mut job: Box<Job>,
        layout: Vec<u8>,
        places: &[Place],
    ) {
        let serial = job.serial;
        let Some(entry) = self.entries.get(&serial) else {
            return;
        };
        let (peer, id) = (entry.peer, entry.request);
        let versions = self.memory.cache.versions();
        let shown = versions.and_then(|v| self.shown.show(fabric, peer, v, places));
        let Some(located) = shown else {
            job.push_instead(layout);
            return self.io.submit(job, &self.inbox);
        };
        for (kind, body) in [
            (kind::READ_OFFER, located.encode()),
            (kind::FETCH_RESPONSE, layout),
        ] {
            outbox.post(fabric, peer, Post::Message(Message { kind, id, body }));
        }
        self.counters.pulls_offered.add(1);
        self.served(fabric, &job);
        self.remove(serial);
    }

    /// Writes what a turn filled into the reader's memory; what it is to be told of it.
    fn write(
        &mut self,
        fabric: &mut dyn Fabric,
        outbox: &mut Outbox,
        serial: u64,
        filled: Vec<Filled>,
    ) -> Vec<faro_wire::message::WrittenBuffer> {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Vec::new();
        };
        let (peer, endpoint): (ConnectionId, _) = (entry.peer, entry.endpoint);
        entry.in_flight += filled.len();
        let count = filled.len();
        let mut chunks = Vec::with_capacity(count);
        for piece in filled {
            chunks.push(piece.chunk);
            let write = Write {
                token: serial,
                source: piece.lease,
                offset: 0,
                length: piece.chunk.length.get() as usize,
                target: RemoteRange {
                    key: piece.target.key.get(),
                    offset: piece.target.offset.get(),
                    length: piece.target.length.get(),
                },
                immediate: None,
                // A credit is filled once.
                last: true,
            };
            outbox.post(fabric, peer, Post::Write(write));
        }
        self.serving.posted(endpoint, count);
        chunks
    }

    /// The job is over, or comes home until there is more to do.
    fn staged(&mut self, fabric: &mut dyn Fabric, mut job: Box<Job>, last: bool, starved: bool) {
        let serial = job.serial;
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        let (peer, endpoint) = (entry.peer, entry.endpoint);
        if last {
            self.served(fabric, &job);
            self.keep_tail(serial);
            self.remove(serial);
            return;
        }
        let credits = std::mem::take(&mut entry.credits);
        let added = job.add_credits(credits);
        entry.starved = starved;
        entry.job = Some(job);
        entry.turn = false;
        match added {
            Ok(()) => self.advance(serial),
            Err(error) => fabric.disconnect(peer, CloseReason::Protocol(error)),
        }
        self.ended(endpoint, 1);
    }
}
