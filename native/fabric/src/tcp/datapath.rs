//! WRITE, READ and READ_REPLY over TCP.

use super::setup;
use crate::stream::driver::{ControlChannel, Datapath, Transport, TransportDriver};
use crate::stream::frames::{
    self, Layout, ReadReplyHead, ReadRequest, WriteHead, DONE, MAX_ACKS, REFUSED,
};
use crate::stream::inbound::{Shape, Sink};
use crate::stream::kinds::{frame_kinds, TransportKind};
use crate::stream::outbound::{Ends, Frame, Tail};
use crate::stream::session::{Context, Phase};
use crate::stream::turns::OverSocket;
use crate::{CloseReason, FabricError, FabricKind, Outcome, RemoteRange, Write};
use faro_wire::header::MAX_PAYLOAD_BYTES;
use faro_wire::{kind, WireError};
use mio::net::{TcpListener, TcpStream};
use std::io;
use zerocopy::IntoBytes;

/// What TCP adds to the stream: payload in frames.
pub(crate) struct Tcp;

const WRITE_HEAD: usize = size_of::<WriteHead>();
const REPLY_HEAD: usize = size_of::<ReadReplyHead>();

frame_kinds! {
    /// The frames that only TCP has.
    TcpKind { Write = WRITE, Read = READ, ReadReply = READ_REPLY, WriteAck = WRITE_ACK, }
}

impl TransportKind for TcpKind {
    fn decode(byte: u8) -> Option<Self> {
        Self::from_byte(byte)
    }

    fn byte(self) -> u8 {
        self.to_byte()
    }

    fn phase(self) -> Phase {
        Phase::Open
    }

    fn shape(self) -> (Shape, u32) {
        match self {
            Self::Write => (
                Shape::Headed(WRITE_HEAD),
                MAX_PAYLOAD_BYTES + WRITE_HEAD as u32,
            ),
            Self::ReadReply => (
                Shape::Headed(REPLY_HEAD),
                MAX_PAYLOAD_BYTES + REPLY_HEAD as u32,
            ),
            Self::Read => (Shape::Whole, size_of::<ReadRequest>() as u32),
            Self::WriteAck => (
                Shape::Whole,
                (MAX_ACKS * size_of::<frames::AckEntry>()) as u32,
            ),
        }
    }
}

impl Transport for Tcp {
    const KIND: FabricKind = FabricKind::Tcp;
    type Connection = ();
}

impl ControlChannel for Tcp {
    type Socket = TcpStream;
    type Listener = TcpListener;

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        Ok(setup::connect(setup::parse(location)?))
    }
}

impl TransportDriver for Tcp {
    type Path = OverSocket;
}

impl Datapath for Tcp {
    type Kind = TcpKind;
    type Remains = ();
    /// Many small frames per system call.
    const STAGING_BYTES: usize = 64 << 10;

    fn on_head(
        &mut self,
        cx: &mut Context<'_>,
        kind: TcpKind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        match kind {
            TcpKind::Write => {
                let head = WriteHead::decode(head)?;
                Ok(Sink::Exposed {
                    key: head.key.get(),
                    offset: head.offset.get(),
                    immediate: frames::immediate(head.immediate, head.has_immediate)?,
                })
            }
            TcpKind::ReadReply => on_reply_head(cx, id, ReadReplyHead::decode(head)?, length),
            TcpKind::Read | TcpKind::WriteAck => Err(WireError::BadValue {
                what: "bytes of a head before a frame without payload",
                got: head.len() as u64,
            }
            .into()),
        }
    }
    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        _state: &mut (),
        kind: TcpKind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        match kind {
            TcpKind::Read => serve_read(cx, id, ReadRequest::decode(body)?),
            TcpKind::WriteAck => {
                for entry in frames::acks(body)? {
                    // TCP names refusals only, and nearly always after the write's end.
                    cx.shared.counters.writes_refused_by_peer += 1;
                    cx.session.outbound.refuse(entry.sequence.get());
                }
                Ok(())
            }
            // Their payload ends in `payload_end`.
            TcpKind::Write | TcpKind::ReadReply => {
                Err(WireError::UnknownKind { got: kind.byte() }.into())
            }
        }
    }

    fn on_closed(&mut self, _cx: &mut Context<'_>, _state: (), _told: bool) -> Option<()> {
        None
    }

    fn post_write(&mut self, cx: &mut Context<'_>, _state: &mut (), write: Write) {
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

    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        _state: &mut (),
        sequence: u64,
        source: RemoteRange,
    ) {
        let request = ReadRequest {
            key: source.key.into(),
            offset: source.offset.into(),
            length: source.length.into(),
            reserved: 0.into(),
        };
        cx.push(Frame::small(kind::READ, sequence, request.as_bytes()));
    }
}

/// The reply to a read of ours: where its payload goes.
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
