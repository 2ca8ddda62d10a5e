//! Sends the result of a turn to the client.

use super::job::{JobTurn, ServeJob};
use super::offer::ResidentSlice;
use super::remote_buffers::FilledBuffer;
use super::service::{fail, ServeService};
use crate::limits::{MAX_UNRESOLVED, MAX_UNRESOLVED_OF_PEER};
use crate::net::{EncodedMessage, Net};
use faro_fabric::{CloseReason, RemoteRange, Write};
use faro_sync::clock;
use faro_wire::message::{DataWritten, FailureCode, ToClient, WrittenBuffer};

impl ServeService {
    /// Handles the end of a turn.
    pub(super) fn on_turn(&mut self, net: &mut Net, job: Box<ServeJob>, turn: JobTurn) {
        let serial = job.serial;
        // Unknown: cancelled, past its deadline, or the connection has closed.
        let Some(entry) = self.entries.get(&serial) else {
            return;
        };
        let (connection, request, endpoint) = (entry.connection, entry.request, entry.endpoint);
        match turn {
            JobTurn::Cold => self.io.submit(job, &self.inbox),
            JobTurn::Busy => {
                self.remove(serial);
                let detail = format!(
                    "Java has not said where {MAX_UNRESOLVED_OF_PEER} map outputs are that this peer asked for, or \
                     {MAX_UNRESOLVED} of all peers"
                );
                self.refuse(net, connection, request, detail);
            }
            JobTurn::Broken { detail } => {
                self.remove(serial);
                fail(net, connection, request, FailureCode::Internal, detail);
            }
            JobTurn::Offered { response, slices } => self.offer(net, job, response, &slices),
            JobTurn::Filled {
                response,
                filled,
                last,
                starved,
            } => {
                let buffers = self.write(net, serial, filled);
                if let Some(response) = response {
                    net.send(connection, request, response);
                }
                if last || !buffers.is_empty() {
                    let written = DataWritten { buffers, last };
                    net.send(connection, request, ToClient::DataWritten(written));
                }
                match last {
                    true => {
                        self.count_served(net, &job);
                        self.drain(serial);
                    }
                    false => self.turned(net, job, starved),
                }
            }
        }
        // Memory that the turn did not use is free.
        self.has_room(endpoint);
    }

    /// Offers the client to read bytes that are all in the chunk cache; the client says when it
    /// needs nothing more. Bytes that cannot be exposed are written.
    fn offer(
        &mut self,
        net: &mut Net,
        mut job: Box<ServeJob>,
        response: EncodedMessage,
        slices: &[ResidentSlice],
    ) {
        let serial = job.serial;
        let Some(entry) = self.entries.get(&serial) else {
            return;
        };
        let (connection, id, endpoint) = (entry.connection, entry.request, entry.endpoint);
        let versions = self.memory.cache.versions();
        let offer = versions.and_then(|v| self.exposed.offer(net, connection, v, slices));
        let Some(offer) = offer else {
            job.write_instead(response);
            return self.io.submit(job, &self.inbox);
        };
        net.send(connection, id, ToClient::ReadOffer(offer));
        net.send(connection, id, response);
        self.counters.pulls_offered.add(1);
        self.count_served(net, &job);
        if let Some(entry) = self.entries.get_mut(&serial) {
            entry.progress(clock::now());
            entry.stage.on_offer();
        }
        self.ended(endpoint, 1);
    }

    /// Writes what a turn filled into the client's memory. Returns the list for `DATA_WRITTEN`.
    fn write(
        &mut self,
        net: &mut Net,
        serial: u64,
        filled: Vec<FilledBuffer>,
    ) -> Vec<WrittenBuffer> {
        let Some(entry) = self.entries.get_mut(&serial) else {
            return Vec::new();
        };
        let (connection, count) = (entry.connection, filled.len());
        entry.writes += count;
        let mut buffers = Vec::with_capacity(count);
        for buffer in filled {
            buffers.push(buffer.written);
            let write = Write {
                token: serial,
                source: buffer.lease,
                offset: 0,
                length: buffer.written.length.get() as usize,
                target: RemoteRange {
                    key: buffer.target.key.get(),
                    offset: buffer.target.offset.get(),
                    length: buffer.target.length.get(),
                },
                immediate: None,
                // A buffer is filled once.
                last: true,
            };
            net.write(connection, write);
        }
        self.schedule.posted(entry.endpoint, count);
        buffers
    }

    /// Handles a turn that ended with more to do.
    fn turned(&mut self, net: &mut Net, job: Box<ServeJob>, starved: bool) {
        let serial = job.serial;
        let Some(entry) = self.entries.get_mut(&serial) else {
            return;
        };
        let (connection, endpoint) = (entry.connection, entry.endpoint);
        let Some(kept) = entry.stage.on_turn(job, starved) else {
            return;
        };
        let added = match entry.stage.on_buffers(kept) {
            super::stage::Buffers::Job(job, buffers) => job.add_buffers(buffers),
            super::stage::Buffers::Kept(_) | super::stage::Buffers::NotNeeded => Ok(()),
        };
        match added {
            // It keeps its permit while it waits for memory.
            Ok(()) if starved => return self.starved.push(endpoint, serial),
            Ok(()) => self.advance(serial),
            Err(error) => net.disconnect(connection, CloseReason::Protocol(error)),
        }
        self.ended(endpoint, 1);
    }

    fn count_served(&self, net: &Net, job: &ServeJob) {
        let counters = self.counters.fabric(net.kind());
        counters.served_blocks.add(job.served.blocks);
        counters.served_bytes.add(job.served.bytes);
        self.counters.blocks_refused.add(job.served.refused);
    }
}
