//! [`crate::Fabric`] over a reactor: one piece of code for all fabrics.

/// Defines the public type of a fabric: a reactor with its driver, and the location where peers
/// reach it.
macro_rules! reactor_fabric {
    ($(#[$doc:meta])* $name:ident, $driver:ty) => {
        $(#[$doc])*
        pub struct $name {
            reactor: $crate::reactor::event_loop::Reactor<$driver>,
            location: String,
        }

        impl $crate::Fabric for $name {
            fn kind(&self) -> $crate::FabricKind {
                <$driver as $crate::session::transport::Transport>::KIND
            }
            fn location(&self) -> String {
                self.location.clone()
            }
            fn waker(&self) -> $crate::Waker {
                self.reactor.waker()
            }
            fn connect(
                &mut self,
                location: &str,
                expected: &$crate::Identity,
                deadline: std::time::Instant,
            ) -> Result<$crate::ConnectionId, $crate::FabricError> {
                self.reactor.connect(location, expected, deadline)
            }
            fn disconnect(&mut self, connection: $crate::ConnectionId, reason: $crate::CloseReason) {
                self.reactor.close(connection, reason);
            }
            fn connection_bytes(&self) -> u64 {
                $crate::session::transport::Transport::connection_bytes(self.reactor.driver())
            }
            fn wants_fewer_connections(&self) -> bool {
                $crate::session::transport::Transport::wants_fewer_connections(self.reactor.driver())
            }
            fn register(&mut self, lease: &faro_pool::Lease) -> Result<(), $crate::FabricError> {
                $crate::session::transport::Datapath::register(self.reactor.driver_mut(), lease)
            }
            fn expose(
                &mut self,
                connection: $crate::ConnectionId,
                exposure: $crate::Exposure,
            ) -> Result<$crate::RemoteRange, $crate::RejectedPost<$crate::Exposure>> {
                self.reactor.expose(connection, exposure)
            }
            fn revoke(&mut self, key: u64) -> $crate::RevokeStatus {
                self.reactor.revoke(key)
            }
            fn send(
                &mut self,
                connection: $crate::ConnectionId,
                message: $crate::Message,
            ) -> Result<(), $crate::RejectedPost<$crate::Message>> {
                $crate::session::operations::send(self.reactor.open(connection), connection, message)
            }
            fn write(
                &mut self,
                connection: $crate::ConnectionId,
                write: $crate::Write,
            ) -> Result<(), $crate::RejectedPost<$crate::Write>> {
                $crate::session::operations::write(self.reactor.open(connection), connection, write)
            }
            fn read(
                &mut self,
                connection: $crate::ConnectionId,
                read: $crate::Read,
            ) -> Result<(), $crate::RejectedPost<$crate::Read>> {
                $crate::session::operations::read(self.reactor.open(connection), connection, read)
            }
            fn flush(&mut self) {
                self.reactor.flush();
            }
            fn poll(
                &mut self,
                events: &mut Vec<$crate::Event>,
                timeout: std::time::Duration,
            ) -> Result<(), $crate::FabricError> {
                self.reactor.poll(events, timeout)
            }
            fn counters(&self) -> Vec<(&'static str, u64)> {
                self.reactor.counters()
            }
        }
    };
}
pub(crate) use reactor_fabric;
