//! Opening the fabric: the listening socket and its name.

use super::datapath::Shm;
use super::location::{host_identity, NAME};
use super::ShmFabric;
use crate::session::bounds::Bounds;
use crate::session::exposure::random;
use crate::{FabricError, OwnIdentity};
use faro_pool::Pool;
use faro_secure::Protection;
use mio::net::UnixListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a peer may read from this side's slabs after GOODBYE.
const LINGER: Duration = Duration::from_secs(10);

/// Configuration of a same-host fabric.
#[derive(Clone)]
pub struct ShmConfig {
    /// Identity of this endpoint.
    pub identity: OwnIdentity,
    /// Protection that both ends have to agree on. The bytes are the same: they do not leave the
    /// host, so nothing is encrypted.
    pub protection: Protection,
    /// The pool that all sources and readable exposures come from; its slabs are what peers map.
    pub pool: Arc<Pool>,
}

impl ShmFabric {
    /// Listens.
    ///
    /// # Errors
    /// `Io`, naming the step.
    pub fn new(config: ShmConfig) -> Result<Self, FabricError> {
        let bounds = Bounds {
            linger: LINGER,
            ..Bounds::default()
        };
        Self::with_bounds(config, bounds)
    }

    /// Opens the fabric like `new`, with other bounds.
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn with_bounds(config: ShmConfig, bounds: Bounds) -> Result<Self, FabricError> {
        let host = host_identity()?;
        let name = format!("{NAME}{:032x}", u128::from_le_bytes(random()?));
        let listener = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(|source| FabricError::Io {
                what: format!("listening on the abstract socket {name}"),
                source,
            })?;
        let location = format!("{host}/{name}");
        let shm = Shm::new(config.identity.endpoint, host, config.pool)?;
        Self::listening(
            config.identity,
            config.protection,
            bounds,
            listener,
            location,
            shm,
        )
    }
}
