//! [`crate::Fabric`] over a hub: one piece of code for all fabrics that have one.

/// Defines the public type of a fabric and makes it one: a hub, and where peers reach it.
macro_rules! hub_fabric {
    ($(#[$doc:meta])* $name:ident, $carrier:ty) => {
        $(#[$doc])*
        pub struct $name {
            hub: $crate::stream::hub::Hub<$carrier>,
            location: String,
        }

        impl $crate::Fabric for $name {
            fn kind(&self) -> $crate::FabricKind {
                <$carrier as $crate::stream::session::Carrier>::KIND
            }
            fn location(&self) -> String {
                self.location.clone()
            }
            fn waker(&self) -> $crate::Waker {
                self.hub.waker()
            }
            fn connect(
                &mut self,
                location: &str,
                expected: $crate::EndpointId,
                deadline: std::time::Instant,
            ) -> Result<$crate::ConnectionId, $crate::FabricError> {
                self.hub.connect(location, expected, deadline)
            }
            fn disconnect(&mut self, connection: $crate::ConnectionId, reason: $crate::CloseReason) {
                self.hub.close(connection, reason);
            }
            fn register(&mut self, lease: &faro_pool::Lease) -> Result<(), $crate::FabricError> {
                <$carrier as $crate::stream::session::Carrier>::register(&mut self.hub, lease)
            }
            fn expose(
                &mut self,
                connection: $crate::ConnectionId,
                exposure: $crate::Exposure,
            ) -> Result<$crate::RemoteRange, $crate::Rejected<$crate::Exposure>> {
                <$carrier as $crate::stream::session::Carrier>::expose(
                    &mut self.hub,
                    connection,
                    exposure,
                )
            }
            fn revoke(&mut self, key: u64) -> $crate::Revoked {
                <$carrier as $crate::stream::session::Carrier>::revoke(&mut self.hub, key)
            }
            fn send(
                &mut self,
                connection: $crate::ConnectionId,
                message: $crate::Message,
            ) -> Result<(), $crate::Rejected<$crate::Message>> {
                self.hub.send(connection, message)
            }
            fn write(
                &mut self,
                connection: $crate::ConnectionId,
                write: $crate::Write,
            ) -> Result<(), $crate::Rejected<$crate::Write>> {
                self.hub.post_write(connection, write)
            }
            fn read(
                &mut self,
                connection: $crate::ConnectionId,
                read: $crate::Read,
            ) -> Result<(), $crate::Rejected<$crate::Read>> {
                self.hub.post_read(connection, read)
            }
            fn flush(&mut self) {
                self.hub.flush();
            }
            fn poll(
                &mut self,
                events: &mut Vec<$crate::Event>,
                timeout: std::time::Duration,
            ) -> Result<(), $crate::FabricError> {
                self.hub.poll(events, timeout)
            }
            fn counters(&self) -> Vec<(&'static str, u64)> {
                self.hub.counters()
            }
        }
    };
}
pub(crate) use hub_fabric;
