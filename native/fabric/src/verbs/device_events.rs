//! The device's events, and whether it is still there.

use super::device::{AsyncEvent, VerbsError};
use super::driver::{device_is_lost, Verbs};
use crate::reactor::driver::{DeviceLost, DeviceReport};
use crate::{CloseReason, ConnectionId, FabricError};
use std::time::{Duration, Instant};

/// A peer answers REVOKE within this time, or its connection is closed.
const REVOKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which sysfs is read for the device and its address; a read takes a few system calls.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Reports the loss of the device: every connection ends, so that callers use another fabric; a
/// later connect opens the device again.
pub(super) fn lost(what: &str) -> DeviceLost {
    log::warn!(
        "verbs: the RDMA device is lost: {what}; its peers are reached over TCP until it is back"
    );
    DeviceLost(format!("{}: {what}", device_is_lost()))
}

/// Takes the events that the device has for its user.
pub(super) fn take(driver: &mut Verbs) -> Vec<DeviceReport> {
    let mut reports = Vec::new();
    let Some(context) = &mut driver.context else {
        return reports;
    };
    let mut may_have_moved = None;
    while let Some(event) = context.device.next_async() {
        match event {
            AsyncEvent::QueuePair {
                number,
                fatal: true,
                what,
            } => {
                if let Some(connection) = driver.numbers.get(&number) {
                    let reason = CloseReason::Lost { detail: what };
                    reports.push(DeviceReport::Broken(*connection, reason));
                }
            }
            AsyncEvent::Device { what } => {
                reports.push(DeviceReport::Lost(lost(&what)));
                break;
            }
            AsyncEvent::Port { up: false, what } => log::warn!(
                "verbs: {what}; requests wait for the device's retries and then use TCP; check \
                 the cable or `ip link`"
            ),
            AsyncEvent::Port { up: true, what } => {
                log::info!("verbs: {what}");
                may_have_moved = Some(what);
            }
            AsyncEvent::Subnet { what } => {
                if !context.device.has_its_partition() {
                    reports.push(DeviceReport::Lost(lost("its partition (P_Key) changed")));
                    break;
                }
                may_have_moved = Some(what);
            }
            AsyncEvent::QueuePair { what, .. } | AsyncEvent::Other { what } => {
                log::debug!("verbs: {what}");
            }
            // The GID table may change after this event; `check` reads it regularly.
            AsyncEvent::Gids => {}
        }
    }
    let moved = may_have_moved.and_then(|what| Some((what, context.new_lid()?)));
    if let Some((what, [old, new])) = moved {
        let detail = format!("the port's LID changed from {old} to {new} ({what})");
        log::info!("verbs: {detail}; its connections are made anew");
        let broken = |connection: &ConnectionId| {
            let detail = detail.clone();
            DeviceReport::Broken(*connection, CloseReason::Lost { detail })
        };
        // A peer's packets go to the old one.
        reports.extend(driver.numbers.values().map(broken));
    }
    reports
}

/// Checks whether the device is still there and registers memory, and whether a peer is late with
/// the confirmation of a revocation.
pub(super) fn check(driver: &mut Verbs) -> Vec<DeviceReport> {
    if let Err(lost) = check_device(driver) {
        return vec![DeviceReport::Lost(lost)];
    }
    late_revocation(driver).into_iter().collect()
}

/// Checks for a removed device: some drivers (rdma_rxe) remove a device without an event, and wait
/// for all users that have it open.
fn check_device(driver: &mut Verbs) -> Result<(), DeviceLost> {
    let Some(context) = &mut driver.context else {
        return Ok(());
    };
    if context.checked.elapsed() >= CHECK_EVERY {
        context.checked = Instant::now();
        if !context.device.is_there() {
            return Err(lost("it was deleted"));
        }
        if !context.device.has_its_gid() {
            return Err(lost("its address (GID) changed"));
        }
    }
    let followed = context.registrations.follow();
    followed.map_err(|error| lost(&error.to_string()))
}

/// Reports the connection of a peer that does not answer REVOKE. It is closed to get the memory
/// back.
fn late_revocation(driver: &Verbs) -> Option<DeviceReport> {
    let now = Instant::now();
    let late = driver
        .revoking
        .values()
        .find(|revoking| now.duration_since(revoking.since) > REVOKE_TIMEOUT)?;
    let reason = CloseReason::Bound {
        what: "seconds for letting go of memory",
        limit: REVOKE_TIMEOUT.as_secs(),
    };
    Some(DeviceReport::Broken(late.connection, reason))
}

/// An error of the device is one of the fabric.
impl From<VerbsError> for FabricError {
    fn from(error: VerbsError) -> Self {
        Self::Unavailable {
            fabric: "verbs",
            reason: error.to_string(),
            absent: matches!(error, VerbsError::NoDevice { .. }),
        }
    }
}
