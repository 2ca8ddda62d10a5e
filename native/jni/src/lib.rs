//! `libfaro_jni.so`: the JNI side of `io.faro.Native` and `io.faro.collective.TeamNative`, and nothing
//! more.
//!
//! ```text
//!  Java thread --- Native.x(handle, ..) ---> entry point --- registry: handle -> Arc ---> Endpoint
//!                                               |  error or panic
//!  Java thread <-- typed exception -------- throw.rs
//! ```
//! - **Handles** are slot numbers with a generation, never addresses (`registry`): a stale or
//!   invented handle is an exception, and a call that is under way keeps what it uses alive, so
//!   that Java may free a handle at any time.
//! - **Panics** end in `throw`, as `EndpointException.NativeFault` with the panic's own text and
//!   place. None crosses into the JVM.
//! - **Threads**: only Java threads run code of this crate that touches the JVM. Native threads log
//!   into a bounded queue (`log_queue`) that a Java thread empties.
//! - **Memory** that Java sees is a slab's. A batch keeps the leases of its blocks; a pin keeps a
//!   slab mapped for as long as Java can reach a buffer over it (`batches`). Java may lease memory
//!   of its own as well (`buffers`).

mod args;
mod batches;
mod buffers;
mod collective;
mod completions;
mod endpoints;
mod log_queue;
mod logging;
mod record;
#[cfg(test)]
mod record_test;
mod registry;
mod resolver;
mod settings;
mod throw;

use jni::objects::{JClass, JString};
use jni::EnvUnowned;

/// `Native.version`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_version<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
) -> JString<'local> {
    env.with_env(|env| throw::Outcome::Ok(JString::new(env, env!("CARGO_PKG_VERSION"))?))
        .resolve::<throw::Typed>()
}
