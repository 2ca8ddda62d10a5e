//! WRITE, READ and READ_REPLY: one-sided operations as frames with their payload. So they travel
//! over TCP, and over a queue pair whose bytes are sealed.

use super::context::Context;
use crate::frame::bodies::{self, Layout, ReadReplyHead, ReadRequest, WriteHead, DONE, REFUSED};
use crate::frame::inbound::Sink;
use crate::frame::kinds::TransportKind;
use crate::frame::outgoing::{Frame, FrameTail, SendCompletion};
use crate::frame::payload::PayloadKind;
use crate::{CloseReason, Outcome, RemoteRange, Write, WritePart};
use faro_wire::{kind, WireError};
use zerocopy::IntoBytes;

/// Handles the head of a payload of `length` bytes, and chooses where the payload goes.
pub(crate) fn on_head(
    cx: &mut Context<'_>,
    kind: PayloadKind,
    id: u64,
    head: &[u8],
    length: usize,
) -> Result<Sink, CloseReason> {
    match kind {
        PayloadKind::Write => {
            let head = WriteHead::decode(head)?;
            Ok(Sink::Exposed {
                key: head.key.get(),
                offset: head.offset.get(),
                immediate: bodies::immediate(head.immediate, head.has_immediate)?,
            })
        }
        PayloadKind::ReadReply => on_reply_head(cx, id, ReadReplyHead::decode(head)?, length),
        PayloadKind::Read | PayloadKind::WriteAck => Err(WireError::BadValue {
            what: "bytes of a head before a frame without payload",
            got: head.len() as u64,
        }
        .into()),
    }
}

/// Handles a frame without payload.
pub(crate) fn on_frame(
    cx: &mut Context<'_>,
    kind: PayloadKind,
    id: u64,
    body: &[u8],
) -> Result<(), CloseReason> {
    match kind {
        PayloadKind::Read => serve_read(cx, id, ReadRequest::decode(body)?),
        PayloadKind::WriteAck => {
            for entry in bodies::acks(body)? {
                // Only refusals are listed, nearly always after the write's end.
                cx.shared.counters.writes_refused_by_peer += 1;
                cx.session.outbound.refuse(entry.sequence.get());
            }
            Ok(())
        }
        // The payload of these kinds ends in `payload_end`.
        PayloadKind::Write | PayloadKind::ReadReply => {
            Err(WireError::UnknownKind { got: kind.byte() }.into())
        }
    }
}

/// Queues a write.
pub(crate) fn post_write(cx: &mut Context<'_>, write: Write) {
    let sequence = cx.next_sequence();
    let head = WriteHead::new(write.target.key, write.target.offset, write.immediate);
    let tail = FrameTail::of(write.source);
    let ends = SendCompletion::Write {
        token: write.token,
        sequence,
        bytes: tail.length(),
        outcome: Outcome::Done,
    };
    cx.push(Frame::payload(
        kind::WRITE,
        sequence,
        head.as_bytes(),
        tail,
        ends,
    ));
}

/// Queues a read that is listed among the session's.
pub(crate) fn post_read(cx: &mut Context<'_>, sequence: u64, source: RemoteRange) {
    let request = ReadRequest {
        key: source.key.into(),
        offset: source.offset.into(),
        length: source.length.into(),
        reserved: 0.into(),
    };
    cx.push(Frame::small(kind::READ, sequence, request.as_bytes()));
}

/// Handles the reply to a read that this side posted, and chooses where its payload goes.
fn on_reply_head(
    cx: &mut Context<'_>,
    sequence: u64,
    head: ReadReplyHead,
    length: usize,
) -> Result<Sink, CloseReason> {
    let verdict = head.verdict.get();
    let Some(read) = cx.session.reads.get(&sequence) else {
        return Err(WireError::BadValue {
            what: "READ_REPLY's read",
            got: sequence,
        }
        .into());
    };
    let promised = match verdict {
        DONE => read.length,
        REFUSED => 0,
        got => {
            return Err(WireError::BadValue {
                what: "READ_REPLY's verdict",
                got: u64::from(got),
            }
            .into());
        }
    };
    if length != promised {
        return Err(WireError::BadValue {
            what: "READ_REPLY's length",
            got: length as u64,
        }
        .into());
    }
    Ok(Sink::Read {
        sequence,
        refused: verdict == REFUSED,
    })
}

fn serve_read(
    cx: &mut Context<'_>,
    sequence: u64,
    request: ReadRequest,
) -> Result<(), CloseReason> {
    let limit = cx.shared.bounds.reads_served;
    if cx.session.reads_served >= limit {
        return Err(CloseReason::Bound {
            what: "reads served at once",
            limit: limit as u64,
        });
    }
    cx.session.reads_served += 1;
    let length = request.length.get() as usize;
    let offset = request.offset.get();
    let source = cx
        .shared
        .exposures
        .readable(cx.connection, request.key.get(), offset, length)
        .cloned();
    let (verdict, tail) = match source {
        Some(source) => {
            cx.shared.counters.reads_served += 1;
            let offset = offset as usize;
            (
                DONE,
                FrameTail::Parts(vec![WritePart {
                    memory: source,
                    offset,
                    length,
                }]),
            )
        }
        None => {
            cx.shared.counters.reads_refused += 1;
            (REFUSED, FrameTail::Nothing)
        }
    };
    let head = ReadReplyHead {
        verdict: verdict.into(),
        reserved: 0.into(),
    };
    cx.push(Frame::payload(
        kind::READ_REPLY,
        sequence,
        head.as_bytes(),
        tail,
        SendCompletion::ReadServed,
    ));
    Ok(())
}
