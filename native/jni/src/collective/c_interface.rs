//! The collectives as functions of C, for processes without a JVM. python/faro/native.py is their
//! one caller, and declares them.
//!
//! ```text
//!  faro_endpoint_open ─▶ faro_member_open ─▶ faro_bootstrap_id ─▶ (others) ─▶ faro_team_join
//!   ─▶ faro_team_reduce ... ─▶ faro_team_leave ─▶ faro_endpoint_close
//! ```
//! Handles are those of Java's entry points: a stale one is an error. A function that fails returns 0
//! for a handle and -1 otherwise, and `faro_last_error` has the reason, for the same thread. No panic
//! leaves a function: it is such an error too.

use super::{handles, round};
use crate::throw::{panic_message, EntryResult, Failure};
use crate::{endpoints, settings};
use std::cell::RefCell;
use std::ffi::{c_char, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Changes with the functions or their parameters. A library of another release is refused by it.
const INTERFACE_VERSION: u32 = 2;
/// The endpoint of a team fetches nothing.
const COMPLETION_QUEUES: usize = 1;

thread_local! {
    /// Why this thread's last call failed.
    static LAST_ERROR: RefCell<LastError> = const { RefCell::new(LastError { text: String::new(), is_argument: false }) };
}

/// Why a call failed.
struct LastError {
    text: String,
    /// Whether the call was given something that is not allowed.
    is_argument: bool,
}

/// Runs the body of a function; `failed` is what the function returns for an error.
fn run<T>(failed: T, body: impl FnOnce() -> EntryResult<T>) -> T {
    // A body that panics leaves nothing half changed that another call uses: what it shares with
    // other calls is in registries and in a team, which both survive panics of Java's calls too.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        body().map_err(|why| LastError {
            is_argument: matches!(why, Failure::Config { .. } | Failure::Argument(_)),
            text: why.message(),
        })
    }));
    let error = match outcome {
        Ok(Ok(value)) => return value,
        Ok(Err(error)) => error,
        Err(payload) => LastError {
            text: panic_message(payload),
            is_argument: false,
        },
    };
    // Fails when the thread is ending.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = error);
    failed
}

/// Copies as many of the bytes as there is room for, and returns how many there are.
///
/// # Safety
/// `into` has room for `capacity` bytes, or `capacity` is 0.
unsafe fn copy_out(bytes: &[u8], into: *mut u8, capacity: usize) -> usize {
    let count = bytes.len().min(capacity);
    if count > 0 {
        // SAFETY: the caller gives room for `capacity` bytes, of which these are at most all; `bytes`
        // is Rust's own memory, so it does not overlap what the caller may write.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into, count) };
    }
    bytes.len()
}

/// Returns a text of C's.
///
/// # Safety
/// `text` is null, or ends with a NUL and is not changed meanwhile.
unsafe fn text<'a>(what: &str, text: *const c_char) -> EntryResult<&'a str> {
    if text.is_null() {
        return Err(Failure::Argument(format!("{what} is null")));
    }
    // SAFETY: it is not null, and the caller says that it ends with a NUL and stays as it is.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::Argument(format!("{what} is not UTF-8")))
}

/// Returns the version of these functions.
#[no_mangle]
pub extern "C" fn faro_interface_version() -> u32 {
    INTERFACE_VERSION
}

/// Copies the reason why this thread's last call failed, in UTF-8 without a NUL, and returns its length.
///
/// # Safety
/// `into` has room for `capacity` bytes, or `capacity` is 0.
#[no_mangle]
pub unsafe extern "C" fn faro_last_error(into: *mut u8, capacity: usize) -> usize {
    let copied = LAST_ERROR.try_with(|last| {
        // SAFETY: the caller's promise is the same.
        unsafe { copy_out(last.borrow().text.as_bytes(), into, capacity) }
    });
    copied.unwrap_or(0)
}

/// Returns 1 if this thread's last call failed because of what it was given, such as a setting, and 0 if it
/// failed because of anything else.
#[no_mangle]
pub extern "C" fn faro_last_error_is_argument() -> i32 {
    let asked = LAST_ERROR.try_with(|last| last.borrow().is_argument);
    i32::from(asked.unwrap_or(false))
}

