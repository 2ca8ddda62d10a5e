//! Compressors of writers. They compress between pages of Spark's memory, which are Java arrays or
//! addresses outside the heap.

use super::codec;
use crate::memory::{HeldBytes, MemoryUse};
use crate::pages::{check, Page};
use crate::registry::{lock, Registry};
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_rows::BlockCompressor;
use jni::objects::{JByteArray, JClass, JLongArray};
use jni::sys::{jboolean, jint, jlong};
use jni::EnvUnowned;
use std::slice;
use std::sync::{Arc, Mutex};

/// The value of `packed_words` for a compressor without row blocks.
const NO_ROW_BLOCKS: jint = -1;

static COMPRESSORS: Registry<Arc<Mutex<CountedCompressor>>> = Registry::new();

/// A compressor, and the count of its native memory.
struct CountedCompressor {
    compressor: BlockCompressor,
    held: HeldBytes,
}

fn compressor(handle: jlong) -> EntryResult<Arc<Mutex<CountedCompressor>>> {
    COMPRESSORS.get(handle as u64).ok_or(Failure::NotHeld {
        what: "block compressor",
        handle: handle as u64,
    })
}

/// Implements `RowsNative.openCompressor`. `packed_words` is the number of packed words of each
/// row, or -1 for no row blocks.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_openCompressor<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    code: jint,
    zstd_level: jint,
    block_bytes: jint,
    packed_words: jint,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let block_bytes = length("blockBytes", block_bytes)?;
        let opened = BlockCompressor::new(codec(code)?, zstd_level, block_bytes);
        let mut compressor = opened.map_err(|error| Failure::State(error.to_string()))?;
        if packed_words != NO_ROW_BLOCKS {
            compressor = compressor.with_row_blocks(length("packedWords", packed_words)?);
        }
        let held = HeldBytes::new(MemoryUse::Compressors, compressor.memory());
        Ok(
            COMPRESSORS.insert(Arc::new(Mutex::new(CountedCompressor { compressor, held })))
                as jlong,
        )
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.closeCompressor`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_closeCompressor<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        COMPRESSORS.remove(handle as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// Implements `RowsNative.maxBytes`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_maxBytes<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    bytes: jint,
) -> jint {
    env.with_env(|_| -> EntryResult<jint> {
        let bytes = length("bytes", bytes)?;
        let compressor = compressor(handle)?;
        let max = lock(&compressor).compressor.max_bytes(bytes);
        jint::try_from(max).map_err(|_| Failure::Argument(format!("a block of {bytes} bytes")))
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.streamEnd`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_streamEnd<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> EntryResult<JByteArray<'local>> {
        let compressor = compressor(handle)?;
        let end = lock(&compressor).compressor.end().to_vec();
        Ok(env.byte_array_from_slice(&end)?)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.rowBlocks`.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_rowBlocks<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let compressor = compressor(handle)?;
        let made = lock(&compressor).compressor.row_blocks();
        Ok(made as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Implements `RowsNative.compress`. Compresses `bytes` bytes at `from` in `source` to `to` in
/// `target`, which has `room` bytes there. Positions are byte offsets in the array, or addresses if
/// the array is null. `at_row`: the bytes begin at a row. Returns the block's length in
/// the lower 32 bits, and in the upper ones the length of the block that the codec alone makes.
#[no_mangle]
pub extern "system" fn Java_io_faro_rows_RowsNative_compress<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    source: JLongArray<'local>,
    from: jlong,
    bytes: jint,
    target: JLongArray<'local>,
    to: jlong,
    room: jint,
    at_row: jboolean,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let compressor = compressor(handle)?;
        let mut counted = lock(&compressor);
        let CountedCompressor { compressor, held } = &mut *counted;
        let (bytes, room) = (length("bytes", bytes)?, length("room", room)?);
        check(env, "source", &source, from, bytes)?;
        check(env, "target", &target, to, room)?;
        let done = {
            let (source, target) = (Page::of(env, &source)?, Page::of(env, &target)?);
            // SAFETY: `check` has made sure that the arrays have these bytes; memory outside the heap is a page of
            // Spark's that the caller owns during the call. The two pages are different ones, and the caller's
            // thread, the only one that uses them, is this one.
            let (piece, out) = unsafe {
                (
                    slice::from_raw_parts(source.at(from), bytes),
                    slice::from_raw_parts_mut(target.at(to), room),
                )
            };
            match at_row {
                true => compressor.compress_rows(piece, out),
                false => compressor.compress(piece, out),
            }
        };
        // zstd's context and the packer allocate with their first blocks.
        held.set(compressor.memory());
        match done {
            // Blocks are shorter than 64 MiB, so each length fits in 32 bits.
            Ok(length) => Ok((compressor.codec_bytes() as jlong) << 32 | length as jlong),
            Err(error) => Err(Failure::Argument(error.to_string())),
        }
    })
    .resolve::<TypedErrors>()
}

fn length(what: &str, value: jint) -> EntryResult<usize> {
    usize::try_from(value).map_err(|_| Failure::Argument(format!("{what} is {value}")))
}
