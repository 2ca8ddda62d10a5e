//! Interface of one fabric to the event loop: how connections begin, and what a device reports.
//!
//! A device never acts on connections by itself. It returns completions and reports, and the event
//! loop passes each to its connection.

use super::listener::ListenSocket;
use super::unauthenticated::Origin;
use crate::session::carrier::Carrier;
use crate::session::connection::{Common, FabricConnection};
use crate::{CloseReason, ConnectionId, FabricError};
use std::io;

/// The tokens of a device's descriptors.
pub(crate) const DEVICE: [mio::Token; 3] = [
    mio::Token(usize::MAX - 2),
    mio::Token(usize::MAX - 3),
    mio::Token(usize::MAX - 4),
];

/// The device cannot be used any more; why, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceLost(pub(crate) String);

/// A device's report, beside completions.
#[derive(Debug)]
pub(crate) enum DeviceReport {
    /// A connection cannot be used any more.
    Broken(ConnectionId, CloseReason),
    /// No connection can be used any more.
    Lost(DeviceLost),
}

/// The reactor that an accepted connection belongs to, as far as its first bytes tell.
pub(crate) enum Owner<S> {
    /// This reactor, which receives from it.
    Here,
    /// Not known before more bytes have come.
    Later,
    /// None: the connection ends.
    Refused(CloseReason),
    /// Another one. Has what hands the socket and its origin over.
    Other(Box<dyn FnOnce(S, Origin)>),
}

/// A fabric's driver. The methods from `watch` on are for fabrics with a device.
pub(crate) trait Driver: Carrier {
    /// Accepts connections.
    type Listener: ListenSocket<Socket = Self::Socket>;
    /// A device's word on a piece of work of one connection; `()` without a device.
    type Completion;

    /// Starts to connect. The outer error: `location` is not one of this fabric.
    fn start(&mut self, location: &str) -> Result<io::Result<Self::Socket>, FabricError>;

    /// True if accepted connections are passed on to other reactors: then `owner` is called.
    const PASSES_ON: bool = false;
    /// Finds the reactor of an accepted connection that has received nothing yet.
    fn owner(&self, _socket: &Self::Socket) -> Owner<Self::Socket> {
        Owner::Here
    }

    /// Called once: registers the device's descriptors, under [`DEVICE`] tokens.
    fn watch(&mut self, _registry: &mio::Registry) -> io::Result<()> {
        Ok(())
    }
    /// Called when the descriptor of that token is ready.
    fn signalled(&mut self, _token: mio::Token) {}
    /// Asks for a wake-up by the next completion. Returns false if there is no device.
    fn arm(&mut self) -> Result<bool, DeviceLost> {
        Ok(false)
    }
    fn queues(&self) -> usize {
        0
    }
    /// Takes a batch of completions from a queue; none: it is empty, or is no more.
    fn take_completions(
        &mut self,
        _queue: usize,
        _batch: &mut Vec<(ConnectionId, Self::Completion)>,
    ) -> Result<(), DeviceLost> {
        Ok(())
    }
    /// Handles a completion of this connection.
    fn completed(
        _connection: &mut FabricConnection<Self>,
        _common: &mut Common<Self>,
        _completion: Self::Completion,
    ) -> Result<(), CloseReason> {
        Ok(())
    }
    /// Takes wake-ups and the device's events, after a wait.
    fn take_events(&mut self) -> Vec<DeviceReport> {
        Vec::new()
    }
    /// Reports, after a wait, whether the device is still there, and connections whose time is
    /// over.
    fn check(&mut self) -> Vec<DeviceReport> {
        Vec::new()
    }
    /// Closes a lost device; its connections were closed before.
    fn close_device(&mut self) {}
}
