//! `io.faro.collective.TeamNative`: members and teams by handle, rounds on the caller's thread; and
//! the same for processes without a JVM, as functions of C (`c_interface`).

mod c_interface;
mod handles;
mod heap_array;
mod round;

use crate::throw::{EntryResult, Failure, TypedErrors};
use jni::objects::{JByteArray, JClass, JObjectArray};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;

/// `TeamNative.member`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_member<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> { Ok(handles::open_member(endpoint)? as jlong) })
        .resolve::<TypedErrors>()
}

/// `TeamNative.setRack`, in UTF-8.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_setRack<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    member: jlong,
    rack: JByteArray<'local>,
) {
    env.with_env(|env| -> EntryResult<()> {
        let rack = String::from_utf8(env.convert_byte_array(&rack)?)
            .map_err(|error| Failure::Argument(format!("rack: {error}")))?;
        handles::set_rack(member as u64, &rack)
    })
    .resolve::<TypedErrors>();
}

/// `TeamNative.bootstrapId`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_bootstrapId<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    member: jlong,
) -> JByteArray<'local> {
    env.with_env(|env| -> EntryResult<JByteArray<'local>> {
        let id = handles::bootstrap_id(member as u64)?;
        Ok(env.byte_array_from_slice(&id)?)
    })
    .resolve::<TypedErrors>()
}

/// `TeamNative.releaseMember`; a member that has joined or was released stays so.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_releaseMember<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    member: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        handles::release_member(member as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}

/// `TeamNative.join`; the member's handle ends, also with an error.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_join<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    member: jlong,
    rank: jint,
    bootstrap_ids: JObjectArray<'local, JByteArray<'local>>,
) -> jlong {
    env.with_env(|env| -> EntryResult<jlong> {
        let taken = handles::take_member(member as u64)?;
        let rank = usize::try_from(rank)
            .map_err(|_| Failure::Argument(format!("rank {rank} is negative")))?;
        let mut ids = Vec::new();
        for at in 0..bootstrap_ids.len(env)? {
            let id = bootstrap_ids.get_element(env, at)?;
            if id.is_null() {
                return Err(Failure::Argument(format!("bootstrap id {at} is null")));
            }
            ids.push(env.convert_byte_array(&id)?);
            // Java frees local references when the call returns; a large team has many.
            env.delete_local_ref(id);
        }
        Ok(handles::keep_team(taken.join(rank, &ids)?) as jlong)
    })
    .resolve::<TypedErrors>()
}

/// `TeamNative.keepSlowApart`; before the first round.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_keepSlowApart<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    team: jlong,
) {
    env.with_env(|_| -> EntryResult<()> { handles::keep_slow_apart(team as u64) })
        .resolve::<TypedErrors>();
}

/// `TeamNative.leave`: ends the handle, and a round on another thread with an error.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_leave<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    team: jlong,
) {
    env.with_env(|_| -> EntryResult<()> {
        handles::leave(team as u64);
        Ok(())
    })
    .resolve::<TypedErrors>();
}
