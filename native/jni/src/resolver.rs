//! Spark knows the files of map outputs: questions go to Java, answers come back.

use crate::staged;
use crate::throw::{EntryResult, Failure, TypedErrors};
use crate::{args, endpoints};
use faro_endpoint::OutputFiles;
use faro_wire::OutputId;
use jni::objects::{JClass, JLongArray, JString};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned};
use std::sync::atomic::Ordering;

/// Returned when the endpoint is closed.
const CLOSED: jint = -1;

fn output_id(shuffle: jint, map: jlong) -> OutputId {
    OutputId {
        shuffle_id: shuffle as u32,
        map_id: map,
    }
}

fn files(env: &Env<'_>, data: &JString<'_>, index: &JString<'_>) -> EntryResult<OutputFiles> {
    Ok(OutputFiles {
        data: args::text(env, "data path", data)?.into(),
        index: args::text(env, "index path", index)?.into(),
    })
}

/// `Native.unresolved`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_unresolved<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    out: JLongArray<'local>,
    timeout_millis: jlong,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        if out.is_null() {
            return Err(Failure::Argument("out is null".to_owned()));
        }
        let held = endpoints::get(endpoint)?;
        let max = out.len(env)? / 2;
        let closed = held.ended.load(Ordering::Acquire);
        let timeout = args::wait(if closed { 0 } else { timeout_millis });
        let outputs = held.endpoint.unresolved(max, timeout);
        if outputs.is_empty() {
            return Ok(if closed { CLOSED } else { 0 });
        }
        let pairs: Vec<jlong> = outputs
            .iter()
            .take(max)
            .flat_map(|output| [jlong::from(output.shuffle_id), output.map_id])
            .collect();
        out.set_region(env, 0, &pairs)?;
        Ok((pairs.len() / 2) as jint)
    })
    .resolve::<TypedErrors>()
}

/// `Native.resolve`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_resolve<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
    map: jlong,
    data: JString<'local>,
    index: JString<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        let held = endpoints::get(endpoint)?;
        let found = if data.is_null() && index.is_null() {
            None
        } else {
            Some(files(env, &data, &index)?)
        };
        held.endpoint.resolve(output_id(shuffle, map), found);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `Native.committed`.
#[no_mangle]
pub extern "system" fn Java_io_faro_Native_committed<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
    map: jlong,
    data: JString<'local>,
    index: JString<'local>,
    staged: jlong,
) {
    env.with_env(|env| -> EntryResult<()> {
        let staged = staged::take(staged);
        let files = files(env, &data, &index)?;
        endpoints::get(endpoint)?
            .endpoint
            .committed(output_id(shuffle, map), &files, staged);
        Ok(())
    })
    .resolve::<TypedErrors>();
}
