//! How the two ends of a new connection prove who they are: HELLO, WELCOME, PROOF (see `faro_secure`).
//!
//! ```text
//!  connector: Greeting ──WELCOME──▶ Pairing ──▶ Open       acceptor: AwaitHello ──HELLO──▶ AwaitProof ──PROOF──▶ Pairing ──▶ Open
//! ```
//! Until then neither side says anything of itself: neither its id nor, on verbs, anything that names memory. If bytes are
//! sealed, all that the connector sends after PROOF and all that the acceptor sends after WELCOME is in records.

use super::frames::{Goodbye, Hello, Layout, Proof, Welcome};
use super::outbound::Frame;
use super::sealed::seals;
use super::session::{Context, Phase};
use crate::{CloseReason, EndpointId, Event, FabricKind};
use faro_secure::{Acceptor, Connector, Keys, Prologue, Protection, Welcomed};
use faro_wire::header::{HEADER_BYTES, VERSION};
use faro_wire::{kind, WireError};
use zerocopy::IntoBytes;

/// How far a handshake is.
#[derive(Default)]
pub(crate) enum Handshake {
    /// It has not begun, or is over.
    #[default]
    None,
    /// HELLO is sent.
    Said(Box<Connector>),
    /// WELCOME is sent.
    Welcomed(Box<Acceptor>),
}

/// What both ends of a handshake on that fabric have to agree on.
fn prologue(
    versions: [u8; 2],
    fabric: FabricKind,
    protection: Protection,
    acceptor: EndpointId,
) -> Prologue {
    Prologue {
        versions,
        fabric: match fabric {
            FabricKind::Tcp => b't',
            FabricKind::Shm => b's',
            FabricKind::Verbs => b'v',
        },
        protection,
        acceptor,
    }
}

impl Context<'_> {
    /// Queues HELLO.
    pub(crate) fn say_hello(&mut self) -> Result<(), CloseReason> {
        let Some((expected, _)) = &self.session.expected else {
            return Ok(());
        };
        let protection = self.shared.protection;
        let versions = [VERSION; 2];
        let prologue = prologue(versions, self.shared.fabric, protection, expected.endpoint);
        let own = &self.shared.identity.key;
        let (connector, message) = Connector::hello(own, &expected.psk, &prologue)?;
        self.session.handshake = Handshake::Said(Box::new(connector));
        let hello = Hello::new(protection, message);
        self.push(Frame::owned_greeting(kind::HELLO, hello.as_bytes()));
        Ok(())
    }

    /// Takes HELLO, and answers it.
    pub(crate) fn on_hello(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let hello = Hello::decode(body)?;
        if !hello.speaks(VERSION) {
            return Err(WireError::UnsupportedVersion {
                got: hello.highest,
                supported: VERSION,
            }
            .into());
        }
        let protection = self.shared.protection;
        if hello.protection != protection.byte() {
            return Err(CloseReason::Protection { ours: protection });
        }
        let own = &self.shared.identity;
        let versions = [hello.lowest, hello.highest];
        let prologue = prologue(versions, self.shared.fabric, protection, own.endpoint);
        let (acceptor, handshake) =
            Acceptor::welcome(&own.key, &own.psk, &prologue, VERSION, &hello.handshake)?;
        self.session.handshake = Handshake::Welcomed(Box::new(acceptor));
        self.session.phase = Phase::AwaitProof;
        self.push(Frame::owned_greeting(
            kind::WELCOME,
            Welcome { handshake }.as_bytes(),
        ));
        Ok(())
    }

    /// Takes WELCOME, and sends the proof. Both ends are known then.
    pub(crate) fn on_welcome(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let welcome = Welcome::decode(body)?;
        let (handshake, expected) = (
            std::mem::take(&mut self.session.handshake),
            &self.session.expected,
        );
        let (Handshake::Said(connector), Some((expected, _))) = (handshake, expected) else {
            return Err(WireError::UnknownKind { got: kind::WELCOME }.into());
        };
        let remote = expected.endpoint;
        // The one version that this side offers.
        let Welcomed { keys, proof, .. } = connector.welcomed(&welcome.handshake)?;
        self.session.remote = remote;
        let proof = Proof { handshake: proof };
        self.push(Frame::owned_greeting(kind::PROOF, proof.as_bytes()));
        self.seal(keys);
        if self.session.is_sealed {
            self.session.in_clear = HEADER_BYTES + proof.as_bytes().len();
        }
        Ok(())
    }

    /// Takes the proof. Both ends are known then.
    pub(crate) fn on_proof(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let proof = Proof::decode(body)?;
        match std::mem::take(&mut self.session.handshake) {
            Handshake::Welcomed(acceptor) => {
                let proven = acceptor.proven(&proof.handshake)?;
                self.session.remote = proven.connector;
                self.seal(proven.keys);
                self.shared.strangers.left(self.connection);
                Ok(())
            }
            Handshake::None | Handshake::Said(_) => {
                Err(WireError::UnknownKind { got: kind::PROOF }.into())
            }
        }
    }

    /// From now on the peer sends records, if bytes are sealed here.
    fn seal(&mut self, keys: Keys) {
        if seals(self.shared.fabric, self.shared.protection) {
            self.session.is_sealed = true;
            self.session.keys = Some(keys);
        }
    }

    /// The connection can be used from now on.
    pub(crate) fn opened(&mut self) {
        let (connection, endpoint) = (self.connection, self.session.remote);
        self.session.phase = Phase::Open;
        if self.session.expected.is_some() {
            self.shared.counters.connected += 1;
            self.event(Event::Connected {
                connection,
                endpoint,
            });
        } else {
            self.shared.counters.accepted += 1;
            self.event(Event::Accepted {
                connection,
                endpoint,
            });
        }
    }

    pub(crate) fn on_goodbye(&self, body: &[u8]) -> CloseReason {
        match Goodbye::decode(body) {
            Ok(goodbye) => CloseReason::Peer {
                detail: goodbye.text,
            },
            Err(error) => error.into(),
        }
    }
}
