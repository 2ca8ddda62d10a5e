//! This executor's connection to the node service of its host, and the driver's words to services of other hosts.

use crate::registry::Registry;
use crate::throw::{EntryResult, Failure, TypedErrors};
use crate::{args, endpoints};
use faro_service::{order, tell, ApplicationMember, Client, Hello, Token, MAX_SHUFFLES};
use faro_wire::OutputId;
use jni::objects::{
    JBooleanArray, JByteArray, JClass, JIntArray, JLongArray, JObjectArray, JString,
};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

static CLIENTS: Registry<Arc<Client>> = Registry::new();

fn client(handle: jlong) -> EntryResult<Arc<Client>> {
    CLIENTS.get(handle as u64).ok_or(Failure::NotHeld {
        what: "connection to a service",
        handle: handle as u64,
    })
}

/// Returns a copy that is wiped; null is empty. Java wipes its array.
fn secret_bytes(env: &Env<'_>, bytes: &JByteArray<'_>) -> EntryResult<Zeroizing<Vec<u8>>> {
    if bytes.is_null() {
        return Ok(Zeroizing::default());
    }
    Ok(Zeroizing::new(env.convert_byte_array(bytes)?))
}

/// `ServiceNative.connect`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_connect<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    directory: JString<'local>,
    application: JString<'local>,
    executor: JString<'local>,
    sealed: jboolean,
    token: JByteArray<'local>,
    secret: JByteArray<'local>,
    timeout_millis: jlong,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let directory = PathBuf::from(args::text(env, "directory", &directory)?);
        let token = secret_bytes(env, &token)?;
        let got = token.len();
        let bytes = token
            .as_slice()
            .try_into()
            .map_err(|_| Failure::Argument(format!("a token of {got} bytes, 32 are one")))?;
        let hello = Hello {
            application: args::text(env, "application", &application)?,
            executor: args::text(env, "executor", &executor)?,
            sealed,
            token: Token::new(bytes),
            secret: secret_bytes(env, &secret)?,
        };
        let client = Client::connect(&directory, hello, args::wait(timeout_millis))?;
        Ok(CLIENTS.insert(Arc::new(client)) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// `ServiceNative.card`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_card<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> EntryResult<JByteArray<'local>> {
        Ok(env.byte_array_from_slice(client(handle)?.card())?)
    })
    .resolve::<TypedErrors>()
}

/// `ServiceNative.isConnected`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_isConnected<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jboolean {
    env.with_env(|_| -> EntryResult<jboolean> {
        Ok(CLIENTS
            .get(handle as u64)
            .is_some_and(|client| client.is_connected()))
    })
    .resolve::<TypedErrors>()
}

/// `ServiceNative.handOver`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_handOver<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    shuffle: jint,
    map: jlong,
    data: JString<'local>,
    index: JString<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        let id = OutputId {
            shuffle_id: shuffle as u32,
            map_id: map,
        };
        let data = PathBuf::from(args::text(env, "data path", &data)?);
        let index = PathBuf::from(args::text(env, "index path", &index)?);
        Ok(client(handle)?.hand_over(id, &index, &data)?)
    })
    .resolve::<TypedErrors>();
}

/// `ServiceNative.borrow`. `readable` has as many elements as `maps`, or more.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_borrow<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    endpoint: jlong,
    shuffle: jint,
    maps: JLongArray<'local>,
    readable: JBooleanArray<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        if maps.is_null() || readable.is_null() {
            return Err(Failure::Argument("maps or readable is null".to_owned()));
        }
        let endpoint = &endpoints::get(endpoint)?.endpoint;
        let mut ids = vec![0; maps.len(env)?];
        maps.get_region(env, 0, &mut ids)?;
        let is: Vec<jboolean> = client(handle)?.borrow(endpoint, shuffle as u32, &ids)?;
        Ok(readable.set_region(env, 0, &is)?)
    })
    .resolve::<TypedErrors>();
}

/// `ServiceNative.forget`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_forget<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    shuffle: jint,
) {
    env.with_env(|_| -> EntryResult<()> { Ok(client(handle)?.forget(shuffle as u32)?) })
        .resolve::<TypedErrors>();
}

/// `ServiceNative.host`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_host<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    replicas: jint,
    at: jint,
    of: jint,
    card: JByteArray<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        let replicas = u8::try_from(replicas)
            .map_err(|_| Failure::Argument(format!("{replicas} replicas, 0 to 3 are allowed")))?;
        let card = env.convert_byte_array(&card)?;
        Ok(client(handle)?.host(replicas, at as u32, of as u32, &card)?)
    })
    .resolve::<TypedErrors>();
}

/// `ServiceNative.behind`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_behind<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> { Ok(client(handle)?.behind()? as jlong) })
        .resolve::<TypedErrors>()
}

/// `ServiceNative.end`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_end<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> { Ok(client(handle)?.end()?) })
        .resolve::<TypedErrors>();
}

/// `ServiceNative.tell`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_tell<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    application: JString<'local>,
    sealed: jboolean,
    secret: JByteArray<'local>,
    cards: JObjectArray<'local, JByteArray<'local>>,
    removed: JIntArray<'local>,
    ended: jboolean,
    timeout_millis: jlong,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        let member = ApplicationMember {
            application: args::text(env, "application", &application)?,
            sealed,
            secret: secret_bytes(env, &secret)?,
        };
        let got = removed.len(env)?;
        if got > MAX_SHUFFLES {
            return Err(Failure::Argument(format!(
                "{got} shuffles at once, up to {MAX_SHUFFLES} are allowed"
            )));
        }
        let mut shuffles = vec![0; got];
        removed.get_region(env, 0, &mut shuffles)?;
        let shuffles: Vec<u32> = shuffles.into_iter().map(|one| one as u32).collect();
        let mut all = Vec::new();
        for at in 0..cards.len(env)? {
            let card = cards.get_element(env, at)?;
            if card.is_null() {
                return Err(Failure::Argument(format!("card {at} is null")));
            }
            all.push(env.convert_byte_array(&card)?);
            // Java frees local references when the call returns; a large application has many.
            env.delete_local_ref(card);
        }
        let wait = args::wait(timeout_millis);
        Ok(tell(&member, &all, &shuffles, ended, wait)? as jint)
    })
    .resolve::<TypedErrors>()
}

/// `ServiceNative.placement`.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_placement<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    hosts: JIntArray<'local>,
    source: jint,
    shuffle: jint,
    map: jlong,
    max: jint,
) -> JIntArray<'local> {
    env.with_env(|env| -> EntryResult<JIntArray<'local>> {
        if hosts.is_null() {
            return Err(Failure::Argument("hosts is null".to_owned()));
        }
        let mut places = vec![0; hosts.len(env)?];
        hosts.get_region(env, 0, &mut places)?;
        let id = OutputId {
            shuffle_id: shuffle as u32,
            map_id: map,
        };
        let hosts = places.into_iter().map(|host| host as usize);
        let order = order(hosts, source as usize, id);
        let first = order.into_iter().take(max.max(0) as usize);
        let first: Vec<jint> = first.map(|host| host as jint).collect();
        let array = env.new_int_array(first.len())?;
        array.set_region(env, 0, &first)?;
        Ok(array)
    })
    .resolve::<TypedErrors>()
}

/// `ServiceNative.close`; does nothing for a handle that is not valid.
#[no_mangle]
pub extern "system" fn Java_io_faro_service_ServiceNative_close<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        drop(CLIENTS.remove(handle as u64));
        Ok(())
    })
    .resolve::<TypedErrors>();
}
