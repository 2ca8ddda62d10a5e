//! The device of a fabric: its completions, broken queue pairs and loss, each to its connection.

use super::driver::{DeviceLost, DeviceReport, Driver};
use super::table::ConnectionTable;
use crate::{CloseReason, ConnectionId};

/// Maximum number of batches of completions taken from one queue in one turn, so that sockets and
/// deadlines are served too.
const TURN_BATCHES: usize = 128;

/// Asks the device for a wake-up before a wait. Returns true if there is work already.
pub(super) fn arm<D: Driver>(table: &mut ConnectionTable<D>) -> bool {
    // Arming is a system call, and so is taking the wake-up, so completions that are there come first.
    if found_completions(table) {
        return true;
    }
    match table.common.driver.arm() {
        // A completion between the last look and the arming causes no wake-up.
        Ok(true) => found_completions(table),
        Ok(false) => false,
        Err(lost) => {
            lose_device(table, &lost);
            true
        }
    }
}

fn found_completions<D: Driver>(table: &mut ConnectionTable<D>) -> bool {
    let found = take_completions(table);
    table.flush();
    found
}

/// Handles, after a wait, the device's events and completions, and what is due.
pub(super) fn take_turn<D: Driver>(table: &mut ConnectionTable<D>) {
    let reports = table.common.driver.take_events();
    route(table, reports);
    take_completions(table);
    let reports = table.common.driver.check();
    route(table, reports);
}

/// Takes up to a turn's number of completions from each completion queue, and passes each to its
/// connection. Returns true if there was one or the device was lost, so that the caller has events.
fn take_completions<D: Driver>(table: &mut ConnectionTable<D>) -> bool {
    let mut batch = Vec::new();
    let mut found = false;
    for queue in 0..table.common.driver.queues() {
        for _ in 0..TURN_BATCHES {
            if let Err(lost) = table.common.driver.take_completions(queue, &mut batch) {
                lose_device(table, &lost);
                return true;
            }
            if batch.is_empty() {
                break;
            }
            found = true;
            for (connection, completion) in batch.drain(..) {
                completed(table, connection, completion);
            }
        }
    }
    found
}

fn completed<D: Driver>(
    table: &mut ConnectionTable<D>,
    connection: ConnectionId,
    completion: D::Completion,
) {
    // Without an entry the connection has ended; its close state keeps the memory.
    let Some((found, common)) = table.get(connection) else {
        return;
    };
    if let Err(reason) = D::completed(found, common, completion) {
        table.close(connection, reason);
    }
}

fn route<D: Driver>(table: &mut ConnectionTable<D>, reports: Vec<DeviceReport>) {
    for report in reports {
        match report {
            DeviceReport::Broken(connection, reason) => table.close(connection, reason),
            DeviceReport::Lost(lost) => lose_device(table, &lost),
        }
    }
}

/// Ends every connection, because the device cannot be used any more, so that callers use another
/// fabric. A later connect opens the device again.
fn lose_device<D: Driver>(table: &mut ConnectionTable<D>, lost: &DeviceLost) {
    let detail = lost.0.clone();
    table.close_all(&CloseReason::Lost { detail });
    table.common.driver.close_device();
}
