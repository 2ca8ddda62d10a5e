//! The control channel: a TCP connection on which both sides exchange their queue pairs' addresses.
//! Afterwards it carries no bytes; its end means that the peer is gone.

use super::connect_threads::{ConnectJob, ConnectResult};
use super::device::{LinkLayer, PortAddress, Remote};
use super::driver::{QueuePairLink, Verbs};
use super::frames::{QpInfo, NEEDS_GRH, SEGMENT_BYTES};
use super::queue_pair::{QueuePairConnection, MAX_CREDITS};
use crate::frame::bodies::Layout;
use crate::frame::outgoing::Frame;
use crate::session::connection::{Common, FabricConnection};
use crate::session::context::Context;
use crate::session::exposure::random;
use crate::CloseReason;
use faro_wire::{kind, WireError};
use zerocopy::IntoBytes;

/// Bits of a packet sequence number.
const PSN_MASK: u32 = 0x00ff_ffff;

/// Makes the queue pair of a connection.
pub(super) fn make_queue_pair(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
) -> Result<Box<QueuePairConnection>, CloseReason> {
    let unable = |detail| CloseReason::Unable { detail };
    let psn = random()
        .map(u32::from_le_bytes)
        .map_err(|error| unable(error.to_string()))?;
    let context = driver.context().map_err(unable)?;
    let made =
        QueuePairConnection::new(context, cx.connection.0, psn & PSN_MASK).map_err(unable)?;
    driver.numbers.insert(made.queue.number(), cx.connection);
    Ok(Box::new(made))
}

/// Queues the QP_INFO of a queue pair. The acceptor does so when its own is connected, so that it
/// misses nothing that the connector then sends.
pub(super) fn introduce(cx: &mut Context<'_>, made: &QueuePairConnection) {
    let address = made.queue.address();
    let body = QpInfo {
        queue_pair: made.queue.number().into(),
        psn: made.psn.into(),
        gid: address.gid,
        lid: address.lid.into(),
        mtu: address.mtu,
        reads: made.queue.depth().reads,
        receives: made.ring_size().into(),
        segment_bytes: (SEGMENT_BYTES as u32).into(),
        link: address.link.map_or(0, |link| link as u8),
        flags: if address.needs_grh { NEEDS_GRH } else { 0 },
        partition: address.partition.into(),
    };
    cx.push(Frame::small(kind::QP_INFO, 0, body.as_bytes()));
}

/// Has this side's queue pair connected to the peer's, which is now known.
pub(super) fn on_qp_info(
    driver: &mut Verbs,
    cx: &mut Context<'_>,
    link: &mut QueuePairLink,
    body: &[u8],
) -> Result<(), CloseReason> {
    let body = QpInfo::decode(body)?;
    let wrong = |what, got: u32| {
        let got = u64::from(got);
        Err(WireError::BadValue { what, got }.into())
    };
    let segment_bytes = body.segment_bytes.get();
    if segment_bytes as usize != SEGMENT_BYTES {
        return wrong("QP_INFO's bytes of a segment", segment_bytes);
    }
    let receives = body.receives.get();
    if receives == 0 || receives > MAX_CREDITS {
        return wrong("QP_INFO's receive requests", receives);
    }
    let connector = cx.session.expected.is_some();
    if connector != link.is_some() || driver.pairing.contains(&cx.connection) {
        return wrong(
            "second QP_INFO of a connection, queue pair",
            body.queue_pair.get(),
        );
    }
    let address = PortAddress {
        link: LinkLayer::of(body.link),
        gid: body.gid,
        lid: body.lid.get(),
        mtu: body.mtu,
        partition: body.partition.get(),
        needs_grh: body.flags & NEEDS_GRH != 0,
    };
    let unable = |detail| CloseReason::Unable { detail };
    let device = &driver.context().map_err(unable)?.device;
    let agrees = device.address().check_peer(&address);
    agrees.map_err(|error| unable(error.to_string()))?;
    let mut own = match link.take() {
        Some(made) => made,
        None => make_queue_pair(driver, cx)?,
    };
    let remote = Remote {
        address,
        qp: body.queue_pair.get(),
        psn: body.psn.get() & PSN_MASK,
        reads: body.reads,
    };
    own.credits = receives;
    let job = ConnectJob {
        connection: cx.connection,
        queue_pair: own,
        remote,
        options: driver.options.clone(),
    };
    match driver.connecting.start(job) {
        Ok(()) => {
            driver.pairing.insert(cx.connection);
            Ok(())
        }
        Err(refused) => {
            driver.destroy(refused.queue_pair);
            let detail = "too many connections are being made".to_owned();
            Err(CloseReason::Unable { detail })
        }
    }
}

/// Takes this side's queue pair back, which is connected to the peer's or cannot be.
pub(super) fn connected(
    connection: &mut FabricConnection<Verbs>,
    common: &mut Common<Verbs>,
    found: ConnectResult,
) -> Result<(), CloseReason> {
    let own = connection.state.insert(found.queue_pair);
    found.result.map_err(|error| CloseReason::Lost {
        detail: error.to_string(),
    })?;
    let mut cx = Context::new(&mut connection.session, &mut common.shared);
    if cx.session.expected.is_some() {
        // The acceptor posted its receive requests before it sent QP_INFO.
        cx.opened();
        cx.push(Frame::small(kind::QP_READY, 0, &[]));
    } else {
        introduce(&mut cx, own);
    }
    connection.writable |= connection.is_open();
    Ok(())
}
