//! The three messages by which both ends authenticate (see `faro_secure`), as values without a
//! connection.

use crate::frame::bodies::{Hello, Proof, Welcome};
use crate::{CloseReason, EndpointId, FabricKind, Identity, OwnIdentity};
use faro_secure::{Acceptor, Connector, Keys, Prologue, Protection, WelcomeResult};
use faro_wire::header::VERSIONS;
use faro_wire::{kind, WireError};

/// State of a handshake.
#[derive(Default)]
pub(crate) enum Handshake {
    /// It has not begun, or is over.
    #[default]
    None,
    /// HELLO is sent.
    AwaitWelcome(Box<Connector>),
    /// WELCOME is sent.
    AwaitProof(Box<Acceptor>),
}

/// Returns whether a fabric's connections seal their bytes in records. Shared memory does not,
/// because its bytes stay on the host.
pub(crate) fn seals(fabric: FabricKind, protection: Protection) -> bool {
    match protection {
        Protection::Clear => false,
        Protection::Sealed => !fabric.stays_on_host(),
    }
}

/// Returns the values that both ends of a handshake must agree on.
fn prologue(
    versions: [u8; 2],
    fabric: FabricKind,
    protection: Protection,
    acceptor: EndpointId,
) -> Prologue {
    Prologue {
        versions,
        fabric: fabric.tag(),
        protection,
        acceptor,
    }
}

impl Handshake {
    /// Begins with HELLO, for the connector.
    pub(crate) fn hello(
        own: &OwnIdentity,
        expected: &Identity,
        fabric: FabricKind,
        protection: Protection,
    ) -> Result<(Self, Hello), CloseReason> {
        let spoken = VERSIONS.spoken();
        let versions = [spoken.oldest as u8, spoken.newest as u8];
        let prologue = prologue(versions, fabric, protection, expected.endpoint);
        let (connector, message) = Connector::hello(&own.key, &expected.psk, &prologue)?;
        let hello = Hello::new(protection, message);
        Ok((Self::AwaitWelcome(Box::new(connector)), hello))
    }

    /// Takes HELLO and answers it with WELCOME, for the acceptor. Returns the version of the connection, too.
    pub(crate) fn welcome(
        own: &OwnIdentity,
        fabric: FabricKind,
        protection: Protection,
        hello: &Hello,
    ) -> Result<(Self, Welcome, u8), CloseReason> {
        let common = VERSIONS.spoken().common(hello.versions());
        // Not above the highest of HELLO, so it is a `u8`.
        let version = common.map_err(WireError::from)? as u8;
        if hello.protection != protection.byte() {
            return Err(CloseReason::Protection { local: protection });
        }
        let versions = [hello.lowest, hello.highest];
        let prologue = prologue(versions, fabric, protection, own.endpoint);
        let (acceptor, handshake) =
            Acceptor::welcome(&own.key, &own.psk, &prologue, version, &hello.handshake)?;
        let welcome = Welcome { handshake };
        Ok((Self::AwaitProof(Box::new(acceptor)), welcome, version))
    }

    /// Returns whether HELLO was made for `own` and with its key.
    pub(crate) fn is_for(
        own: &OwnIdentity,
        fabric: FabricKind,
        protection: Protection,
        hello: &Hello,
    ) -> bool {
        let versions = [hello.lowest, hello.highest];
        let prologue = prologue(versions, fabric, protection, own.endpoint);
        hello.protection == protection.byte()
            && Acceptor::check(&own.key, &own.psk, &prologue, &hello.handshake).is_ok()
    }

    /// Takes WELCOME and answers it with the proof, for the connector. It then knows the acceptor, and the version of the
    /// connection.
    pub(crate) fn prove(self, welcome: &Welcome) -> Result<(Keys, Proof, u8), CloseReason> {
        match self {
            Self::AwaitWelcome(connector) => {
                let WelcomeResult {
                    keys,
                    proof,
                    version,
                } = connector.welcomed(&welcome.handshake)?;
                Ok((keys, Proof { handshake: proof }, version))
            }
            Self::None | Self::AwaitProof(_) => {
                Err(WireError::UnknownKind { got: kind::WELCOME }.into())
            }
        }
    }

    /// Takes the proof, for the acceptor. It then knows the connector.
    pub(crate) fn proven(self, proof: &Proof) -> Result<(EndpointId, Keys), CloseReason> {
        match self {
            Self::AwaitProof(acceptor) => {
                let proven = acceptor.proven(&proof.handshake)?;
                Ok((proven.connector, proven.keys))
            }
            Self::None | Self::AwaitWelcome(_) => {
                Err(WireError::UnknownKind { got: kind::PROOF }.into())
            }
        }
    }
}
