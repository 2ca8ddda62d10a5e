//! The bytes of a sealed connection: the same frames, in records (see `faro_secure`).
//!
//! ```text
//!   frames ──copied──▶ record ──sealed where it lies──▶ kernel      what it does not take waits in `unsent`
//!   kernel ──▶ records ──opened where they lie──▶ frames            a record whose end is missing waits in `partial`
//! ```
//! Sealing and opening take place in a buffer that all connections share, so a connection holds memory only while its
//! peer or the network is slow: at most one record each way.

use super::dispatch::Receiver;
use super::driver::TransportDriver;
use super::inbound::Inbound;
use super::kinds::FrameKind;
use super::reactor::Reactor;
use super::session::{Context, Phase};
use super::socket::Socket;
use super::turns::{received, Received, Turn};
use crate::{CloseReason, ConnectionId, FabricKind};
use faro_secure::{
    Keys, Opener, Protection, Sealer, HEADER_BYTES, OVERHEAD_BYTES, RECORD_BYTES, TAG_BYTES,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;

/// Bytes of the longest record.
const WHOLE_BYTES: usize = RECORD_BYTES + OVERHEAD_BYTES;
/// Bytes that are sealed, or received, in one go: one record. More of them leave the caches of a core before the kernel
/// has them, and gain nothing (`benches/throughput.rs`).
pub(crate) const BATCH_BYTES: usize = WHOLE_BYTES;

/// Whether the bytes of a fabric's connections go into records. Those of shared memory do not leave the host.
pub(crate) fn seals(fabric: FabricKind, protection: Protection) -> bool {
    match (protection, fabric) {
        (Protection::Clear, _) | (Protection::Sealed, FabricKind::Shm) => false,
        (Protection::Sealed, FabricKind::Tcp | FabricKind::Verbs) => true,
    }
}

/// One connection's keys and what could not be sent or opened yet.
pub(crate) struct Sealed {
    sealer: Sealer,
    opener: Opener,
    /// Sealed, and not taken by the kernel: from `sent` on.
    unsent: Vec<u8>,
    sent: usize,
    /// The front of a record.
    partial: Vec<u8>,
}

impl Sealed {
    pub(crate) fn new(keys: Keys) -> Self {
        Self {
            sealer: keys.sealer,
            opener: keys.opener,
            unsent: Vec::new(),
            sent: 0,
            partial: Vec::new(),
        }
    }

    /// Seals a record in its buffer, for a driver that sends it by itself.
    pub(crate) fn seal(&mut self, record: &mut [u8]) -> Result<(), CloseReason> {
        Ok(self.sealer.seal(record)?)
    }

    /// Opens a whole record where it lies, for a driver that received it by itself.
    pub(crate) fn open<'r>(&mut self, record: &'r mut [u8]) -> Result<&'r mut [u8], CloseReason> {
        Ok(self.opener.open(record)?)
    }

    /// Opens the whole records in `bytes` and passes their frames on; keeps the front of one whose end is missing.
    fn open_all<D: TransportDriver>(
        &mut self,
        mut bytes: &mut [u8],
        inbound: &mut Inbound<FrameKind<D::Kind>>,
        receiver: &mut Receiver<'_, D>,
    ) -> Result<(), CloseReason> {
        while let Some(header) = bytes.first_chunk() {
            let length = Opener::length(*header)?;
            if bytes.len() < length {
                break;
            }
            let (record, after) = bytes.split_at_mut(length);
            inbound.feed(self.opener.open(record)?, receiver)?;
            bytes = after;
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether the kernel has all that was sealed.
    pub(crate) fn is_sent(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Bytes of memory held.
    pub(crate) fn buffered(&self) -> usize {
        self.unsent.capacity() + self.partial.capacity()
    }

    /// Seals what is queued, up to a batch, behind what goes in the clear before it. Returns its bytes.
    fn fill(&mut self, cx: &mut Context<'_>, batch: &mut [u8]) -> Result<usize, CloseReason> {
        let in_clear = std::mem::take(&mut cx.session.in_clear);
        if in_clear > 0 {
            let bytes = cx.session.outbound.copy_into(&mut batch[..in_clear]);
            cx.sent(bytes);
            return Ok(bytes);
        }
        let mut filled = 0;
        while let Some(record) = batch.get_mut(filled..filled + WHOLE_BYTES) {
            let room = &mut record[HEADER_BYTES..WHOLE_BYTES - TAG_BYTES];
            let bytes = cx.session.outbound.copy_into(room);
            if bytes == 0 {
                break;
            }
            self.sealer.seal(&mut record[..bytes + OVERHEAD_BYTES])?;
            filled += bytes + OVERHEAD_BYTES;
            cx.sent(bytes);
        }
        Ok(filled)
    }
}

impl<D: TransportDriver> Reactor<D> {
    /// Seals and sends what a connection has queued, as far as the kernel takes it in one turn.
    pub(crate) fn send_records(&mut self, connection: ConnectionId) -> io::Result<()> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let Some(sealed) = &mut conn.sealed else {
            return Ok(());
        };
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let mut budget = cx.shared.bounds.turn_bytes;
        while conn.writable {
            if budget == 0 {
                cx.touch();
                return Ok(());
            }
            let filled = if sealed.is_sent() {
                sealed
                    .fill(&mut cx, &mut self.records)
                    .map_err(io::Error::other)?
            } else {
                0
            };
            let bytes = if filled > 0 {
                &self.records[..filled]
            } else {
                &sealed.unsent[sealed.sent..]
            };
            if bytes.is_empty() {
                return Ok(());
            }
            cx.shared.counters.send_calls += 1;
            let taken = match conn.socket.send(&[IoSlice::new(bytes)], None) {
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    keep(sealed, &self.records[..filled], 0);
                    continue;
                }
                Err(error) => return Err(error),
            };
            conn.writable = taken == bytes.len();
            cx.shared.counters.bytes_out += taken as u64;
            budget = budget.saturating_sub(taken);
            keep(sealed, &self.records[..filled], taken);
        }
        Ok(())
    }

    /// Opens the records of which the first bytes came behind the last frame in the clear.
    pub(crate) fn open_staged(
        &mut self,
        connection: ConnectionId,
        staged: Range<usize>,
    ) -> Result<(), CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let Some(sealed) = &mut conn.sealed else {
            return Ok(());
        };
        let mut receiver = Receiver {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            driver: &mut self.driver,
            state: &mut conn.state,
            opened: true,
        };
        let records = &mut self.records[..staged.len()];
        records.copy_from_slice(&self.staging[staged]);
        sealed.open_all(records, &mut conn.inbound, &mut receiver)
    }

    /// Receives from a sealed connection until it is drained or its turn is over.
    pub(crate) fn receive_records(
        &mut self,
        connection: ConnectionId,
    ) -> Result<Turn, CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(Turn::Drained);
        };
        let Some(sealed) = &mut conn.sealed else {
            return Ok(Turn::Drained);
        };
        let mut budget = self.shared.bounds.turn_bytes;
        let mut receiver = Receiver {
            cx: Context {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            driver: &mut self.driver,
            state: &mut conn.state,
            opened: true,
        };
        while budget > 0 {
            receiver.cx.shared.counters.receive_calls += 1;
            let held = sealed.partial.len();
            let offered = self.records.len() - held;
            let place = &mut self.records[held..];
            let result = conn.socket.receive(&mut [IoSliceMut::new(place)]);
            let bytes = match received(result)? {
                Received::Bytes(bytes) => bytes,
                Received::Again => continue,
                Received::Nothing => return Ok(Turn::Drained),
            };
            D::collect(&mut conn.socket, receiver.state)?;
            self.records[..held].copy_from_slice(&sealed.partial);
            // Its memory goes with it: an idle connection holds none.
            sealed.partial = Vec::new();
            receiver.cx.shared.counters.bytes_in += bytes as u64;
            budget = budget.saturating_sub(bytes);
            let received = &mut self.records[..held + bytes];
            sealed.open_all(received, &mut conn.inbound, &mut receiver)?;
            let work = std::mem::take(&mut receiver.cx.shared.work);
            budget = budget.saturating_sub(work);
            if D::Socket::SHORT_MEANS_DRAINED && bytes < offered && !conn.ending {
                return Ok(Turn::Drained);
            }
        }
        Ok(Turn::CutOff)
    }

    /// Whether what a connection sends goes into records.
    pub(crate) fn sends_records(&self, connection: ConnectionId) -> bool {
        self.conns
            .get(&connection.0)
            .is_some_and(|conn| match conn.session.phase {
                Phase::Pairing | Phase::Open => conn.sealed.is_some(),
                Phase::Connecting | Phase::Greeting | Phase::AwaitHello | Phase::AwaitProof => {
                    false
                }
            })
    }
}

/// The kernel took `taken` bytes: of `batch`, or of what waited before if that is empty. The rest waits.
fn keep(sealed: &mut Sealed, batch: &[u8], taken: usize) {
    if !batch.is_empty() {
        sealed.unsent.extend_from_slice(&batch[taken..]);
        sealed.sent = 0;
    } else {
        sealed.sent += taken;
        if sealed.sent == sealed.unsent.len() {
            // Its memory goes with it.
            sealed.unsent = Vec::new();
            sealed.sent = 0;
        }
    }
}
