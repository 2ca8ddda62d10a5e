//! `TeamNative.reduce`: one round of a team in one crossing.
//!
//! Java's arrays are read and written in parts, directly from and to the arena's leases. While a
//! round waits, it asks Java several times a second whether to continue: Spark interrupts the
//! thread of a task that it kills.

use super::handles;
use super::heap_array::{Doubles, Floats};
use crate::args;
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_endpoint::collective::{Array, Grouping, NanPolicy, Operation, Round, Team};
use jni::objects::{JByteBuffer, JClass, JDoubleArray, JFloatArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use jni::{jni_sig, jni_str, Env, EnvUnowned};
use std::cell::RefCell;

/// `TeamNative.reduce`.
#[allow(
    clippy::too_many_arguments,
    reason = "one crossing for each round; an object would need one for each field"
)]
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_reduce<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    team: jlong,
    storage: jint,
    values: JObject<'local>,
    offset: jint,
    length: jint,
    mode: jint,
    group: jint,
    epoch: jlong,
    operation: jint,
    fail_on_nan: jboolean,
    timeout_millis: jlong,
    cancelled: JObject<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        let held = handles::team(team as u64)?;
        let round = settings(
            mode,
            group,
            epoch as u64,
            operation,
            fail_on_nan,
            timeout_millis,
        )?;
        if values.is_null() || cancelled.is_null() {
            return Err(Failure::Argument("values or cancelled is null".to_owned()));
        }
        let (Ok(offset), Ok(length)) = (usize::try_from(offset), usize::try_from(length)) else {
            let text = format!("{length} values from position {offset}");
            return Err(Failure::Argument(text));
        };
        let mut team = held.for_a_round()?;
        let raw = values.as_raw();
        match storage {
            0 => {
                // SAFETY: with storage FLOATS, Java's GroupedAllReduce passes a `float[]`. `values` is
                // a local reference to it for the whole call, and the new object does not free it.
                let array = unsafe { JFloatArray::from_raw(env, raw) };
                check_range(array.len(env)?, offset, length)?;
                let env = RefCell::new(env);
                let mut heap = Floats::new(&env, &array, offset, length);
                run(&mut team, &mut heap, &round, &env, &cancelled)
            }
            1 => {
                // SAFETY: as for floats; with storage DOUBLES it is a `double[]`.
                let array = unsafe { JDoubleArray::from_raw(env, raw) };
                check_range(array.len(env)?, offset, length)?;
                let env = RefCell::new(env);
                let mut heap = Doubles::new(&env, &array, offset, length);
                run(&mut team, &mut heap, &round, &env, &cancelled)
            }
            2 | 3 => {
                // SAFETY: as for floats; with these storages it is a direct FloatBuffer or
                // DoubleBuffer, and JNI's functions for direct buffers take every java.nio.Buffer.
                let buffer = unsafe { JByteBuffer::from_raw(env, raw) };
                let (address, capacity) = args::direct(env, "values", &buffer)?;
                check_range(capacity, offset, length)?;
                let env = RefCell::new(env);
                if storage == 2 {
                    let mut slice = direct::<f32>(address, offset, length)?;
                    run(&mut team, &mut slice, &round, &env, &cancelled)
                } else {
                    let mut slice = direct::<f64>(address, offset, length)?;
                    run(&mut team, &mut slice, &round, &env, &cancelled)
                }
            }
            other => Err(Failure::Argument(format!("storage code {other}"))),
        }
    })
    .resolve::<TypedErrors>();
}

/// Returns the round that the callers' codes describe (`Mode`, `TeamNative`, python/faro/collective.py).
pub(super) fn settings(
    mode: i32,
    group: i32,
    epoch: u64,
    operation: i32,
    fail_on_nan: bool,
    timeout_millis: i64,
) -> EntryResult<Round> {
    Ok(Round {
        grouping: match mode {
            1 => Grouping::DsSync {
                group: u32::try_from(group)
                    .map_err(|_| Failure::Argument(format!("group size {group}")))?,
                epoch,
            },
            2 => Grouping::Grid,
            3 => Grouping::Full,
            other => return Err(Failure::Argument(format!("mode code {other}"))),
        },
        operation: match operation {
            1 => Operation::Sum,
            2 => Operation::Mean,
            other => return Err(Failure::Argument(format!("operation code {other}"))),
        },
        nan: if fail_on_nan {
            NanPolicy::Fail
        } else {
            NanPolicy::Propagate
        },
        timeout: args::millis(timeout_millis),
    })
}

fn check_range(capacity: usize, offset: usize, length: usize) -> EntryResult<()> {
    match offset.checked_add(length) {
        Some(end) if end <= capacity => Ok(()),
        _ => Err(Failure::Argument(format!(
            "{length} values from position {offset} of {capacity}"
        ))),
    }
}

/// Returns the values of a direct buffer; lengths are in values.
fn direct<'a, T>(address: *mut u8, offset: usize, length: usize) -> EntryResult<&'a mut [T]> {
    let address = address.cast::<T>();
    if !address.is_aligned() {
        let text = format!("a buffer at {address:p} is not aligned for its values");
        return Err(Failure::Argument(text));
    }
    // SAFETY: `offset + length` values lie within the buffer (`check_range`, and Java counts the
    // capacity in values), it is aligned, and any bits are a float. Java's `GroupedAllReduce` keeps
    // it reachable during the call; its contract forbids other threads to use the buffer meanwhile.
    Ok(unsafe { std::slice::from_raw_parts_mut(address.add(offset), length) })
}

/// Runs a round; while it waits, it asks `cancelled` several times a second whether to end.
fn run<'local>(
    team: &mut Team,
    array: &mut dyn Array,
    round: &Round,
    env: &RefCell<&mut Env<'local>>,
    cancelled: &JObject<'local>,
) -> EntryResult<()> {
    let mut ask = || {
        let mut env = env.borrow_mut();
        let answer = env.call_method(cancelled, jni_str!("getAsBoolean"), jni_sig!("()Z"), &[]);
        // An exception stays pending: the caller gets it, and the round ends.
        answer.and_then(|value| value.z()).unwrap_or(true)
    };
    Ok(team.all_reduce(array, round, &mut ask)?)
}