/// Starts an endpoint with settings of one `name=value` per line, and returns its handle.
///
/// # Safety
/// `settings` ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn faro_endpoint_open(settings: *const c_char) -> i64 {
    run(0, || {
        // SAFETY: the caller's promise is the same.
        let settings = unsafe { text("settings", settings) }?;
        endpoints::open(settings::parse(settings)?, COMPLETION_QUEUES)
    })
}

/// Stops an endpoint and ends its handle. Rounds of its teams end with an error.
#[no_mangle]
pub extern "C" fn faro_endpoint_close(endpoint: i64) -> i32 {
    run(-1, || {
        endpoints::close(endpoint)?;
        endpoints::free(endpoint)?;
        Ok(0)
    })
}

/// Makes a member on an endpoint, in a rack (an empty text: unknown), and returns its handle. It ends when
/// it joins a team, or with its endpoint.
///
/// # Safety
/// `rack` ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn faro_member_open(endpoint: i64, rack: *const c_char) -> u64 {
    run(0, || {
        // SAFETY: the caller's promise is the same.
        let rack = unsafe { text("rack", rack) }?;
        let member = handles::open_member(endpoint)?;
        handles::set_rack(member, rack)?;
        Ok(member)
    })
}

/// Ends a member that has joined no team. Does nothing for another handle.
#[no_mangle]
pub extern "C" fn faro_member_release(member: u64) {
    run((), || {
        handles::release_member(member);
        Ok(())
    });
}

/// Copies a member's bootstrap id, a text without a NUL, and returns its length.
///
/// # Safety
/// `into` has room for `capacity` bytes, or `capacity` is 0.
#[no_mangle]
pub unsafe extern "C" fn faro_bootstrap_id(member: u64, into: *mut u8, capacity: usize) -> i64 {
    run(-1, || {
        let id = handles::bootstrap_id(member)?;
        // SAFETY: the caller's promise is the same.
        Ok(unsafe { copy_out(&id, into, capacity) } as i64)
    })
}

/// Joins the team of these `ranks` bootstrap ids, and returns its handle. The member's handle ends, also
/// with an error.
///
/// # Safety
/// `ids` has `ranks` texts that each end with a NUL.
#[no_mangle]
pub unsafe extern "C" fn faro_team_join(
    member: u64,
    rank: u32,
    ids: *const *const c_char,
    ranks: u32,
) -> u64 {
    run(0, || {
        let taken = handles::take_member(member)?;
        if ids.is_null() {
            return Err(Failure::Argument("ids are null".to_owned()));
        }
        let mut copied = Vec::new();
        for at in 0..ranks as usize {
            // SAFETY: `at` is below `ranks`, the number of pointers that the caller gives.
            let id = unsafe { *ids.add(at) };
            // SAFETY: the caller's promise is the same for each of the texts.
            let id = unsafe { text("a bootstrap id", id) }?;
            copied.push(id.as_bytes().to_vec());
        }
        Ok(handles::keep_team(taken.join(rank as usize, &copied)?))
    })
}

/// Keeps members behind slow links apart in rounds of groups. All members call it before their first
/// round, or none.
#[no_mangle]
pub extern "C" fn faro_team_keep_slow_apart(team: u64) -> i32 {
    run(-1, || {
        handles::keep_slow_apart(team)?;
        Ok(0)
    })
}

/// Runs one round: the values become their mean or sum over the members that the mode says. Other threads
/// may end it with `faro_team_leave`. Codes are those of Java's `Mode` and `TeamNative`; `element` is 1 for
/// floats and 2 for doubles.
///
/// # Safety
/// `values` are `count` floats or doubles that nothing else uses during the call.
#[allow(
    clippy::too_many_arguments,
    reason = "the parameters of a round, as in Java's call"
)]
#[no_mangle]
pub unsafe extern "C" fn faro_team_reduce(
    team: u64,
    values: *mut u8,
    count: u64,
    element: i32,
    mode: i32,
    group: i32,
    seed: u64,
    operation: i32,
    fail_on_nan: i32,
    timeout_millis: i64,
) -> i32 {
    run(-1, || {
        let held = handles::team(team)?;
        let (nan, millis) = (fail_on_nan != 0, timeout_millis);
        let settings = round::settings(mode, group, seed, operation, nan, millis)?;
        let mut team = held.for_a_round()?;
        match element {
            1 => {
                // SAFETY: the caller's promise is the same.
                let mut floats = unsafe { slice::<f32>(values, count) }?;
                team.all_reduce(&mut floats, &settings, &mut || false)?;
            }
            2 => {
                // SAFETY: the caller's promise is the same.
                let mut doubles = unsafe { slice::<f64>(values, count) }?;
                team.all_reduce(&mut doubles, &settings, &mut || false)?;
            }
            other => return Err(Failure::Argument(format!("element code {other}"))),
        }
        Ok(0)
    })
}

