//! Arguments from Java, checked before they are used.

use crate::throw::{EntryResult, Failure};
use jni::objects::{JByteBuffer, JString};
use jni::sys::jlong;
use jni::Env;
use std::time::Duration;

/// Longest wait in one call, so that a Java thread can check for its own end.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Returns a Java string; null is an error that names the argument.
pub fn text(env: &Env<'_>, what: &'static str, value: &JString<'_>) -> EntryResult<String> {
    if value.is_null() {
        return Err(Failure::Argument(format!("{what} is null")));
    }
    Ok(value.try_to_string(env)?)
}

/// Milliseconds; below 0 counts as 0.
pub fn millis(value: jlong) -> Duration {
    Duration::from_millis(value.max(0) as u64)
}

/// Returns the time to wait, at most [`MAX_WAIT`].
pub fn wait(value: jlong) -> Duration {
    millis(value).min(MAX_WAIT)
}

/// Returns the first byte and the capacity of a direct buffer; a heap buffer is an error.
pub fn direct(
    env: &Env<'_>,
    what: &'static str,
    buffer: &JByteBuffer<'_>,
) -> EntryResult<(*mut u8, usize)> {
    let not_direct = || Failure::Argument(format!("{what} is not a direct buffer"));
    if buffer.is_null() {
        return Err(Failure::Argument(format!("{what} is null")));
    }
    let address = env
        .get_direct_buffer_address(buffer)
        .map_err(|_| not_direct())?;
    let capacity = env
        .get_direct_buffer_capacity(buffer)
        .map_err(|_| not_direct())?;
    if address.is_null() {
        return Err(not_direct());
    }
    Ok((address, capacity))
}
