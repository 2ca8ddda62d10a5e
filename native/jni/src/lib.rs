//! `libfaro_jni.so`: the JNI side of `io.faro.Native`, `io.faro.collective.TeamNative`,
//! `io.faro.rows.RowsNative`, `io.faro.sort.SortNative` and `io.faro.service.ServiceNative`.
//!
//! ```text
//!  Java thread --- Native.x(handle, ..) ---> entry point --- registry: handle -> Arc ---> Endpoint
//!                                               |  error or panic
//!  Java thread <-- typed exception -------- throw.rs
//! ```
//! - **Handles** are keys with a generation, never addresses (`registry`): a stale or unknown handle
//!   is an exception. A running call keeps the objects that it uses, so Java may free a handle at
//!   any time.
//! - **Panics** do not cross into the JVM: `throw` turns them into `EndpointException.NativeFault`
//!   with the panic's text and place.
//! - **Threads**: only Java threads run code of this crate that uses the JVM. Native threads log into
//!   a bounded queue (`log_queue`), which a Java thread empties.
//! - **Settings** of an endpoint cross as one text (`settings`).
//! - **Memory**: Java has buffers over slabs. A batch keeps the leases of its blocks, and a reference
//!   keeps a slab mapped while Java can reach a buffer over it (`batches`). Java can lease memory
//!   itself (`buffers`).

mod args;
mod batches;
mod buffers;
mod collective;
mod completions;
mod endpoints;
mod keys;
mod log_queue;
mod logging;
mod memory;
mod outgoing;
mod pages;
mod record;
#[cfg(test)]
mod record_test;
mod registry;
mod resolver;
mod rows;
mod service;
mod settings;
mod sort;
mod staged;
mod throw;

use jni::objects::{JClass, JString};
use jni::EnvUnowned;

/// `Native.version`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_version<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JString<'local> {
    env.with_env(|env| throw::EntryResult::Ok(JString::new(env, env!("CARGO_PKG_VERSION"))?))
        .resolve::<throw::TypedErrors>()
}
