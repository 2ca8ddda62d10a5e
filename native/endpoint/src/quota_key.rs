//! The peer that something counts for.

use faro_fabric::EndpointId;

/// A peer, by the id that it has proven, and whether this endpoint has its card.
///
/// Cards come from Spark, so a peer whose card is here is an executor. Any other one has proven that it knows this
/// endpoint's card, and an id of its own making: it may have made many. So all such *unknown* peers together get no more than half of
/// what is shared out, and each executor that is known finds its own share free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuotaKey {
    pub(crate) endpoint: EndpointId,
    /// True if this endpoint does not have its card.
    pub(crate) is_unknown: bool,
}

/// The part of what is shared out that all unknown peers together may take is one of this many.
pub(crate) const UNKNOWN_PEERS_SHARE: usize = 2;

#[cfg(test)]
impl QuotaKey {
    pub(crate) fn known(endpoint: EndpointId) -> Self {
        let is_unknown = false;
        Self {
            endpoint,
            is_unknown,
        }
    }

    pub(crate) fn unknown(endpoint: EndpointId) -> Self {
        let is_unknown = true;
        Self {
            endpoint,
            is_unknown,
        }
    }
}
