//! Decoders that no reader uses, for the next one.
//!
//! A reader ends with its task, but another thread of the task (Spark's writer of a Python worker) may
//! still look at a row. So a decoder's memory is not unmapped then: it goes to the next reader, or is
//! freed some seconds later.

use super::session::Session;
use crate::registry::lock;
use crate::throw::{Failure, Outcome};
use faro_rows::{Codec, RowDecoder};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Bytes of a batch: with the decoder's other buffers it stays in a core's second cache.
const BATCH_BYTES: usize = 64 << 10;
/// Idle decoders that are kept, each of a few batches.
const KEPT: usize = 64;
/// How long those beyond that are kept.
const GRACE: Duration = Duration::from_secs(10);

static IDLE: Mutex<VecDeque<(Instant, Session)>> = Mutex::new(VecDeque::new());

/// An idle decoder of the codec, or a new one.
pub fn take(codec: Codec) -> Outcome<Session> {
    let mut idle = lock(&IDLE);
    // The newest: its memory is most likely in the caches.
    let found = idle.iter().rposition(|(_, one)| one.codec() == codec);
    if let Some((_, session)) = found.and_then(|at| idle.remove(at)) {
        return Ok(session);
    }
    drop(idle);
    let decoder = RowDecoder::new(codec, BATCH_BYTES);
    let decoder = decoder.map_err(|error| Failure::State(error.to_string()))?;
    Ok(Session::new(codec, decoder))
}

/// Keeps a decoder for the next reader.
pub fn put(mut session: Session) {
    session.reset();
    let mut idle = lock(&IDLE);
    let now = Instant::now();
    idle.push_back((now, session));
    while idle.len() > KEPT
        && idle
            .front()
            .is_some_and(|(since, _)| now.saturating_duration_since(*since) > GRACE)
    {
        idle.pop_front();
    }
}
