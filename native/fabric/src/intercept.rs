//! A fabric around another one that intercepts some of its calls, for tests that inject faults or drive a network.

use crate::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, FabricError, FabricKind, Identity, Message,
    Read, RejectedPost, RemoteRange, RevokeStatus, Waker, Write, WriteSources,
};
use faro_pool::Lease;
use std::time::{Duration, Instant};

/// Takes calls of a fabric in its place. Each method calls the same one of `inner` unless it is
/// overridden; the calls that have no method in this trait always go to the inner fabric.
pub trait Intercept: Send {
    /// Takes a [`Fabric::send`].
    fn send(
        &mut self,
        inner: &mut dyn Fabric,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        inner.send(connection, message)
    }

    /// Takes a [`Fabric::write`].
    fn write(
        &mut self,
        inner: &mut dyn Fabric,
        connection: ConnectionId,
        write: Write,
    ) -> Result<(), RejectedPost<Write>> {
        inner.write(connection, write)
    }

    /// Takes a [`Fabric::poll`].
    fn poll(
        &mut self,
        inner: &mut dyn Fabric,
        events: &mut Vec<Event>,
        timeout: Duration,
    ) -> Result<(), FabricError> {
        inner.poll(events, timeout)
    }
}

/// A fabric, and what takes some of its calls.
pub struct InterceptedFabric<I> {
    inner: Box<dyn Fabric>,
    intercept: I,
}

impl<I: Intercept> InterceptedFabric<I> {
    /// Puts `intercept` before `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn Fabric>, intercept: I) -> Self {
        Self { inner, intercept }
    }
}

// The methods that `Fabric` has a default for are forwarded too: the default is not the inner one's.
impl<I: Intercept> Fabric for InterceptedFabric<I> {
    fn kind(&self) -> FabricKind {
        self.inner.kind()
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn connect(
        &mut self,
        location: &str,
        expected: &Identity,
        deadline: Instant,
    ) -> Result<ConnectionId, FabricError> {
        self.inner.connect(location, expected, deadline)
    }

    fn disconnect(&mut self, connection: ConnectionId, reason: CloseReason) {
        self.inner.disconnect(connection, reason);
    }

    fn connection_bytes(&self) -> u64 {
        self.inner.connection_bytes()
    }

    fn wants_fewer_connections(&self) -> bool {
        self.inner.wants_fewer_connections()
    }

    fn register(&mut self, lease: &Lease) -> Result<(), FabricError> {
        self.inner.register(lease)
    }

    fn expose(
        &mut self,
        connection: ConnectionId,
        exposure: Exposure,
    ) -> Result<RemoteRange, RejectedPost<Exposure>> {
        self.inner.expose(connection, exposure)
    }

    fn revoke(&mut self, key: u64) -> RevokeStatus {
        self.inner.revoke(key)
    }

    fn send(
        &mut self,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        let inner = self.inner.as_mut();
        self.intercept.send(inner, connection, message)
    }

    /// An interceptor may look at the bytes and change them, so they are in memory and summed.
    fn write_sources(&mut self, connection: ConnectionId) -> WriteSources {
        WriteSources {
            pipes: false,
            by_device: false,
            ..self.inner.write_sources(connection)
        }
    }

    fn write(&mut self, connection: ConnectionId, write: Write) -> Result<(), RejectedPost<Write>> {
        let inner = self.inner.as_mut();
        self.intercept.write(inner, connection, write)
    }

    fn read(&mut self, connection: ConnectionId, read: Read) -> Result<(), RejectedPost<Read>> {
        self.inner.read(connection, read)
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Duration) -> Result<(), FabricError> {
        let inner = self.inner.as_mut();
        self.intercept.poll(inner, events, timeout)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner.counters()
    }
}
