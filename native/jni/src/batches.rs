//! Memory that Java holds: batches (leases of delivered blocks) and references to slabs.

use crate::endpoints;
use crate::outgoing::BATCHES;
use crate::registry::Registry;
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_pool::Slab;
use jni::objects::{JByteBuffer, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::sync::Arc;

/// Slabs with buffers in Java. Java releases a reference when its garbage collector finds the buffer
/// and its views unreachable, so no buffer outlives the mapping.
static SLABS: Registry<Arc<Slab>> = Registry::new();

/// `Native.releaseSlices`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_releaseSlices<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    batch: jlong,
    first: jint,
    count: jint,
) {
    env.with_env(|_| -> EntryResult<()> {
        let handle = batch as u64;
        let (first, count) = (usize::try_from(first).ok(), usize::try_from(count).ok());
        let taken = BATCHES.change(handle, |batch| {
            let taken = first.zip(count).and_then(|(f, c)| batch.take(f, c));
            (taken, batch.is_empty())
        });
        // The leases go back after the registry's lock is released.
        let slices = taken.flatten().ok_or(Failure::NotHeld {
            what: "batch",
            handle,
        })?;
        drop(slices);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.referenceSlab`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_referenceSlab<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    index: jint,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let held = endpoints::get(endpoint)?;
        let slab = u32::try_from(index)
            .ok()
            .and_then(|index| held.endpoint.pool().slab(index))
            .ok_or_else(|| Failure::Argument(format!("no slab {index}")))?;
        Ok(SLABS.insert(slab) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// `Native.slabBytes`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_slabBytes<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    slab: jlong,
) -> JByteBuffer<'local> {
    env.with_env(|env| -> EntryResult<JByteBuffer<'local>> {
        let mapped = SLABS.get(slab as u64).ok_or(Failure::NotHeld {
            what: "slab reference",
            handle: slab as u64,
        })?;
        // SAFETY: the slab is a mapping of `bytes()` bytes from `base()`. It stays mapped while the
        // Arc in `SLABS` lives, and Java releases that only when neither this buffer nor a view of it
        // is reachable (Slabs.java: a phantom reference to this buffer, which every view refers to).
        let buffer = unsafe { env.new_direct_byte_buffer(mapped.base().as_ptr(), mapped.bytes()) }?;
        Ok(buffer)
    })
    .resolve::<TypedErrors>()
}

/// `Native.releaseSlab`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_releaseSlab<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    slab: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        let removed = SLABS.remove(slab as u64).ok_or(Failure::NotHeld {
            what: "slab reference",
            handle: slab as u64,
        })?;
        drop(removed);
        Ok(())
    })
    .resolve::<TypedErrors>();
}
