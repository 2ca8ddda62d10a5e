//! Carries the frames of an open connection in segments of its queue pair, and takes the device's
//! reports.

use super::completions;
use super::connect_threads::ConnectResult;
use super::control;
use super::device;
use super::device_events;
use super::driver::Verbs;
use super::setup;
use super::transmit::transmit;
use super::work_id::{parse_id, WorkId};
use crate::reactor::driver::{DeviceLost, DeviceReport, Driver, DEVICE};
use crate::session::carrier::{Carrier, SocketTurn};
use crate::session::connection::{Common, FabricConnection};
use crate::session::context::Context;
use crate::session::socket::Socket as _;
use crate::tcp::StreamListener;
use crate::{CloseReason, ConnectionId, FabricError};
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::Interest;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

/// The socket is received from only to notice its end.
impl Carrier for Verbs {
    fn receive(
        connection: &mut FabricConnection<Self>,
        _common: &mut Common<Self>,
    ) -> Result<SocketTurn, CloseReason> {
        watch_for_end(&mut connection.socket)
    }

    fn send(connection: &mut FabricConnection<Self>, common: &mut Common<Self>) -> io::Result<()> {
        let mut cx = Context::new(&mut connection.session, &mut common.shared);
        connection.writable = match &mut connection.state {
            Some(queue_pair) => {
                let records = connection.records.as_deref_mut();
                transmit(&mut common.driver, &mut cx, queue_pair, records)?
            }
            None => false,
        };
        Ok(())
    }

    /// Leaves the socket open: GOODBYE is sent by the queue pair, and the end of the socket would
    /// overtake it.
    fn end_sending(_socket: &TcpStream) -> bool {
        true
    }
}

/// What ended for a connection.
pub(crate) enum VerbsCompletion {
    Work(WorkId, device::WorkCompletion),
    /// Its queue pair is connected, or cannot be.
    Connected(ConnectResult),
}

impl Driver for Verbs {
    type Listener = StreamListener;
    type Completion = VerbsCompletion;

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        let address = setup::parse(location)?;
        Ok(match self.context() {
            Ok(_) => setup::connect(address),
            Err(detail) => Err(io::Error::other(detail)),
        })
    }

    fn watch(&mut self, registry: &mio::Registry) -> io::Result<()> {
        self.registry = Some(registry.try_clone()?);
        let (connected, token) = (self.connecting.fd().as_raw_fd(), DEVICE[2]);
        registry.register(&mut SourceFd(&connected), token, Interest::READABLE)?;
        match &self.context {
            Some(context) => context.watch(registry),
            None => Ok(()),
        }
    }

    fn signalled(&mut self, token: mio::Token) {
        for (at, known) in DEVICE.iter().enumerate() {
            self.signalled[at] |= *known == token;
        }
    }

    fn arm(&mut self) -> Result<bool, DeviceLost> {
        let Some(context) = &mut self.context else {
            return Ok(false);
        };
        let armed = context.arm();
        armed.map_err(|error| device_events::lost(&error.to_string()))?;
        Ok(true)
    }

    fn queues(&self) -> usize {
        self.context.as_ref().map_or(0, |open| open.queues())
    }

    fn take_completions(
        &mut self,
        queue: usize,
        batch: &mut Vec<(ConnectionId, Self::Completion)>,
    ) -> Result<(), DeviceLost> {
        if queue == 0 {
            let connected = self.connected.drain(..);
            batch.extend(
                connected.map(|result| (result.connection, VerbsCompletion::Connected(result))),
            );
        }
        let Some(context) = &self.context else {
            return Ok(());
        };
        let polled = context.poll(queue, &mut self.batch);
        polled.map_err(|error| device_events::lost(&error.to_string()))?;
        self.tally.completions += self.batch.len() as u64;
        batch.extend(self.batch.drain(..).map(|completion| {
            let (connection, id) = parse_id(completion.id);
            (
                ConnectionId(connection),
                VerbsCompletion::Work(id, completion),
            )
        }));
        Ok(())
    }

    fn completed(
        connection: &mut FabricConnection<Self>,
        common: &mut Common<Self>,
        completion: Self::Completion,
    ) -> Result<(), CloseReason> {
        match completion {
            VerbsCompletion::Work(id, completion) => {
                completions::completed(connection, common, id, &completion)
            }
            VerbsCompletion::Connected(result) => control::connected(connection, common, result),
        }
    }

    fn take_events(&mut self) -> Vec<DeviceReport> {
        // `check` takes the queue pairs that were connected.
        let [channel, events, _] = std::mem::take(&mut self.signalled);
        if channel {
            self.tally.wakeups += 1;
            if let Some(context) = &mut self.context {
                context.drain();
            }
        }
        match events {
            true => device_events::take(self),
            false => Vec::new(),
        }
    }

    fn check(&mut self) -> Vec<DeviceReport> {
        self.take_connected();
        device_events::check(self)
    }

    fn close_device(&mut self) {
        self.close_context();
    }
}

/// Notices the end of a socket that carries nothing more.
fn watch_for_end(socket: &mut TcpStream) -> Result<SocketTurn, CloseReason> {
    let mut nothing = [0; 1];
    let detail = match socket.receive(&mut [IoSliceMut::new(&mut nothing)]) {
        Ok(0) => "the peer ended the control connection".to_owned(),
        Ok(_) => "bytes on the control connection after the queue pairs were connected".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(SocketTurn::Drained),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(SocketTurn::CutOff),
        Err(error) => format!("control connection: {error}"),
    };
    Err(CloseReason::Lost { detail })
}
