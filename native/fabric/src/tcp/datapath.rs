//! WRITE, READ and READ_REPLY over TCP.

use super::setup;
use crate::stream::frames::{
    self, Layout, ReadReplyHead, ReadRequest, WriteHead, DONE, MAX_ACKS, REFUSED,
};
use crate::stream::inbound::{Shape, Sink};
use crate::stream::outbound::{Ends, Frame, Tail};
use crate::stream::session::{Carrier, Context};
use crate::{CloseReason, FabricError, FabricKind, Outcome, RemoteRange, Write};
use faro_wire::header::MAX_PAYLOAD_BYTES;
use faro_wire::{kind, FrameHeader, WireError};
use mio::net::{TcpListener, TcpStream};
use std::io;
use zerocopy::IntoBytes;

/// What TCP adds to the stream: payload in frames.
pub(crate) struct Tcp;

const WRITE_HEAD: usize = size_of::<WriteHead>();
const REPLY_HEAD: usize = size_of::<ReadReplyHead>();

impl Carrier for Tcp {
    const KIND: FabricKind = FabricKind::Tcp;
    type Socket = TcpStream;
    type Listener = TcpListener;
    type Peer = ();
    type Remains = ();
    /// Many small frames per system call.
    const STAGING: usize = 64 << 10;
    const SHORT_MEANS_DRAINED: bool = true;

    fn shape(kind: u8) -> Option<(Shape, u32)> {
        Some(match kind {
            kind::WRITE => (
                Shape::Headed(WRITE_HEAD),
                MAX_PAYLOAD_BYTES + WRITE_HEAD as u32,
            ),
            kind::READ_REPLY => (
                Shape::Headed(REPLY_HEAD),
                MAX_PAYLOAD_BYTES + REPLY_HEAD as u32,
            ),
            kind::READ => (Shape::Whole, size_of::<ReadRequest>() as u32),
            kind::WRITE_ACK => (
                Shape::Whole,
                (MAX_ACKS * size_of::<frames::AckEntry>()) as u32,
            ),
            _ => return None,
        })
    }

    fn on_head(
        &mut self,
        cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        if header.kind == kind::WRITE {
            let head = WriteHead::decode(head)?;
            return Ok(Sink::Exposed {
                key: head.key.get(),
                offset: head.offset.get(),
                immediate: frames::immediate(head.immediate, head.has_immediate)?,
            });
        }
        let verdict = ReadReplyHead::decode(head)?.verdict.get();
        let sequence = header.id.get();
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

    fn on_frame(
        &mut self,
        cx: &mut Context<'_, Self>,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        if header.kind == kind::READ {
            return serve_read(cx, header.id.get(), ReadRequest::decode(body)?);
        }
        for entry in frames::acks(body)? {
            // TCP names refusals only, and nearly always after the write's end.
            cx.shared.counters.writes_refused_by_peer += 1;
            cx.session.outbound.refuse(entry.sequence.get());
        }
        Ok(())
    }

    fn on_closed(&mut self, _cx: &mut Context<'_, Self>, _told: bool) -> Option<()> {
        None
    }

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        Ok(setup::connect(setup::parse(location)?))
    }

    fn post_write(&mut self, cx: &mut Context<'_, Self>, write: Write) {
        let sequence = cx.next_sequence();
        let head = WriteHead::new(write.target.key, write.target.offset, write.immediate);
        let ends = Ends::Write {
            token: write.token,
            sequence,
            bytes: write.length,
            outcome: Outcome::Done,
        };
        let tail = Tail::Lease {
            source: write.source,
            offset: write.offset,
            length: write.length,
        };
        cx.push(Frame::payload(
            kind::WRITE,
            sequence,
            head.as_bytes(),
            tail,
            ends,
        ));
    }

    fn post_read(&mut self, cx: &mut Context<'_, Self>, sequence: u64, source: RemoteRange) {
        let request = ReadRequest {
            key: source.key.into(),
            offset: source.offset.into(),
            length: source.length.into(),
            reserved: 0.into(),
        };
        cx.push(Frame::small(kind::READ, sequence, request.as_bytes()));
    }
}

fn serve_read(
    cx: &mut Context<'_, Tcp>,
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
                Tail::Lease {
                    source,
                    offset,
                    length,
                },
            )
        }
        None => {
            cx.shared.counters.reads_refused += 1;
            (REFUSED, Tail::Nothing)
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
        Ends::ReadServed,
    ));
    Ok(())
}
