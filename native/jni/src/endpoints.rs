//! Endpoints by handle: start, peers, fetches, counters, close.

use crate::args;
use crate::memory;
use crate::outgoing::Outgoing;
use crate::registry::Registry;
use crate::settings;
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_endpoint::{rdma_port_counters, Config, Endpoint, SharedSecret, MAX_COMPLETION_QUEUES};
use faro_wire::block::BLOCK_ID_BYTES;
use faro_wire::message::MAX_BLOCKS;
use faro_wire::BlockId;
use jni::objects::{JByteArray, JByteBuffer, JClass, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An endpoint, and the completions that its caller has not taken yet.
pub struct HeldEndpoint {
    pub endpoint: Arc<Endpoint>,
    /// Time for which a fetch may make no progress unless it has a timeout of its own.
    request_timeout: Duration,
    /// One for each queue of completions; each queue has one caller.
    pub outgoing: Vec<Mutex<Outgoing>>,
    /// `close` has returned: there are no new completions, so an empty answer is the last one.
    pub ended: AtomicBool,
}

static ENDPOINTS: Registry<Arc<HeldEndpoint>> = Registry::new();

/// Returns the endpoint of a handle; the caller keeps it alive.
pub fn get(handle: jlong) -> EntryResult<Arc<HeldEndpoint>> {
    ENDPOINTS
        .get(handle as u64)
        .ok_or(Failure::NoEndpoint(handle as u64))
}

/// Starts an endpoint with so many queues of completions, and returns its handle.
pub fn open(config: Config, queues: usize) -> EntryResult<jlong> {
    let request_timeout = config.request_timeout;
    let endpoint = Endpoint::start(config)?;
    endpoint.split_completions(queues);
    Ok(ENDPOINTS.insert(Arc::new(HeldEndpoint {
        endpoint,
        request_timeout,
        outgoing: (0..queues).map(|_| Mutex::default()).collect(),
        ended: AtomicBool::new(false),
    })) as jlong)
}

/// Stops an endpoint. Its handle stays valid until it is freed.
pub fn close(handle: jlong) -> EntryResult<()> {
    let held = get(handle)?;
    held.endpoint.close();
    held.ended.store(true, Ordering::Release);
    Ok(())
}

/// Ends the handle of an endpoint.
pub fn free(handle: jlong) -> EntryResult<()> {
    let held = ENDPOINTS.remove(handle as u64);
    held.map(drop).ok_or(Failure::NoEndpoint(handle as u64))
}

/// Implements `Native.start`. A null `secret` means that Spark does not authenticate; `queues` is
/// the number of completion queues.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_start<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    settings: JString<'local>,
    secret: JByteArray<'local>,
    queues: jint,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let queues = usize::try_from(queues).unwrap_or(0);
        if !(1..=MAX_COMPLETION_QUEUES).contains(&queues) {
            return Err(Failure::Argument(format!("{queues} queues of completions")));
        }
        let mut config = settings::parse(&args::text(env, "settings", &settings)?)?;
        config.security.secret = shared_secret(env, &secret)?;
        open(config, queues)
    })
    .resolve::<TypedErrors>()
}

/// Takes over a copy of the bytes, which is wiped with its last owner. Java wipes its array.
fn shared_secret(env: &Env<'_>, bytes: &JByteArray<'_>) -> EntryResult<Option<SharedSecret>> {
    if bytes.is_null() {
        return Ok(None);
    }
    match env.convert_byte_array(bytes)? {
        bytes if bytes.is_empty() => Err(Failure::Argument("secret is empty".to_owned())),
        bytes => Ok(Some(SharedSecret::new(bytes))),
    }
}

/// `Native.card`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_card<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> EntryResult<JByteArray<'local>> {
        let card = get(endpoint)?.endpoint.card();
        Ok(env.byte_array_from_slice(&card)?)
    })
    .resolve::<TypedErrors>()
}

/// `Native.addPeer`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_addPeer<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    card: JByteArray<'local>,
    known_at: JString<'local>,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        if card.is_null() {
            return Err(Failure::Argument("card is null".to_owned()));
        }
        let held = get(endpoint)?;
        let card = env.convert_byte_array(&card)?;
        let known_at = addresses(&args::text(env, "addresses", &known_at)?)?;
        Ok(held.endpoint.add_peer_at(&card, &known_at)? as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Parses IP addresses, one per line.
fn addresses(text: &str) -> EntryResult<Vec<IpAddr>> {
    let address = |line: &str| {
        let bad = |_| Failure::Argument(format!("'{line}' is not an IPv4 or IPv6 address"));
        line.parse().map_err(bad)
    };
    text.lines().map(address).collect()
}

/// `Native.fetch`; a timeout of 0 is the endpoint's own. `verifies`: the reader verifies the blocks.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_fetch<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    peer: jlong,
    blocks: JByteBuffer<'local>,
    count: jint,
    timeout_millis: jlong,
    verifies: jboolean,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let held = get(endpoint)?;
        let (address, capacity) = args::direct(env, "blocks", &blocks)?;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= MAX_BLOCKS as usize && count * BLOCK_ID_BYTES <= capacity)
            .ok_or_else(|| {
                Failure::Argument(format!("{count} blocks in a buffer of {capacity} bytes"))
            })?;
        // SAFETY: `count` ids lie within the direct buffer's capacity (just checked); BlockId is
        // unaligned plain bytes; Java's Endpoint.fetch keeps the buffer reachable and unwritten
        // during this call, and nothing keeps the slice after it.
        let ids = unsafe { std::slice::from_raw_parts(address.cast::<BlockId>(), count) };
        let timeout = match timeout_millis {
            0 => held.request_timeout,
            millis => args::millis(millis),
        };
        let (endpoint, peer) = (&held.endpoint, peer as u64);
        let request = match verifies {
            true => endpoint.fetch_to_verify(peer, ids, timeout)?,
            false => endpoint.fetch(peer, ids, timeout)?,
        };
        Ok(request as jlong)
    })
    .resolve::<TypedErrors>()
}

/// `Native.isBackedOff`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_isBackedOff<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    peer: jlong,
) -> jboolean {
    env.with_env(|_| -> EntryResult<jboolean> {
        Ok(get(endpoint)?.endpoint.is_backed_off(peer as u64))
    })
    .resolve::<TypedErrors>()
}

/// `Native.blame`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_blame<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    peer: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        get(endpoint)?.endpoint.blame(peer as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.cancel`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_cancel<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    request: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        get(endpoint)?.endpoint.cancel(request as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.forgetShuffle`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_forgetShuffle<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
) {
    env.with_env(|_| -> EntryResult<()> {
        get(endpoint)?.endpoint.forget_shuffle(shuffle as u32);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.counters`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_counters<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> JString<'local> {
    env.with_env(|env| -> EntryResult<JString<'local>> {
        let mut text = String::new();
        for (name, value) in get(endpoint)?.endpoint.counters() {
            text.push_str(&format!("{name}={value}\n"));
        }
        for (name, value) in memory::counters().into_iter().chain(rdma_port_counters()) {
            text.push_str(&format!("{name}={value}\n"));
        }
        Ok(JString::new(env, text)?)
    })
    .resolve::<TypedErrors>()
}

/// `Native.close`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_close<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) {
    env.with_env(|_| close(endpoint)).resolve::<TypedErrors>();
}

/// `Native.free`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_free<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) {
    env.with_env(|_| free(endpoint)).resolve::<TypedErrors>();
}
