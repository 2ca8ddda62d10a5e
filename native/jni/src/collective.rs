//! `io.faro.collective.TeamNative`: seats and teams by handle, rounds on the caller's thread.
//!
//! A round runs in one crossing. Java's arrays are read and written by region, straight into and out
//! of the arena's leases; a sum goes through a tile that stays in the core's cache. While it waits,
//! the round asks Java now and then whether to go on (a killed task is an interrupted thread).

use crate::registry::Registry;
use crate::throw::{Failure, Outcome, Typed};
use crate::{args, endpoints};
use faro_endpoint::collective::{
    Array, ArrayFault, Closer, Element, Grouping, NanPolicy, NotANumber, Operation, Round, Seat,
    Team,
};
use jni::objects::JObjectArray;
use jni::objects::{JByteArray, JByteBuffer, JClass, JDoubleArray, JFloatArray, JObject};
use jni::sys::{jboolean, jint, jlong};
use jni::{jni_sig, jni_str, Env, EnvUnowned};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, TryLockError};
use zerocopy::FromBytes;

/// Elements added at a time: 32 KiB of doubles.
const TILE: usize = 4_096;

/// A team, and how another thread ends it.
struct Held {
    team: Mutex<Team>,
    closer: Closer,
}

static SEATS: Registry<Arc<Mutex<Option<Seat>>>> = Registry::new();
static TEAMS: Registry<Arc<Held>> = Registry::new();

fn no_seat(handle: jlong) -> Failure {
    let what = "seat";
    let handle = handle as u64;
    Failure::NotHeld { what, handle }
}

/// `TeamNative.seat`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_seat<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> jlong {
    env.with_env(|_| -> Outcome<jlong> {
        let seat = endpoints::get(endpoint)?.endpoint.seat()?;
        Ok(SEATS.insert(Arc::new(Mutex::new(Some(seat)))) as jlong)
    })
    .resolve::<Typed>()
}

/// `TeamNative.invitation`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_invitation<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    seat: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> Outcome<JByteArray<'local>> {
        let held = SEATS.get(seat as u64).ok_or_else(|| no_seat(seat))?;
        let guard = held
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let invitation = guard.as_ref().ok_or_else(|| no_seat(seat))?.invitation();
        Ok(env.byte_array_from_slice(&invitation)?)
    })
    .resolve::<Typed>()
}

/// `TeamNative.giveUp`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_giveUp<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    seat: jlong,
) {
    env.with_env(|_| -> Outcome<()> {
        drop(SEATS.remove(seat as u64));
        Ok(())
    })
    .resolve::<Typed>();
}

/// `TeamNative.join`: the seat's handle is no more, whatever comes of it.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_join<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    seat: jlong,
    rank: jint,
    invitations: JObjectArray<'local, JByteArray<'local>>,
) -> jlong {
    env.with_env(|env| -> Outcome<jlong> {
        let held = SEATS.remove(seat as u64).ok_or_else(|| no_seat(seat))?;
        let taken = held
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        let taken = taken.ok_or_else(|| no_seat(seat))?;
        let rank = usize::try_from(rank)
            .map_err(|_| Failure::Argument(format!("rank {rank} is negative")))?;
        let mut all = Vec::new();
        for at in 0..invitations.len(env)? {
            let one = invitations.get_element(env, at)?;
            if one.is_null() {
                return Err(Failure::Argument(format!("invitation {at} is null")));
            }
            all.push(env.convert_byte_array(&one)?);
            // A thousand members would be a thousand local references.
            env.delete_local_ref(one);
        }
        let team = taken.join(rank, &all)?;
        let closer = team.closer();
        let team = Mutex::new(team);
        Ok(TEAMS.insert(Arc::new(Held { team, closer })) as jlong)
    })
    .resolve::<Typed>()
}

