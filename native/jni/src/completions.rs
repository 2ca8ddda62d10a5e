//! `Native.completions`: many records with one call.

use crate::outgoing::encoded_bytes;
use crate::throw::{EntryResult, Failure, TypedErrors};
use crate::{args, endpoints};
use jni::objects::{JByteBuffer, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::sync::atomic::Ordering;
use std::sync::PoisonError;

/// Completions taken from the endpoint at once.
const MAX_TAKEN: usize = 256;
/// Returned when the endpoint is closed and everything has been handed over.
const CLOSED: jint = -1;

/// `Native.completions`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_completions<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    queue: jint,
    records: JByteBuffer<'local>,
    timeout_millis: jlong,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        let held = endpoints::get(endpoint)?;
        let (address, capacity) = args::direct(env, "records", &records)?;
        let capacity = capacity.min(jint::MAX as usize);
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        let outgoing = held.outgoing.get(queue).ok_or_else(|| {
            let queues = held.outgoing.len();
            Failure::Argument(format!("queue {queue} of {queues}"))
        })?;
        let mut guard = outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let outgoing = &mut *guard;
        if outgoing.waiting.is_empty() {
            // Read before taking: completions that a closing endpoint delivers last are then taken too.
            let closed = held.ended.load(Ordering::Acquire);
            let timeout = args::wait(if closed { 0 } else { timeout_millis });
            held.endpoint
                .completions_of(queue, MAX_TAKEN, timeout, &mut outgoing.taken);
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
        // only user, the Java thread of this queue, waits in this call.
        unsafe { std::ptr::copy_nonoverlapping(outgoing.records.as_ptr(), address, bytes) };
        outgoing.records.clear();
        Ok(bytes as jint)
    })
    .resolve::<TypedErrors>()
}
