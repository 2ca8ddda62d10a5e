//! Reads map outputs from files that the endpoint knows, for readers that deserialise in Java.

use super::{count, longs};
use crate::endpoints;
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_endpoint::{Endpoint, LocalError};
use faro_wire::OutputId;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::{jboolean, jbyte, jint, jlong};
use jni::EnvUnowned;
use zerocopy::IntoBytes;

/// Implements `RowsNative.readLocal`. `parts` are triples of map id, first and last (exclusive)
/// partition. Reads whole parts into `bytes`, one after the other, and their lengths into
/// `lengths`. Stops at the first part that does not fit, is not known, or cannot be read. Returns
/// the number of parts read.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_readLocal<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
    parts: JLongArray<'local>,
    part_count: jint,
    bytes: JByteArray<'local>,
    lengths: JLongArray<'local>,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        if bytes.is_null() {
            return Err(Failure::Argument("bytes is null".to_string()));
        }
        let parts = longs(env, "parts", &parts, count(part_count, 3)?)?;
        let endpoint = &endpoints::get(endpoint)?.endpoint;
        let room = bytes.len(env)?;
        let mut read: Vec<jbyte> = Vec::with_capacity(room);
        let mut found: Vec<jlong> = Vec::new();
        for part in parts.chunks_exact(3) {
            let output = OutputId {
                shuffle_id: shuffle as u32,
                map_id: part[0],
            };
            match append(endpoint, output, (part[1], part[2]), room, &mut read) {
                Ok(Some(length)) => found.push(length as jlong),
                // Java asks Spark for that part, and Spark reports the error.
                Ok(None) | Err(_) => break,
            }
        }
        bytes.set_region(env, 0, &read)?;
        lengths.set_region(env, 0, &found)?;
        Ok(found.len() as jint)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.localBytes`: the size of a part, or -1 if its files are not known, or do
/// not have it.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_localBytes<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
    map: jlong,
    start: jint,
    end: jint,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let endpoint = &endpoints::get(endpoint)?.endpoint;
        let output = OutputId {
            shuffle_id: shuffle as u32,
            map_id: map,
        };
        let found = endpoint.local(output, start as u32, end as u32);
        Ok(found.map_or(-1, |block| block.length() as jlong))
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.readLocalAt`: reads `length` bytes from `position` of a part on. Returns
/// whether it did.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_readLocalAt<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
    shuffle: jint,
    part: JLongArray<'local>,
    position: jlong,
    bytes: JByteArray<'local>,
    offset: jint,
    length: jint,
) -> jboolean {
    env.with_env(|env| -> EntryResult<jboolean> {
        if bytes.is_null() {
            return Err(Failure::Argument("bytes is null".to_string()));
        }
        let part = longs(env, "part", &part, 3)?;
        let endpoint = &endpoints::get(endpoint)?.endpoint;
        let (first, length) = (count(offset, 1)?, count(length, 1)?);
        let output = OutputId {
            shuffle_id: shuffle as u32,
            map_id: part[0],
        };
        let room = bytes.len(env)?;
        if first.checked_add(length).is_none_or(|end| end > room) {
            return Err(Failure::Argument(format!(
                "{length} bytes at {first} of {room}"
            )));
        }
        let Ok(block) = endpoint.local(output, part[1] as u32, part[2] as u32) else {
            return Ok(false);
        };
        let mut read: Vec<jbyte> = vec![0; length];
        if block.read_at(position as u64, read.as_mut_bytes()).is_err() {
            return Ok(false);
        }
        bytes.set_region(env, offset, &read)?;
        Ok(true)
    })
    .resolve::<TypedErrors>()
}

/// Appends a part to `read` and returns its length. Returns `None` and reads nothing if it does not
/// fit.
fn append(
    endpoint: &Endpoint,
    output: OutputId,
    (start, end): (jlong, jlong),
    room: usize,
    read: &mut Vec<jbyte>,
) -> Result<Option<usize>, LocalError> {
    let block = endpoint.local(output, start as u32, end as u32)?;
    let from = read.len();
    let Some(length) = usize::try_from(block.length())
        .ok()
        .filter(|&length| length <= room - from)
    else {
        return Ok(None);
    };
    read.resize(from + length, 0);
    let filled = block.read_at(0, read[from..].as_mut_bytes());
    if filled.is_err() {
        read.truncate(from);
    }
    filled.map(|()| Some(length))
}