/// `TeamNative.leave`: a round under way ends; the handle is no more.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_leave<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    team: jlong,
) {
    env.with_env(|_| -> Outcome<()> {
        if let Some(held) = TEAMS.remove(team as u64) {
            held.closer.close();
        }
        Ok(())
    })
    .resolve::<Typed>();
}

/// `TeamNative.reduce`.
#[allow(
    clippy::too_many_arguments,
    reason = "one call, so that Java need not build an object"
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
    env.with_env(|env| -> Outcome<()> {
        let held = TEAMS.get(team as u64).ok_or(Failure::NotHeld {
            what: "team",
            handle: team as u64,
        })?;
        let round = round(mode, group, epoch, operation, fail_on_nan, timeout_millis)?;
        if values.is_null() || cancelled.is_null() {
            return Err(Failure::Argument("values or cancelled is null".to_owned()));
        }
        let (Ok(offset), Ok(length)) = (usize::try_from(offset), usize::try_from(length)) else {
            let text = format!("{length} values from position {offset}");
            return Err(Failure::Argument(text));
        };
        let mut team = match held.team.try_lock() {
            Ok(team) => team,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let text = "another thread is in a round of this team";
                return Err(Failure::State(text.to_owned()));
            }
        };
        let raw = values.as_raw();
        match storage {
            0 => {
                // SAFETY: Java's TeamNative passes for each storage an object of that class, and
                // `values` keeps it alive. The casts own nothing that is freed with them.
                let array = unsafe { JFloatArray::from_raw(env, raw) };
                check_range(array.len(env)?, offset, length)?;
                let env = RefCell::new(env);
                let mut heap = Floats::new(&env, &array, offset, length);
                run(&mut team, &mut heap, &round, &env, &cancelled)
            }
            1 => {
                // SAFETY: as above.
                let array = unsafe { JDoubleArray::from_raw(env, raw) };
                check_range(array.len(env)?, offset, length)?;
                let env = RefCell::new(env);
                let mut heap = Doubles::new(&env, &array, offset, length);
                run(&mut team, &mut heap, &round, &env, &cancelled)
            }
            2 | 3 => {
                // SAFETY: as above; the two calls below take any direct buffer of java.nio.
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
    .resolve::<Typed>();
}

fn round(
    mode: jint,
    group: jint,
    epoch: jlong,
    operation: jint,
    fail_on_nan: jboolean,
    timeout_millis: jlong,
) -> Outcome<Round> {
    Ok(Round {
        grouping: match mode {
            1 => Grouping::DsSync {
                group: u32::try_from(group)
                    .map_err(|_| Failure::Argument(format!("group size {group}")))?,
                epoch: epoch as u64,
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

fn check_range(capacity: usize, offset: usize, length: usize) -> Outcome<()> {
    match offset.checked_add(length) {
        Some(end) if end <= capacity => Ok(()),
        _ => Err(Failure::Argument(format!(
            "{length} values from position {offset} of {capacity}"
        ))),
    }
}

/// The values of a direct buffer; lengths are in values.
fn direct<'a, T>(address: *mut u8, offset: usize, length: usize) -> Outcome<&'a mut [T]> {
    let address = address.cast::<T>();
    if !address.is_aligned() {
        let text = format!("a buffer at {address:p} is not aligned for its values");
        return Err(Failure::Argument(text));
    }
    // SAFETY: `offset + length` values lie within the buffer (`check_range`, and Java counts the
    // capacity in values), it is aligned, any bits are a float, and Java's `GroupedAllReduce` keeps
    // it reachable during the call. That nobody else touches it meanwhile is that class's contract.
    Ok(unsafe { std::slice::from_raw_parts_mut(address.add(offset), length) })
}

fn run<'local>(
    team: &mut Team,
    array: &mut dyn Array,
    round: &Round,
    env: &RefCell<&mut Env<'local>>,
    cancelled: &JObject<'local>,
) -> Outcome<()> {
    let mut ask = || {
        let mut env = env.borrow_mut();
        let answer = env.call_method(cancelled, jni_str!("getAsBoolean"), jni_sig!("()Z"), &[]);
        // What it throws stays pending and is what the caller sees.
        answer.and_then(|value| value.z()).unwrap_or(true)
    };
    Ok(team.all_reduce(array, round, &mut ask)?)
}

macro_rules! heap_array {
    ($name:ident, $float:ty, $array:ident, $element:expr) => {
        /// A part of an array on Java's heap.
        struct $name<'a, 'local> {
            env: &'a RefCell<&'a mut Env<'local>>,
            array: &'a $array<'local>,
            offset: usize,
            length: usize,
            tile: Vec<$float>,
        }

        impl<'a, 'local> $name<'a, 'local> {
            fn new(
                env: &'a RefCell<&'a mut Env<'local>>,
                array: &'a $array<'local>,
                offset: usize,
                length: usize,
            ) -> Self {
                let tile = vec![0.0; TILE.min(length)];
                Self {
                    env,
                    array,
                    offset,
                    length,
                    tile,
                }
            }

            /// Changes values from `first` on, a tile at a time: the position of each within the
            /// `count`, and the tile.
            fn in_tiles(
                &mut self,
                first: usize,
                count: usize,
                write: bool,
                mut change: impl FnMut(usize, &mut [$float]),
            ) -> Result<(), ArrayFault> {
                let env = self.env.borrow();
                let mut done = 0;
                while done < count {
                    let tile = &mut self.tile[..TILE.min(count - done)];
                    let at = (self.offset + first + done) as jint;
                    self.array.get_region(&env, at, tile).map_err(fault)?;
                    change(done, tile);
                    if write {
                        self.array.set_region(&env, at, tile).map_err(fault)?;
                    }
                    done += tile.len();
                }
                Ok(())
            }
        }

        impl Array for $name<'_, '_> {
            fn element(&self) -> Element {
                $element
            }

            fn len(&self) -> usize {
                self.length
            }

            fn load(&mut self, first: usize, bytes: &mut [u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::mut_from_bytes(bytes).map_err(unaligned)?;
                let at = (self.offset + first) as jint;
                self.array
                    .get_region(&self.env.borrow(), at, values)
                    .map_err(fault)
            }

            fn store(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::ref_from_bytes(bytes).map_err(unaligned)?;
                let at = (self.offset + first) as jint;
                self.array
                    .set_region(&self.env.borrow(), at, values)
                    .map_err(fault)
            }

            fn add(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::ref_from_bytes(bytes).map_err(unaligned)?;
                self.in_tiles(first, values.len(), true, |done, tile| {
                    for (value, arrived) in tile.iter_mut().zip(&values[done..]) {
                        *value += arrived;
                    }
                })
            }

            fn divide(&mut self, divisor: u32) -> Result<(), ArrayFault> {
                let divisor = divisor as $float;
                self.in_tiles(0, self.length, true, |_, tile| {
                    for value in tile {
                        *value /= divisor;
                    }
                })
            }

            fn not_numbers(&mut self) -> Result<Option<NotANumber>, ArrayFault> {
                let (mut count, mut first) = (0, None);
                self.in_tiles(0, self.length, false, |done, tile| {
                    for (at, value) in tile.iter().enumerate() {
                        if value.is_nan() {
                            count += 1;
                            first.get_or_insert(done + at);
                        }
                    }
                })?;
                Ok(first.map(|first| NotANumber { count, first }))
            }
        }
    };
}

heap_array!(Floats, f32, JFloatArray, Element::Float);
heap_array!(Doubles, f64, JDoubleArray, Element::Double);

fn fault(error: jni::errors::Error) -> ArrayFault {
    ArrayFault(error.to_string())
}

fn unaligned<E: std::fmt::Display>(error: E) -> ArrayFault {
    ArrayFault(error.to_string())
}
