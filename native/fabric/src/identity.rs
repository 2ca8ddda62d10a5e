//! How connections and endpoints are named, and what proves that an endpoint is the one that it names.

use faro_secure::{KeyError, Psk, Secret, SharedSecret, StaticKey};
use std::ops::Deref;

/// A connection of one fabric instance; never reused in the instance's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// Id of an endpoint process (in its card): a hash of its static key, see [`StaticKey::id`].
pub type EndpointId = u128;

/// An endpoint, and the key that proves to it that a peer knows its card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The endpoint's id.
    pub endpoint: EndpointId,
    /// The key that proves to the endpoint that a peer knows its card.
    pub psk: Psk,
}

impl Identity {
    /// Makes the identity of the endpoint whose card has `card` as its secret. `shared` is Spark's
    /// secret, if it has one.
    ///
    /// # Errors
    /// `KeyError`.
    pub fn new(
        endpoint: EndpointId,
        card: &Secret,
        shared: Option<&SharedSecret>,
        application: &str,
    ) -> Result<Self, KeyError> {
        let psk = Psk::derive(card, shared, application)?;
        Ok(Self { endpoint, psk })
    }

    /// Makes the identity that [`OwnIdentity::public`] has for this number.
    ///
    /// # Panics
    /// No key can be derived.
    #[must_use]
    pub fn public(number: u128) -> Self {
        OwnIdentity::public(number).identity
    }
}

/// This endpoint, with the static key that proves its id.
#[derive(Debug, Clone)]
pub struct OwnIdentity {
    /// The part that peers know.
    pub identity: Identity,
    pub(crate) key: StaticKey,
}

impl OwnIdentity {
    /// Makes the identity of the endpoint with that static key; the rest as in [`Identity::new`].
    ///
    /// # Errors
    /// `KeyError`.
    pub fn new(
        key: StaticKey,
        card: &Secret,
        shared: Option<&SharedSecret>,
        application: &str,
    ) -> Result<Self, KeyError> {
        let identity = Identity::new(key.id(), card, shared, application)?;
        Ok(Self { identity, key })
    }

    /// Makes a well-known identity, for tests and measurements only: every process can derive the keys of a number, of a
    /// card without a secret and of an application without a name.
    ///
    /// # Panics
    /// No key can be derived.
    #[must_use]
    pub fn public(number: u128) -> Self {
        StaticKey::public(number)
            .and_then(|key| Self::new(key, &Secret::new([0; 32]), None, ""))
            .unwrap_or_else(|error| panic!("endpoint {number}: {error}"))
    }
}

impl Deref for OwnIdentity {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}
