//! Ends a connection: sends GOODBYE to the peer, ends its pending operations, reports `Closed`.
//! It is not on the datapath.

use super::carrier::{send_all, Carrier};
use super::connection::{Common, FabricConnection};
use super::context::Context;
use super::handshake::seals;
use super::state::{ConnectionPhase, FabricShared, Session};
use crate::frame::bodies::{Goodbye, GoodbyeCode};
use crate::frame::outgoing::{Frame, SendCompletion};
use crate::{CloseReason, Event, Outcome};
use faro_wire::kind;

/// Sends the peer GOODBYE, if it can read one. Returns whether the kernel or the device has it.
pub(crate) fn say_goodbye<D: Carrier>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
    reason: &CloseReason,
) -> bool {
    let (Some((code, text)), true) = (
        goodbye(reason),
        reads_goodbye(&connection.session, &common.shared),
    ) else {
        return false;
    };
    let mut cx = connection.context(&mut common.shared);
    cx.push_verdicts();
    let body = Goodbye::encode(code, &text);
    cx.push(Frame::owned(
        kind::GOODBYE,
        0,
        body,
        SendCompletion::Nothing,
    ));
    send_all(connection, common)
}

/// Reports the end of every pending operation, and `Closed` if the caller knows the connection.
/// `goodbye_sent` says that the peer was sent GOODBYE. Returns the memory that the peer may use until it
/// has ended its side.
pub(crate) fn report_end<D: Carrier>(
    session: &mut Session,
    state: D::State,
    common: &mut Common<D>,
    reason: CloseReason,
    goodbye_sent: bool,
) -> Option<D::CloseState> {
    let counters = &mut common.shared.counters;
    counters.closed += 1;
    if matches!(
        reason,
        CloseReason::Protocol(_) | CloseReason::Tampered(_) | CloseReason::Bound { .. }
    ) {
        counters.protocol_errors += 1;
    }
    if session.phase != ConnectionPhase::OpenConnection {
        counters.handshakes_failed += 1;
    }
    let mut cx = Context::new(session, &mut common.shared);
    let abandoned = cx.session.outbound.abandon();
    // The driver's operations were sent before those that are still queued.
    let close_state = common.driver.on_closed(&mut cx, state, goodbye_sent);
    for ends in abandoned {
        cx.ended(ends, true);
    }
    let mut reads: Vec<_> = cx.session.reads.drain().collect();
    reads.sort_unstable_by_key(|(sequence, _)| *sequence);
    for (_, read) in reads {
        cx.read_ended(read, Outcome::Flushed);
    }
    let reason = match (&cx.session.phase, &cx.session.expected, reason) {
        (ConnectionPhase::OpenConnection, _, reason) => reason,
        (_, None, reason) => {
            log::debug!("a connection ended before it had proven who it is: {reason}");
            return close_state;
        }
        (_, Some((_, location)), CloseReason::Lost { detail }) => CloseReason::Unreachable {
            location: location.clone(),
            detail,
        },
        (_, Some(_), reason) => reason,
    };
    let connection = cx.connection;
    cx.event(Event::Closed { connection, reason });
    close_state
}

/// Returns whether the peer could read a GOODBYE.
fn reads_goodbye(session: &Session, shared: &FabricShared) -> bool {
    match session.phase {
        ConnectionPhase::Connecting => false,
        // The connector reads WELCOME before it takes records, and it takes nothing else from then
        // on.
        ConnectionPhase::AwaitProof => !seals(shared.fabric, shared.protection),
        ConnectionPhase::AwaitWelcome
        | ConnectionPhase::AwaitHello
        | ConnectionPhase::Pairing
        | ConnectionPhase::OpenConnection => true,
    }
}

/// Returns the code and text of the GOODBYE for a reason; `None` if the peer is gone or sent its
/// own.
fn goodbye(reason: &CloseReason) -> Option<(GoodbyeCode, String)> {
    let code = match reason {
        CloseReason::Local | CloseReason::Unable { .. } => GoodbyeCode::Closing,
        CloseReason::Protocol(_) | CloseReason::Tampered(_) => GoodbyeCode::Protocol,
        CloseReason::Unproven(_) | CloseReason::Protection { .. } => GoodbyeCode::Unproven,
        CloseReason::Bound { .. } => GoodbyeCode::Bound,
        CloseReason::Peer { .. } | CloseReason::Lost { .. } | CloseReason::Unreachable { .. } => {
            return None;
        }
    };
    let text = match reason {
        CloseReason::Local => "closed normally".to_owned(),
        reason => reason.to_string(),
    };
    Some((code, text))
}
