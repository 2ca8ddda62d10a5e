//! Carries the frames of a connection: over its socket, or by its fabric's own means once it is
//! open.

use super::connection::{Common, FabricConnection};
use super::over_socket;
pub(crate) use super::over_socket::SocketTurn;
use super::socket::Socket as _;
use super::state::ConnectionPhase;
use super::transport::Datapath;
use crate::CloseReason;
use std::io;
use std::net::Shutdown;

/// After a failed send, turns in which this side still receives to find the peer's GOODBYE.
const LAST_TURNS: usize = 8;

/// Moves the bytes of one open connection. The default methods use its socket.
pub(crate) trait Carrier: Datapath {
    /// Receives from an open connection until nothing is left or its turn is over.
    fn receive(
        connection: &mut FabricConnection<Self>,
        common: &mut Common<Self>,
    ) -> Result<SocketTurn, CloseReason> {
        over_socket::receive(connection, common)
    }
    /// Sends an open connection's queue, as far as possible without waiting.
    fn send(connection: &mut FabricConnection<Self>, common: &mut Common<Self>) -> io::Result<()> {
        over_socket::send(connection, common)
    }
    /// Ends the sending direction after GOODBYE. Returns false if the socket is broken.
    fn end_sending(socket: &Self::Socket) -> bool {
        socket.shutdown(Shutdown::Write).is_ok()
    }
}

/// Receives from a connection in any phase until it is drained or its turn is over.
pub(crate) fn receive<D: Carrier>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> Result<SocketTurn, CloseReason> {
    match connection.session.phase {
        ConnectionPhase::OpenConnection => D::receive(connection, common),
        ConnectionPhase::Connecting
        | ConnectionPhase::AwaitWelcome
        | ConnectionPhase::AwaitHello
        | ConnectionPhase::AwaitProof
        | ConnectionPhase::Pairing => over_socket::receive(connection, common),
    }
}

/// Sends a connection's queue in any phase, as far as the kernel takes it in one turn.
pub(crate) fn send<D: Carrier>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> io::Result<()> {
    connection.context(&mut common.shared).push_verdicts();
    match connection.session.phase {
        ConnectionPhase::OpenConnection => D::send(connection, common),
        ConnectionPhase::Connecting
        | ConnectionPhase::AwaitWelcome
        | ConnectionPhase::AwaitHello
        | ConnectionPhase::AwaitProof
        | ConnectionPhase::Pairing => over_socket::send(connection, common),
    }
}

/// Sends until the queue is empty (true) or the kernel takes no more.
pub(crate) fn send_all<D: Carrier>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
) -> bool {
    loop {
        if send(connection, common).is_err() {
            return false;
        }
        if !connection.has_unsent() {
            return true;
        }
        if !connection.writable {
            return false;
        }
    }
}

/// Returns why a connection whose send failed ends. The peer's GOODBYE explains it better than the
/// error of the send, so the socket is read first; for a few turns only, because a peer may send
/// without end.
pub(crate) fn after_failed_send<D: Carrier>(
    connection: &mut FabricConnection<D>,
    common: &mut Common<D>,
    error: &io::Error,
) -> CloseReason {
    for _ in 0..LAST_TURNS {
        match receive(connection, common) {
            Ok(SocketTurn::CutOff) => {}
            Ok(SocketTurn::Drained) => break,
            Err(reason) => return reason,
        }
    }
    let detail = format!("cannot send: {error}");
    CloseReason::Lost { detail }
}
