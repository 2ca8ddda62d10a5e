//! `io.faro.collective.TeamNative`: members and teams by handle, rounds on the caller's thread.

mod heap_array;
mod round;

use crate::endpoints;
use crate::registry::Registry;
use crate::throw::{EntryResult, Failure, TypedErrors};
use faro_endpoint::collective::{Closer, Team, TeamMember};
use jni::objects::{JByteArray, JClass, JObjectArray};
use jni::sys::{jint, jlong};
use jni::EnvUnowned;
use std::sync::{Arc, Mutex, PoisonError};

/// A team, and what ends it from another thread.
struct HeldTeam {
    team: Mutex<Team>,
    closer: Closer,
}

/// Members that have joined no team yet; `None` after `join` has taken one out.
static MEMBERS: Registry<Arc<Mutex<Option<TeamMember>>>> = Registry::new();
static TEAMS: Registry<Arc<HeldTeam>> = Registry::new();

fn no_member(handle: jlong) -> Failure {
    Failure::NotHeld {
        what: "member",
        handle: handle as u64,
    }
}

fn team(handle: jlong) -> EntryResult<Arc<HeldTeam>> {
    TEAMS.get(handle as u64).ok_or(Failure::NotHeld {
        what: "team",
        handle: handle as u64,
    })
}

/// `TeamNative.member`.
#[no_mangle]
pub extern "system" fn Java_io_faro_collective_TeamNative_member<'local>(
    mut env: EnvUnowned<'local>,
    _class: JClass<'local>,
    endpoint: jlong,
) -> jlong {
    env.with_env(|_| -> EntryResult<jlong> {
        let member = endpoints::get(endpoint)?.endpoint.member()?;
        Ok(MEMBERS.insert(Arc::new(Mutex::new(Some(member)))) as jlong)
    })
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
        let held = MEMBERS
            .get(member as u64)
            .ok_or_else(|| no_member(member))?;
        let mut guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        guard
            .as_mut()
            .ok_or_else(|| no_member(member))?
            .set_rack(&rack);
        Ok(())
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
        let held = MEMBERS
            .get(member as u64)
            .ok_or_else(|| no_member(member))?;
        let guard = held.lock().unwrap_or_else(PoisonError::into_inner);
        let id = guard
            .as_ref()
            .ok_or_else(|| no_member(member))?
            .bootstrap_id();
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
        drop(MEMBERS.remove(member as u64));
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
        let held = MEMBERS
            .remove(member as u64)
            .ok_or_else(|| no_member(member))?;
        let taken = held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .ok_or_else(|| no_member(member))?;
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
        let team = taken.join(rank, &ids)?;
        let closer = team.closer();
        let team = Mutex::new(team);
        Ok(TEAMS.insert(Arc::new(HeldTeam { team, closer })) as jlong)
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
    env.with_env(|_| -> EntryResult<()> {
        let held = self::team(team)?;
        let mut team = held.team.lock().unwrap_or_else(PoisonError::into_inner);
        team.keep_slow_apart();
        Ok(())
    })
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
        if let Some(held) = TEAMS.remove(team as u64) {
            held.closer.close();
        }
        Ok(())
    })
    .resolve::<TypedErrors>();
}
