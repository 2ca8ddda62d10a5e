//! Opening the fabric: the device, and the TCP listener for pairing.

use super::device::VerbsOptions;
use super::driver::Verbs;
use super::rdma_context::RdmaContext;
use super::VerbsFabric;
use crate::session::bounds::Bounds;
use crate::tcp::{self, SharedPort, StreamListener};
use crate::{FabricError, FabricKind, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) use crate::tcp::{connect, parse};

/// Configuration of an RDMA fabric.
#[derive(Clone)]
pub struct VerbsConfig {
    /// Address to listen on for pairing; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Host that peers connect to; the device with this address is the first choice.
    pub advertise: String,
    /// Identity of this endpoint.
    pub identity: OwnIdentity,
    /// True if bytes are sealed. Then all of them travel in SENDs, and no peer has a right to this
    /// endpoint's memory.
    pub protection: Protection,
    /// The memory that is registered, slab by slab.
    pub pool: Arc<Pool>,
    /// The user's choices; the rest is chosen here.
    pub options: VerbsOptions,
}

impl VerbsFabric {
    /// Opens the device and listens.
    ///
    /// # Errors
    /// `Unavailable` with what is missing and what to do; `Io`, `BadLocation` as the TCP fabric.
    pub fn new(config: VerbsConfig) -> Result<Self, FabricError> {
        Self::with_bounds(config, bounds())
    }

    /// Opens the fabric like `new`, with other bounds.
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn with_bounds(config: VerbsConfig, bounds: Bounds) -> Result<Self, FabricError> {
        let (listener, address) = tcp::listen(config.bind, &config.advertise)?;
        Self::accepting(config, bounds, StreamListener::Own(listener), address)
    }

    /// Opens the fabric with its control connections behind a port that it shares with other
    /// endpoints. `bind` and `advertise` of the configuration are not used: the port has them.
    ///
    /// # Errors
    /// `Unavailable` as `new`; `Io`.
    pub fn behind(port: &SharedPort, config: VerbsConfig) -> Result<Self, FabricError> {
        let bounds = bounds();
        let (identity, protection) = (&config.identity, config.protection);
        let (listener, address) =
            StreamListener::behind(port, identity, FabricKind::Verbs, protection, &bounds)?;
        Self::accepting(config, bounds, listener, address)
    }

    fn accepting(
        config: VerbsConfig,
        bounds: Bounds,
        listener: StreamListener,
        address: SocketAddr,
    ) -> Result<Self, FabricError> {
        let near = address.ip();
        let context = RdmaContext::open(&config.options, near, &config.pool, config.protection)?;
        log::info!("verbs fabric: {}", context.device.describe());
        let verbs = Verbs::new(
            context,
            config.options,
            near,
            config.pool,
            config.protection,
        )
        .map_err(|source| FabricError::Io {
            what: "eventfd".to_owned(),
            source,
        })?;
        Self::listening(
            config.identity,
            config.protection,
            bounds,
            listener,
            address.to_string(),
            verbs,
        )
    }
}

/// Each exposure needs a slot that an immediate can name.
fn bounds() -> Bounds {
    Bounds {
        exposures: super::frames::SLOTS / 2,
        ..Bounds::default()
    }
}
