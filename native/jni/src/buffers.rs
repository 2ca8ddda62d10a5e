//! Registered buffers: leases of the arena for Java.

use crate::registry::Registry;
use crate::throw::{EntryResult, Failure, TypedErrors};
use crate::{args, endpoints};
use faro_endpoint::EndpointError;
use faro_pool::{Lease, PoolError, Purpose};
use jni::objects::{JClass, JIntArray};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Java gets the position of a buffer as three ints: slab, offset, capacity.
const POSITION_INTS: usize = 3;

/// Leases that are not yet released. A lease keeps its arena, so it may outlive its endpoint.
static LEASES: Registry<Lease> = Registry::new();

/// `Native.acquireBuffer`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_acquireBuffer<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    bytes: jint,
    timeout_millis: jlong,
    position: JIntArray<'local>,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        if position.is_null() || position.len(env)? < POSITION_INTS {
            return Err(Failure::Argument(format!(
                "position has fewer than {POSITION_INTS} ints"
            )));
        }
        let held = endpoints::get(endpoint)?;
        if held.ended.load(Ordering::Acquire) {
            return Err(EndpointError::Closed.into());
        }
        let size = usize::try_from(bytes).unwrap_or(0);
        let deadline = Instant::now() + args::wait(timeout_millis);
        let lease = match held
            .endpoint
            .pool()
            .lease_before(size, Purpose::Read, deadline)
        {
            // The text has Java's number, which may be negative.
            Err(PoolError::BadSize { max, .. }) => {
                return Err(Failure::Argument(format!(
                    "a buffer of {bytes} bytes, allowed: 1 to {max} bytes"
                )));
            }
            result => result.map_err(EndpointError::Pool)?,
        };
        // Each is below 2^31: a slab has 2^24 bytes, and there are at most 2^16 slabs.
        let ints = [
            lease.slab() as jint,
            lease.offset() as jint,
            lease.capacity() as jint,
        ];
        position.set_region(env, 0, &ints)?;
        Ok(LEASES.insert(lease) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// `Native.releaseBuffer`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_releaseBuffer<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    buffer: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        let handle = buffer as u64;
        // The lease is dropped after the registry's lock is released.
        let lease = LEASES.remove(handle).ok_or(Failure::NotHeld {
            what: "registered buffer",
            handle,
        })?;
        drop(lease);
        Ok(())
    })
    .resolve::<TypedErrors>();
}
