//! Readers of rows, for `io.faro.rows.RowsNative`. A reader decodes blocks into batches of rows on
//! the calling Java thread, and copies each batch into a Java array. So rows never stay in native
//! memory: if a thread still reads a row after its task has ended, it keeps the array alive, as
//! with Spark's own reader, and a reader's native memory is free as soon as the reader is closed.
//!
//! ```text
//!  input: slices of memory | own map outputs ──▶ session ──▶ decoder ──▶ batch ──▶ byte[]
//! ```

mod compress;
mod input;
mod local;
mod session;

use crate::registry::{lock, Registry};
use crate::throw::{EntryResult, Failure, TypedErrors};
use crate::{args, endpoints};
use faro_rows::{Batch, Codec, Piece};
use faro_wire::OutputId;
use input::{LocalPart, RowInput, Slice};
use jni::objects::{JByteArray, JByteBuffer, JClass, JLongArray, JString};
use jni::sys::{jbyte, jint, jlong};
use jni::{Env, EnvUnowned};
use session::{RowSession, SessionStep, BATCH_BYTES};
use std::sync::{Arc, Mutex};
use zerocopy::FromBytes;

/// Length of the `long[]` from which Java reads a step's results.
const RESULT_LONGS: usize = 7;

/// Java calls a session from one thread at a time. After a panic the decoder may be in any state.
/// That is safe, because it hands out only rows that it has checked.
static SESSIONS: Registry<Arc<Mutex<RowSession>>> = Registry::new();

fn session(handle: jlong) -> EntryResult<Arc<Mutex<RowSession>>> {
    SESSIONS.get(handle as u64).ok_or(Failure::NotHeld {
        what: "row reader",
        handle: handle as u64,
    })
}

fn longs(
    env: &Env<'_>,
    what: &str,
    array: &JLongArray<'_>,
    count: usize,
) -> EntryResult<Vec<jlong>> {
    if array.is_null() || array.len(env)? < count {
        return Err(Failure::Argument(format!(
            "{what} has fewer than {count} longs"
        )));
    }
    let mut values = vec![0; count];
    array.get_region(env, 0, &mut values)?;
    Ok(values)
}

fn count(value: jint, per_item: usize) -> EntryResult<usize> {
    usize::try_from(value)
        .ok()
        .and_then(|count| count.checked_mul(per_item))
        .ok_or_else(|| Failure::Argument(format!("{value} items")))
}

fn codec(code: jint) -> EntryResult<Codec> {
    match code {
        0 => Ok(Codec::None),
        1 => Ok(Codec::Lz4),
        2 => Ok(Codec::Zstd),
        other => Err(Failure::Argument(format!("codec {other}"))),
    }
}

/// Implements `RowsNative.open`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_open<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    codec: jint,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let session = RowSession::new(self::codec(codec)?)?;
        Ok(SESSIONS.insert(Arc::new(Mutex::new(session))) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.address`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_address<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    buffer: JByteBuffer<'local>,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let (address, _) = args::direct(env, "buffer", &buffer)?;
        Ok(address as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.input`. `slices` are pairs of an address and (2 × bytes, plus 1 if a part
/// ends with the slice).
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_input<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    reader: jlong,
    slices: JLongArray<'local>,
    slice_count: jint,
) {
    env.with_env(|env| -> EntryResult<()> {
        let values = longs(env, "slices", &slices, count(slice_count, 2)?)?;
        let slices = values
            .chunks_exact(2)
            .map(|pair| Slice::new(pair[0] as usize, pair[1]))
            .collect::<Result<Vec<_>, _>>()
            .map_err(Failure::Argument)?;
        let session = session(reader)?;
        lock(&session).start(RowInput::memory(slices));
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// Implements `RowsNative.inputLocal`. `parts` are triples of map id, first and last (exclusive)
/// partition.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_inputLocal<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    reader: jlong,
    endpoint: jlong,
    shuffle: jint,
    parts: JLongArray<'local>,
    part_count: jint,
) {
    env.with_env(|env| -> EntryResult<()> {
        let values = longs(env, "parts", &parts, count(part_count, 3)?)?;
        let part = |triple: &[jlong]| LocalPart {
            output: OutputId {
                shuffle_id: shuffle as u32,
                map_id: triple[0],
            },
            start: triple[1] as u32,
            end: triple[2] as u32,
        };
        let parts = values.chunks_exact(3).map(part).collect();
        let endpoint = Arc::clone(&endpoints::get(endpoint)?.endpoint);
        let session = session(reader)?;
        lock(&session).start(RowInput::local(endpoint, parts));
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// Implements `RowsNative.next`. `batch` must have at least `BATCH_BYTES` bytes.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_next<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    reader: jlong,
    batch: JByteArray<'local>,
    result: JLongArray<'local>,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        if result.is_null() || result.len(env)? < RESULT_LONGS {
            return Err(Failure::Argument(format!(
                "result has fewer than {RESULT_LONGS} longs"
            )));
        }
        // This is checked before anything is decoded, because rows that cannot be copied would be
        // lost.
        if batch.is_null() || batch.len(env)? < BATCH_BYTES {
            return Err(Failure::Argument(format!(
                "batch has fewer than {BATCH_BYTES} bytes"
            )));
        }
        let session = session(reader)?;
        let mut session = lock(&session);
        let step = session.next();
        let (bytes, rows, offset, row_bytes): (&[u8], _, _, _) = match session.hand_out() {
            Batch::Empty => (&[], 0, 0, 0),
            Batch::Rows { bytes, rows } => (bytes, rows, 0, 0),
            Batch::Piece {
                bytes,
                piece: Piece { offset, row_bytes },
            } => (bytes, 0, offset, row_bytes),
        };
        if !bytes.is_empty() {
            let bytes = <[jbyte]>::ref_from_bytes(bytes)
                .map_err(|error| Failure::State(error.to_string()))?;
            batch.set_region(env, 0, bytes)?;
        }
        let values: [jlong; RESULT_LONGS] = [
            bytes.len() as jlong,
            jlong::from(rows),
            offset as jlong,
            row_bytes as jlong,
            session.part() as jlong,
            session.file_bytes() as jlong,
            jlong::from(session.part_was_handed_out()),
        ];
        result.set_region(env, 0, &values)?;
        Ok(match step {
            SessionStep::Full => 0,
            SessionStep::Done => 1,
            SessionStep::Unresolved => 2,
            SessionStep::Corrupt => 3,
            SessionStep::Unreadable => 4,
        })
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.problem`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_problem<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    reader: jlong,
) -> JString<'local> {
    env.with_env(|env| -> EntryResult<JString<'local>> {
        let session = session(reader)?;
        let problem = lock(&session).problem();
        Ok(JString::new(env, problem)?)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.close`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_close<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    reader: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        let handle = reader as u64;
        let session = SESSIONS.remove(handle).ok_or(Failure::NotHeld {
            what: "row reader",
            handle,
        })?;
        // Java does not close a reader during another call, so this is the last reference.
        drop(session);
        Ok(())
    })
    .resolve::<TypedErrors>();
}
