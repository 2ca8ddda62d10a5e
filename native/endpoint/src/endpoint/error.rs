//! Errors of an endpoint.

use crate::collective::CollectiveError;
use crate::command::CommandAdmitError;
use crate::fetch::AdmitError;
use faro_pool::PoolError;
use faro_region::RegionError;
use faro_secure::KeyError;
use faro_wire::WireError;
use thiserror::Error;

/// Reason why an endpoint cannot do what was asked.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The arena.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The chunk cache.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A fabric could not be opened.
    #[error("{fabric} fabric: {reason}")]
    Fabric {
        fabric: &'static str,
        reason: String,
    },
    /// A card that cannot be read.
    #[error("endpoint card: {0}")]
    Card(WireError),
    /// No such peer handle.
    #[error("no peer {0}")]
    UnknownPeer(u64),
    /// A request for too few or too many blocks.
    #[error("a request of {got} blocks is not possible, 1 to {max} are")]
    BadRequest { got: usize, max: usize },
    /// The number of requests in flight is at its limit.
    #[error("{limit} requests are in flight already")]
    Full { limit: usize },
    /// A team of a collective, or its round.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    Closed,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The system has no random bytes for the endpoint's id and its card's secret.
    #[error("no random bytes for the endpoint's id and secret: {0}")]
    NoRandomness(getrandom::Error),
    /// The library for cryptography gave no key for a card.
    #[error(transparent)]
    NoKey(KeyError),
}

impl From<AdmitError> for EndpointError {
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::UnknownPeer(peer) => Self::UnknownPeer(peer),
            AdmitError::Full { limit } => Self::Full { limit },
            AdmitError::Closed => Self::Closed,
        }
    }
}

impl From<CommandAdmitError> for EndpointError {
    fn from(error: CommandAdmitError) -> Self {
        match error {
            CommandAdmitError::UnknownPeer(peer) => Self::UnknownPeer(peer),
            CommandAdmitError::Full { limit } => Self::Full { limit },
            CommandAdmitError::Closed => Self::Closed,
        }
    }
}
