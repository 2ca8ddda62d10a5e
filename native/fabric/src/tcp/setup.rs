//! Opening the fabric.

use super::datapath::Tcp;
use super::listener::StreamListener;
use super::shared_port::SharedPort;
use super::socket::listen;
use super::TcpFabric;
use crate::session::bounds::Bounds;
use crate::{FabricError, FabricKind, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use std::net::SocketAddr;
use std::sync::Arc;

/// Configuration of a TCP fabric.
#[derive(Clone)]
pub struct TcpConfig {
    /// Address to listen on; port 0 takes a free one, a wildcard address listens on all.
    pub bind: SocketAddr,
    /// Host that peers connect to; a name is resolved once, here. Empty: the bind address.
    pub advertise: String,
    /// Identity of this endpoint.
    pub identity: OwnIdentity,
    /// True if bytes are sealed.
    pub protection: Protection,
    /// The pool that leases come from. TCP itself does not use it.
    pub pool: Arc<Pool>,
}

impl TcpFabric {
    /// Binds and listens.
    ///
    /// # Errors
    /// Returns `Io` with the address, and `BadLocation` if the address to advertise does not
    /// resolve.
    pub fn new(config: TcpConfig) -> Result<Self, FabricError> {
        Self::with_bounds(config, Bounds::default())
    }

    /// Opens the fabric like `new`, with other bounds.
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn with_bounds(config: TcpConfig, bounds: Bounds) -> Result<Self, FabricError> {
        let (listener, address) = listen(config.bind, &config.advertise)?;
        Self::accepting(config, bounds, StreamListener::Own(listener), address)
    }

    /// Opens the fabric behind a port that it shares with other endpoints. `bind` and `advertise` of
    /// the configuration are not used: the port has them.
    ///
    /// # Errors
    /// `Io`.
    pub fn behind(
        port: &SharedPort,
        config: TcpConfig,
        bounds: Bounds,
    ) -> Result<Self, FabricError> {
        let (identity, protection) = (&config.identity, config.protection);
        let (listener, address) =
            StreamListener::behind(port, identity, FabricKind::Tcp, protection, &bounds)?;
        Self::accepting(config, bounds, listener, address)
    }

    fn accepting(
        config: TcpConfig,
        bounds: Bounds,
        listener: StreamListener,
        address: SocketAddr,
    ) -> Result<Self, FabricError> {
        Self::listening(
            config.identity,
            config.protection,
            bounds,
            listener,
            address.to_string(),
            Tcp,
        )
    }
}
