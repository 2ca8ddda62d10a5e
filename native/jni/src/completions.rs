//! Completions become records in Java's direct buffer, many with one call.
//!
//! A record is never split. Records that do not fit wait here for the next call. If a record is
//! larger than the whole buffer, Java gets its size and calls again with a larger buffer, so neither
//! side needs a bound for the size of a record.

use crate::batches::BATCHES;
use crate::record::{BufferSlice, Record, BLOCK_ENTRY_BYTES, RECORD_HEAD_BYTES, SLICE_BYTES};
use crate::throw::{Failure, Outcome, Typed};
use crate::{args, endpoints};
use faro_endpoint::Completion;
use jni::objects::{JByteBuffer, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::PoisonError;

/// Completions taken from the endpoint at once.
const MAX_TAKEN: usize = 256;
/// Returned when the endpoint is closed and everything has been handed over.
const CLOSED: jint = -1;

/// The completions between an endpoint and its one caller of `completions`.
#[derive(Default)]
pub struct Outgoing {
    /// Taken from the endpoint, not yet written; in order.
    waiting: VecDeque<Completion>,
    /// For `Endpoint::completions`; empty between calls, kept for its capacity.
    taken: Vec<Completion>,
    /// Encoded records of one call; empty between calls, kept for its capacity.
    records: Vec<u8>,
    /// One record's slices; empty between records, kept for its capacity.
    slices: Vec<BufferSlice>,
}

/// Bytes that `Record::encode` will write for a completion.
fn encoded_bytes(completion: &Completion) -> usize {
    RECORD_HEAD_BYTES
        + match &completion.outcome {
            Ok(delivery) => {
                delivery.slices.len() * SLICE_BYTES + delivery.blocks.len() * BLOCK_ENTRY_BYTES
            }
            Err(failure) => failure.detail.len().next_multiple_of(8),
        }
}

impl Outgoing {
    /// Encodes the records that fit into `capacity` bytes. Java owns their batches from now on.
    fn encode(&mut self, capacity: usize) {
        while let Some(completion) = self.waiting.pop_front() {
            if self.records.len() + encoded_bytes(&completion) > capacity {
                self.waiting.push_front(completion);
                return;
            }
            self.encode_one(completion);
        }
    }

    fn encode_one(&mut self, completion: Completion) {
        let (error, blocks, detail, pieces) = match completion.outcome {
            Ok(delivery) => (None, delivery.blocks, String::new(), delivery.slices),
            Err(failure) => (Some(failure.code), Vec::new(), failure.detail, Vec::new()),
        };
        self.slices.clear();
        self.slices.extend(pieces.iter().map(|piece| BufferSlice {
            slab: piece.lease.slab(),
            offset: piece.lease.offset() + piece.offset,
            length: piece.length,
        }));
        let batch = if pieces.is_empty() {
            0
        } else {
            BATCHES.insert(pieces)
        };
        Record {
            error,
            request: completion.request,
            first_block: completion.first_block,
            block_count: completion.block_count,
            batch,
            fabric: completion.fabric,
            last: completion.last,
            slices: &self.slices,
            blocks: &blocks,
            detail: &detail,
        }
        .encode(&mut self.records);
    }
}

/// `Native.completions`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_completions<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    records: JByteBuffer<'local>,
    timeout_millis: jlong,
) -> jint {
    env.with_env(|env| -> Outcome<jint> {
        let held = endpoints::get(endpoint)?;
        let (address, capacity) = args::direct(env, "records", &records)?;
        let capacity = capacity.min(jint::MAX as usize);
        let mut guard = held.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let outgoing = &mut *guard;
        if outgoing.waiting.is_empty() {
            // Read before taking: completions that a closing endpoint delivers last are then taken too.
            let closed = held.ended.load(Ordering::Acquire);
            let timeout = args::wait(if closed { 0 } else { timeout_millis });
            held.endpoint
                .completions(MAX_TAKEN, timeout, &mut outgoing.taken);
            outgoing.waiting.extend(outgoing.taken.drain(..));
            if outgoing.waiting.is_empty() {
                return Ok(if closed { CLOSED } else { 0 });
            }
        }
        outgoing.records.clear();
        outgoing.encode(capacity);
        let bytes = outgoing.records.len();
        if bytes == 0 {
            let needed = outgoing.waiting.front().map_or(0, encoded_bytes);
            return jint::try_from(needed).map(|needed| -needed).map_err(|_| {
                Failure::Argument(format!("a record of {needed} bytes fits no buffer"))
            });
        }
        // SAFETY: `bytes <= capacity` (encode stops there), the direct buffer has that many, and its
        // only user, Java's completions thread, waits in this call.
        unsafe { std::ptr::copy_nonoverlapping(outgoing.records.as_ptr(), address, bytes) };
        outgoing.records.clear();
        Ok(bytes as jint)
    })
    .resolve::<Typed>()
}
