//! Pages of Spark's memory: arrays of longs on Java's heap, or addresses outside it.

use crate::throw::{EntryResult, Failure};
use jni::objects::JLongArray;
use jni::sys::jlong;
use jni::Env;
use std::ffi::c_void;
use std::ptr;

/// Fails unless the array has `bytes` bytes from `at` on, or the array is null and the address `at`
/// is not.
pub fn check(
    env: &Env<'_>,
    what: &str,
    array: &JLongArray<'_>,
    at: jlong,
    bytes: usize,
) -> EntryResult<()> {
    let ends = usize::try_from(at)
        .ok()
        .and_then(|at| at.checked_add(bytes));
    let fits = match (ends, array.is_null()) {
        (Some(_), true) => at != 0,
        (Some(end), false) => end <= array.len(env)? * size_of::<jlong>(),
        (None, _) => false,
    };
    if fits {
        return Ok(());
    }
    Err(Failure::Argument(format!(
        "{what} has no {bytes} bytes at {at}"
    )))
}

/// The memory of a page. While one of an array exists, the thread must not wait, and may call no
/// JNI function except those that make and drop pages: the array cannot move, and garbage
/// collection waits for it. A call that has some takes some milliseconds at most.
pub enum Page<'a, 'local> {
    Array {
        env: &'a Env<'local>,
        array: &'a JLongArray<'local>,
        first: *mut c_void,
    },
    OffHeap,
}

impl<'a, 'local> Page<'a, 'local> {
    pub fn of(env: &'a Env<'local>, array: &'a JLongArray<'local>) -> EntryResult<Self> {
        if array.is_null() {
            return Ok(Self::OffHeap);
        }
        let raw = env.get_raw();
        // SAFETY: a valid environment of this thread and a reference to an array that is not null; the pointer is
        // given back in `drop`.
        let first = unsafe {
            ((**raw).v1_2.GetPrimitiveArrayCritical)(raw, array.as_raw(), ptr::null_mut())
        };
        if first.is_null() {
            return Err(Failure::State("no memory for an array's bytes".to_owned()));
        }
        Ok(Self::Array { env, array, first })
    }

    /// Returns the address of byte `at` of the array; without an array `at` is the address.
    pub fn at(&self, at: jlong) -> *mut u8 {
        match self {
            Self::Array { first, .. } => first.cast::<u8>().wrapping_add(at as usize),
            Self::OffHeap => at as usize as *mut u8,
        }
    }
}

impl Drop for Page<'_, '_> {
    fn drop(&mut self) {
        if let Self::Array { env, array, first } = self {
            let raw = env.get_raw();
            // SAFETY: `of` got `first` for this array on this thread; it is released once.
            unsafe {
                ((**raw).v1_2.ReleasePrimitiveArrayCritical)(raw, array.as_raw(), *first, 0);
            }
        }
    }
}
