//! Sorts of rows, for `io.faro.sort.SortNative`. Rows and entries are in pages of Spark's memory, so a
//! sort has no native memory to count but its few counters.
//!
//! A call keeps arrays of Java's in their place, and garbage collection waits for it: at most one page
//! of rows is looked at in a call, and a step's length is the caller's.

use crate::pages::{check, Page};
use crate::registry::{lock, Registry};
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_sort::{KeyColumn, RowSorter, SortError, SortProgress, ValueKind};
use jni::objects::{JClass, JIntArray, JLongArray};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};
use std::ops::Range;
use std::slice;
use std::sync::{Arc, Mutex};

/// Numbers by which Java describes a column: ordinal, kind, descending, nulls last.
const COLUMN_INTS: usize = 4;

/// Java calls a sorter from one thread at a time. After a panic it may be in any state, which is safe:
/// it has no memory of the caller's.
static SORTERS: Registry<Arc<Mutex<RowSorter>>> = Registry::new();

fn sorter(handle: jlong) -> EntryResult<Arc<Mutex<RowSorter>>> {
    SORTERS.get(handle as u64).ok_or(Failure::NotHeld {
        what: "row sorter",
        handle: handle as u64,
    })
}

fn refused(error: SortError) -> Failure {
    match error {
        SortError::Sequence { .. } | SortError::TooMany { .. } => Failure::State(error.to_string()),
        _ => Failure::Argument(error.to_string()),
    }
}

fn kind(code: jint) -> EntryResult<ValueKind> {
    Ok(match code {
        0 => ValueKind::Bool,
        1 => ValueKind::I8,
        2 => ValueKind::I16,
        3 => ValueKind::I32,
        4 => ValueKind::I64,
        5 => ValueKind::F32,
        6 => ValueKind::F64,
        7 => ValueKind::WideDecimal,
        8 => ValueKind::Bytes,
        other => return Err(Failure::Argument(format!("values of kind {other}"))),
    })
}

fn size(what: &str, value: jlong) -> EntryResult<usize> {
    usize::try_from(value).map_err(|_| Failure::Argument(format!("{what} is {value}")))
}

/// Implements `SortNative.open`.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_open<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    columns: JIntArray<'local>,
    fields: jint,
    complete: jboolean,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        if columns.is_null() {
            return Err(Failure::Argument("columns is null".to_owned()));
        }
        let mut numbers = vec![0; columns.len(env)?];
        columns.get_region(env, 0, &mut numbers)?;
        let columns = numbers
            .chunks_exact(COLUMN_INTS)
            .map(|column| {
                Ok(KeyColumn {
                    ordinal: size("a column", jlong::from(column[0]))?,
                    kind: kind(column[1])?,
                    descending: column[2] != 0,
                    nulls_last: column[3] != 0,
                })
            })
            .collect::<EntryResult<Vec<_>>>()?;
        let fields = size("fields", jlong::from(fields))?;
        let sorter = RowSorter::new(&columns, fields, complete).map_err(refused)?;
        Ok(SORTERS.insert(Arc::new(Mutex::new(sorter))) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Implements `SortNative.close`.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_close<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        SORTERS.remove(handle as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// Implements `SortNative.survey`. `bytes` bytes at `from` in `page` are rows; a position is an offset
/// in the array, or an address if the array is null.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_survey<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    page: JLongArray<'local>,
    from: jlong,
    bytes: jlong,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let sorter = sorter(handle)?;
        let mut sorter = lock(&sorter);
        let bytes = size("bytes", bytes)?;
        check(env, "page", &page, from, bytes)?;
        let page = Page::of(env, &page)?;
        // SAFETY: `check` has made sure that an array has these bytes; memory outside the heap is a page of Spark's
        // that the caller owns during the call, and nothing writes to it.
        let rows = unsafe { slice::from_raw_parts(page.at(from), bytes) };
        let rows = sorter.survey(rows).map_err(refused)?;
        Ok(rows as jlong)
    })
    .resolve::<TypedErrors>()
}

/// Implements `SortNative.plan`. Returns the entries' words, the bits of a word's number in its page,
/// the bits of a page's number and 1 if keys are exact, a byte each, from the lowest on.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_plan<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
) -> jint {
    env.with_env(|_| -> EntryResult<jint> {
        let sorter = sorter(handle)?;
        let shape = lock(&sorter).plan().map_err(refused)?;
        Ok(shape.words as jint
            | (shape.word_bits as jint) << 8
            | (shape.page_bits as jint) << 16
            | jint::from(shape.exact) << 24)
    })
    .resolve::<TypedErrors>()
}

