//! Members and teams by handle, for the entry points of Java and of C.

use crate::endpoints;
use crate::registry::{lock, Registry};
use crate::throw::{EntryResult, Failure};
use faro_endpoint::collective::{Closer, Team, TeamMember};
use jni::sys::jlong;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// A team, and what ends it from another thread.
pub(super) struct HeldTeam {
    team: Mutex<Team>,
    closer: Closer,
}

impl HeldTeam {
    /// Returns the team for one round.
    ///
    /// # Errors
    /// `State` while another thread runs a round.
    pub(super) fn for_a_round(&self) -> EntryResult<MutexGuard<'_, Team>> {
        match self.team.try_lock() {
            Ok(team) => Ok(team),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let text = "another thread runs a round of this team";
                Err(Failure::State(text.to_owned()))
            }
        }
    }
}

/// Members that have joined no team yet; `None` after one was taken out to join.
static MEMBERS: Registry<Arc<Mutex<Option<TeamMember>>>> = Registry::new();
static TEAMS: Registry<Arc<HeldTeam>> = Registry::new();

fn no_member(handle: u64) -> Failure {
    let what = "member";
    Failure::NotHeld { what, handle }
}

/// Makes a member on an endpoint.
pub(super) fn open_member(endpoint: jlong) -> EntryResult<u64> {
    let member = endpoints::get(endpoint)?.endpoint.member()?;
    Ok(MEMBERS.insert(Arc::new(Mutex::new(Some(member)))))
}

pub(super) fn bootstrap_id(member: u64) -> EntryResult<Vec<u8>> {
    let held = MEMBERS.get(member).ok_or_else(|| no_member(member))?;
    let held = lock(&held);
    let member = held.as_ref().ok_or_else(|| no_member(member))?;
    Ok(member.bootstrap_id())
}

/// Says in which rack a member is.
pub(super) fn set_rack(member: u64, rack: &str) -> EntryResult<()> {
    let held = MEMBERS.get(member).ok_or_else(|| no_member(member))?;
    let mut held = lock(&held);
    let member = held.as_mut().ok_or_else(|| no_member(member))?;
    member.set_rack(rack);
    Ok(())
}

/// Ends a member that has joined no team. Does nothing for another handle.
pub(super) fn release_member(member: u64) {
    drop(MEMBERS.remove(member));
}

/// Takes a member out to join; its handle ends.
pub(super) fn take_member(member: u64) -> EntryResult<TeamMember> {
    let held = MEMBERS.remove(member).ok_or_else(|| no_member(member))?;
    let taken = lock(&held).take();
    taken.ok_or_else(|| no_member(member))
}

/// Keeps a team and returns its handle.
pub(super) fn keep_team(team: Team) -> u64 {
    let closer = team.closer();
    let team = Mutex::new(team);
    TEAMS.insert(Arc::new(HeldTeam { team, closer }))
}

pub(super) fn team(handle: u64) -> EntryResult<Arc<HeldTeam>> {
    let what = "team";
    TEAMS.get(handle).ok_or(Failure::NotHeld { what, handle })
}

/// Keeps slow members apart; before the first round.
pub(super) fn keep_slow_apart(handle: u64) -> EntryResult<()> {
    team(handle)?.for_a_round()?.keep_slow_apart();
    Ok(())
}

/// Ends the handle, and a round on another thread with an error. Does nothing for another handle.
pub(super) fn leave(team: u64) {
    if let Some(held) = TEAMS.remove(team) {
        held.closer.close();
    }
}
