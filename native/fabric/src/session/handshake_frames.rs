//! The frames of the handshake that begins a connection: HELLO, WELCOME, PROOF, or a GOODBYE that ends it.
//!
//! ```text
//!  connector: AwaitWelcome ──WELCOME──▶ Pairing ──▶ Open       acceptor: AwaitHello ──HELLO──▶ AwaitProof ──PROOF──▶ Pairing ──▶ Open
//! ```
//! Before that, neither side reveals its id nor, on verbs, any address of memory. If bytes are sealed, all that the connector sends after PROOF and all that the
//! acceptor sends after WELCOME is in records.

use super::context::Context;
use super::handshake::{seals, Handshake};
use super::state::ConnectionPhase;
use crate::frame::bodies::{Goodbye, Hello, Layout, Proof, Welcome};
use crate::frame::outgoing::Frame;
use crate::CloseReason;
use faro_secure::Keys;
use faro_wire::header::HEADER_BYTES;
use faro_wire::{kind, WireError};
use zerocopy::IntoBytes;

/// Queues HELLO, for the connector.
pub(crate) fn say_hello(cx: &mut Context<'_>) -> Result<(), CloseReason> {
    let Some((expected, _)) = &cx.session.expected else {
        return Ok(());
    };
    let shared = &cx.shared;
    let (handshake, hello) =
        Handshake::hello(&shared.identity, expected, shared.fabric, shared.protection)?;
    cx.session.handshake = handshake;
    cx.push(Frame::handshake(kind::HELLO, hello.as_bytes()));
    Ok(())
}

/// Takes HELLO and answers it, for the acceptor.
pub(crate) fn on_hello(cx: &mut Context<'_>, body: &[u8]) -> Result<(), CloseReason> {
    let hello = Hello::decode(body)?;
    let shared = &cx.shared;
    let (handshake, welcome, version) =
        Handshake::welcome(&shared.identity, shared.fabric, shared.protection, &hello)?;
    cx.session.handshake = handshake;
    cx.session.version = version;
    cx.session.phase = ConnectionPhase::AwaitProof;
    cx.push(Frame::handshake(kind::WELCOME, welcome.as_bytes()));
    Ok(())
}

/// Takes WELCOME and sends the proof, for the connector. It then knows the acceptor.
pub(crate) fn on_welcome(cx: &mut Context<'_>, body: &[u8]) -> Result<(), CloseReason> {
    let welcome = Welcome::decode(body)?;
    let Some((expected, _)) = &cx.session.expected else {
        return Err(WireError::UnknownKind { got: kind::WELCOME }.into());
    };
    let remote = expected.endpoint;
    let (keys, proof, version) = std::mem::take(&mut cx.session.handshake).prove(&welcome)?;
    cx.session.remote = remote;
    cx.session.version = version;
    cx.push(Frame::handshake(kind::PROOF, proof.as_bytes()));
    seal(cx, keys);
    if cx.session.is_sealed {
        cx.session.in_clear = HEADER_BYTES + proof.as_bytes().len();
    }
    Ok(())
}

/// Takes the proof, for the acceptor. It then knows the connector.
pub(crate) fn on_proof(cx: &mut Context<'_>, body: &[u8]) -> Result<(), CloseReason> {
    let proof = Proof::decode(body)?;
    let (remote, keys) = std::mem::take(&mut cx.session.handshake).proven(&proof)?;
    cx.session.remote = remote;
    seal(cx, keys);
    cx.shared.proven.push(cx.connection);
    Ok(())
}

/// Reads the peer's reason from GOODBYE.
pub(crate) fn on_goodbye(body: &[u8]) -> CloseReason {
    match Goodbye::decode(body) {
        Ok(goodbye) => CloseReason::Peer {
            detail: goodbye.text,
        },
        Err(error) => error.into(),
    }
}

/// Expects records from the peer from now on, if this fabric seals bytes.
fn seal(cx: &mut Context<'_>, keys: Keys) {
    if seals(cx.shared.fabric, cx.shared.protection) {
        cx.session.is_sealed = true;
        cx.session.keys = Some(keys);
    }
}