/// Leaves a team. A round on another thread ends with an error. Does nothing for another handle.
#[no_mangle]
pub extern "C" fn faro_team_leave(team: u64) {
    run((), || {
        handles::leave(team);
        Ok(())
    });
}

/// Returns the caller's values.
///
/// # Safety
/// `values` are `count` values that nothing else uses while the slice lives.
unsafe fn slice<'a, T>(values: *mut u8, count: u64) -> EntryResult<&'a mut [T]> {
    let values = values.cast::<T>();
    let count = usize::try_from(count)
        .ok()
        .filter(|count| {
            count
                .checked_mul(size_of::<T>())
                .is_some_and(|bytes| bytes <= isize::MAX as usize)
        })
        .ok_or_else(|| Failure::Argument(format!("{count} values")))?;
    if count == 0 {
        return Ok(&mut []);
    }
    if values.is_null() || !values.is_aligned() {
        let text = format!("values at {values:p}, which is null or not aligned for them");
        return Err(Failure::Argument(text));
    }
    // SAFETY: it is not null, aligned, of a length that Rust allows, and any bits are a float; the
    // caller says that so many values are there and that nothing else uses them.
    Ok(unsafe { std::slice::from_raw_parts_mut(values, count) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    fn last_error() -> String {
        let mut bytes = [0; 512];
        // SAFETY: it has room for its own length.
        let length = unsafe { faro_last_error(bytes.as_mut_ptr(), bytes.len()) };
        String::from_utf8_lossy(&bytes[..length.min(bytes.len())]).into_owned()
    }

    #[test]
    fn a_panic_is_an_error() {
        let failed = run(-1, || -> EntryResult<i32> { panic!("seven is {}", 7) });
        assert_eq!(failed, -1);
        assert!(last_error().ends_with("seven is 7"), "{}", last_error());
        assert_eq!(faro_last_error_is_argument(), 0);
    }

    #[test]
    fn wrong_arguments_are_errors() {
        // SAFETY: a null pointer is allowed.
        assert_eq!(unsafe { faro_endpoint_open(null()) }, 0);
        assert_eq!(last_error(), "settings is null");
        // SAFETY: the text ends with a NUL.
        assert_eq!(unsafe { faro_endpoint_open(c"port=-1".as_ptr()) }, 0);
        let text = "spark.faro.port is '-1', allowed: 0 to 65535";
        assert_eq!(last_error(), text);
        assert_eq!(faro_last_error_is_argument(), 1);
        // SAFETY: the text ends with a NUL.
        assert_eq!(unsafe { faro_member_open(1, c"".as_ptr()) }, 0);
        assert!(last_error().contains("endpoint handle 0x1 is not valid"));
        assert_eq!(faro_last_error_is_argument(), 0);
        assert_eq!(faro_endpoint_close(1), -1);
        // SAFETY: no pointer is read, as there is no such member.
        assert_eq!(unsafe { faro_team_join(1, 0, null(), 0) }, 0);
        assert_eq!(last_error(), "member 0x1 is not held (released twice?)");
        faro_member_release(1);
        faro_team_leave(1);
    }

    #[test]
    fn values_are_checked_before_they_are_reached() {
        // SAFETY: no value is reached: there are none, or the address is refused.
        let refused = unsafe {
            assert_eq!(slice::<f64>(std::ptr::null_mut(), 0).unwrap(), []);
            [
                slice::<f64>(std::ptr::null_mut(), 1).is_err(),
                slice::<f64>(8 as *mut u8, u64::MAX / 8).is_err(),
                slice::<f64>(9 as *mut u8, 1).is_err(),
            ]
        };
        assert_eq!(refused, [true; 3]);
    }
}
