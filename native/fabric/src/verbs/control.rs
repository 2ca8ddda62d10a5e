//! The control channel: a TCP connection on which both sides exchange their queue pairs' addresses.
//! Afterwards it carries no bytes; its end means that the peer is gone.

use super::device;
use super::driver::{QueuePairLink, Verbs};
use super::frames::{QpInfo, SEGMENT_BYTES};
use super::queue_pair::{QueuePairConnection, MAX_CREDITS};
use crate::frame::bodies::Layout;
use crate::frame::outgoing::Frame;
use crate::session::context::Context;
use crate::session::exposure::random;
use crate::CloseReason;
use faro_wire::{kind, WireError};
use zerocopy::IntoBytes;

/// Bits of a packet sequence number.
const PSN_MASK: u32 = 0x00ff_ffff;

/// Makes the queue pair of a connection and queues its QP_INFO.
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
    let address = context.device.address();
    let body = QpInfo {
        queue_pair: made.queue.number().into(),
        psn: made.psn.into(),
        gid: address.gid,
        lid: address.lid.into(),
        mtu: address.mtu,
        reads: made.queue.depth().reads,
        receives: made.ring_size().into(),
        segment_bytes: (SEGMENT_BYTES as u32).into(),
        reserved: 0.into(),
    };
    driver.numbers.insert(made.queue.number(), cx.connection);
    cx.push(Frame::small(kind::QP_INFO, 0, body.as_bytes()));
    Ok(Box::new(made))
}

/// Connects this side's queue pair to the peer's, which is now known.
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
    let own = match (connector, link) {
        (true, Some(made)) => made,
        (false, link @ None) => link.insert(make_queue_pair(driver, cx)?),
        (true, None) | (false, Some(_)) => {
            return wrong(
                "second QP_INFO of a connection, queue pair",
                body.queue_pair.get(),
            )
        }
    };
    let remote = device::Remote {
        gid: body.gid,
        lid: body.lid.get(),
        qp: body.queue_pair.get(),
        psn: body.psn.get() & PSN_MASK,
        mtu: body.mtu,
        reads: body.reads,
    };
    own.queue
        .connect(own.psn, &remote, &driver.options)
        .map_err(|error| CloseReason::Lost {
            detail: error.to_string(),
        })?;
    own.credits = receives;
    if connector {
        // The acceptor posted its receive requests before it sent QP_INFO.
        cx.opened();
        cx.push(Frame::small(kind::QP_READY, 0, &[]));
    }
    Ok(())
}