/// Implements `SortNative.encode`. There is room for `room` bytes of entries at `to` in `entries`.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_encode<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    page: JLongArray<'local>,
    from: jlong,
    bytes: jlong,
    entries: JLongArray<'local>,
    to: jlong,
    room: jlong,
) {
    env.with_env(|env| -> EntryResult<()> {
        let sorter = sorter(handle)?;
        let mut sorter = lock(&sorter);
        let bytes = size("bytes", bytes)?;
        check(env, "page", &page, from, bytes)?;
        let words = words(env, "entries", &entries, to, room)?;
        let (page, entries) = (Page::of(env, &page)?, Page::of(env, &entries)?);
        let (rows, entries) = (page.at(from).cast_const(), entries.at(to).cast::<u64>());
        apart(span(rows, bytes), span(entries.cast_const(), words))?;
        // SAFETY: `check` and `words` have made sure that arrays have these bytes, and that entries are aligned; memory
        // outside the heap are pages of Spark's that the caller owns during the call. The two do not overlap.
        let (rows, entries) = unsafe {
            (
                slice::from_raw_parts(rows, bytes),
                slice::from_raw_parts_mut(entries, words),
            )
        };
        sorter.encode(rows, entries).map_err(refused)
    })
    .resolve::<TypedErrors>();
}

/// Implements `SortNative.step`. The first array has `room` bytes of entries. The second one has room
/// for `second_room` bytes; it is not read if that is 0.
///
/// Returns 0 if there is more to do, 1 if the entries are in the first array, 2 if they are in the second.
#[no_mangle]
pub extern "system" fn Java_io_faro_sort_SortNative_step<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    handle: jlong,
    first: JLongArray<'local>,
    first_at: jlong,
    room: jlong,
    second: JLongArray<'local>,
    second_at: jlong,
    second_room: jlong,
    budget: jint,
) -> jint {
    env.with_env(|env| -> EntryResult<jint> {
        let sorter = sorter(handle)?;
        let mut sorter = lock(&sorter);
        let budget = size("budget", jlong::from(budget))?;
        let count = words(env, "first", &first, first_at, room)?;
        let second_count = match second_room {
            0 => 0,
            room => words(env, "second", &second, second_at, room)?,
        };
        let page = Page::of(env, &first)?;
        let first = page.at(first_at).cast::<u64>();
        // SAFETY: `words` has made sure that an array has these words, and that they are aligned; memory outside the heap
        // is a page of Spark's that the caller owns during the call.
        let entries = unsafe { slice::from_raw_parts_mut(first, count) };
        let progress = match second_count {
            0 => sorter.step(entries, &mut [], budget),
            _ => {
                let page = Page::of(env, &second)?;
                let second = page.at(second_at).cast::<u64>();
                apart(
                    span(first.cast_const(), count),
                    span(second.cast_const(), second_count),
                )?;
                // SAFETY: as above, and the two do not overlap.
                let scratch = unsafe { slice::from_raw_parts_mut(second, second_count) };
                sorter.step(entries, scratch, budget)
            }
        };
        Ok(match progress.map_err(refused)? {
            SortProgress::More => 0,
            SortProgress::InFirst => 1,
            SortProgress::InSecond => 2,
        })
    })
    .resolve::<TypedErrors>()
}

/// Returns how many words `bytes` bytes are. Fails unless they are there, and aligned.
fn words(
    env: &Env<'_>,
    what: &str,
    array: &JLongArray<'_>,
    at: jlong,
    bytes: jlong,
) -> EntryResult<usize> {
    let word = size_of::<u64>();
    let bytes = size(what, bytes)?;
    check(env, what, array, at, bytes)?;
    if at as usize % word != 0 || bytes % word != 0 {
        return Err(Failure::Argument(format!(
            "{bytes} bytes of {what} at {at} are not whole words"
        )));
    }
    Ok(bytes / word)
}

fn span<T>(first: *const T, count: usize) -> Range<usize> {
    let start = first as usize;
    start..start + count * size_of::<T>()
}

/// Fails if the two overlap.
fn apart(a: Range<usize>, b: Range<usize>) -> EntryResult<()> {
    if a.start < b.end && b.start < a.end {
        return Err(Failure::Argument("the two overlap".to_owned()));
    }
    Ok(())
}
