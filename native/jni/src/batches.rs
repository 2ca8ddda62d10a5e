//! What Java holds: batches (leases of delivered blocks) and pins (slabs it has buffers over).

use crate::endpoints;
use crate::registry::Registry;
use crate::throw::{Failure, Outcome, Typed};
use faro_endpoint::Piece;
use faro_pool::Slab;
use jni::objects::{JByteBuffer, JClass};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::sync::Arc;

/// Delivered and not yet released. A batch does not need its endpoint: leases keep their arena.
pub static BATCHES: Registry<Vec<Piece>> = Registry::new();

/// Slabs that Java can reach. Java lets go of a pin when its collector finds no buffer over the
/// slab any more, so no buffer ever outlives the mapping, whatever its user does.
static PINS: Registry<Arc<Slab>> = Registry::new();

/// `Native.releaseBatch`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_releaseBatch<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    batch: jlong,
) {
    env.with_env(|_| -> Outcome<()> {
        let handle = batch as u64;
        // The leases go back after the registry's lock is released.
        let pieces = BATCHES.remove(handle).ok_or(Failure::NotHeld {
            what: "batch",
            handle,
        })?;
        drop(pieces);
        Ok(())
    })
    .resolve::<Typed>();
}

/// `Native.pinSlab`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_pinSlab<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    index: jint,
) -> jlong {
    env.with_env(|_| -> Outcome<jlong> {
        let held = endpoints::get(endpoint)?;
        let slab = u32::try_from(index)
            .ok()
            .and_then(|index| held.endpoint.pool().slab(index))
            .ok_or_else(|| Failure::Argument(format!("no slab {index}")))?;
        Ok(PINS.insert(slab) as jlong)
    })
    .resolve::<Typed>()
}

/// `Native.slabBytes`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_slabBytes<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pin: jlong,
) -> JByteBuffer<'local> {
    env.with_env(|env| -> Outcome<JByteBuffer<'local>> {
        let slab = PINS.get(pin as u64).ok_or(Failure::NotHeld {
            what: "slab pin",
            handle: pin as u64,
        })?;
        // SAFETY: the slab is a mapping of `bytes()` bytes from `base()`. It stays mapped while the
        // pin's Arc lives, and Java keeps the pin until neither this buffer nor a view of it is
        // reachable (Slabs.java: a phantom reference to this buffer, which every view refers to).
        let buffer = unsafe { env.new_direct_byte_buffer(slab.base().as_ptr(), slab.bytes()) }?;
        Ok(buffer)
    })
    .resolve::<Typed>()
}

/// `Native.unpinSlab`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_unpinSlab<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    pin: jlong,
) {
    env.with_env(|_| -> Outcome<()> {
        let slab = PINS.remove(pin as u64).ok_or(Failure::NotHeld {
            what: "slab pin",
            handle: pin as u64,
        })?;
        drop(slab);
        Ok(())
    })
    .resolve::<Typed>();
}
