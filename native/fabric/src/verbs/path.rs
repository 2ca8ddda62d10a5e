//! How the frames of an open connection travel, and what wakes the reactor for them.

use super::driver::Verbs;
use crate::stream::driver::FramePath;
use crate::stream::reactor::{Reactor, DEVICE};
use crate::stream::session::Context;
use crate::stream::socket::Socket as _;
use crate::stream::turns::Turn;
use crate::{CloseReason, ConnectionId};
use mio::net::TcpStream;
use std::io::{self, IoSliceMut};

/// How the frames of an open connection travel: in segments of its queue pair. The socket is
/// received from only to notice its end.
pub(crate) struct OverQueuePair;

impl FramePath<Verbs> for OverQueuePair {
    fn receive(
        reactor: &mut Reactor<Verbs>,
        connection: ConnectionId,
    ) -> Result<Turn, CloseReason> {
        match reactor.conns.get_mut(&connection.0) {
            Some(conn) => watch_for_end(&mut conn.socket),
            None => Ok(Turn::Drained),
        }
    }

    fn send(reactor: &mut Reactor<Verbs>, connection: ConnectionId) -> io::Result<()> {
        let Some(conn) = reactor.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let mut cx = Context {
            connection,
            session: &mut conn.session,
            shared: &mut reactor.shared,
        };
        conn.writable = match &mut conn.state {
            Some(queue_pair) => {
                let sealed = conn.sealed.as_deref_mut();
                reactor.driver.transmit(&mut cx, queue_pair, sealed)?
            }
            None => false,
        };
        Ok(())
    }

    /// The socket stays open: GOODBYE leaves by the queue pair, and the end of the socket would
    /// overtake it.
    fn end_sending(_socket: &TcpStream) -> bool {
        true
    }

    fn watch(driver: &mut Verbs, registry: &mio::Registry) -> io::Result<()> {
        driver.registry = Some(registry.try_clone()?);
        match &driver.context {
            Some(context) => context.watch(registry),
            None => Ok(()),
        }
    }

    fn signalled(driver: &mut Verbs, token: mio::Token) {
        for (at, known) in DEVICE.iter().enumerate() {
            driver.signalled[at] |= *known == token;
        }
    }

    fn before_wait(reactor: &mut Reactor<Verbs>) -> bool {
        reactor.arm_device()
    }

    fn after_wait(reactor: &mut Reactor<Verbs>) {
        reactor.device_turn();
    }
}

/// Notices the end of a socket that carries nothing more.
fn watch_for_end(socket: &mut TcpStream) -> Result<Turn, CloseReason> {
    let mut nothing = [0; 1];
    let detail = match socket.receive(&mut [IoSliceMut::new(&mut nothing)]) {
        Ok(0) => "the peer ended the control connection".to_owned(),
        Ok(_) => "bytes on the control connection after the queue pairs were connected".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Turn::Drained),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Turn::CutOff),
        Err(error) => format!("control connection: {error}"),
    };
    Err(CloseReason::Lost { detail })
}
