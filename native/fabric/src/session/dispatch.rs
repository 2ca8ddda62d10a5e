//! Decides which frames may come in which phase, and hands each frame on.
//!
//! Before a connection is open, its peer may send handshake frames (at most 4 KiB each) and frames
//! of its fabric's pairing; anything else ends it.

use super::bounds;
use super::context::Context;
use super::handshake_frames;
use super::state::ConnectionPhase;
use super::transport::{Datapath, HandshakeStep};
use crate::frame::inbound::{BodyShape, Consumer, Sink};
use crate::frame::kinds::{FrameKind, TransportKind};
use crate::{CloseReason, Event, Message, Outcome};
use faro_wire::{header, kind, FrameHeader, WireError};

/// Handles the frames of one connection.
pub(crate) struct Receiver<'a, D: Datapath> {
    pub(crate) cx: Context<'a>,
    driver: &'a mut D,
    pub(crate) state: &'a mut D::State,
    /// The bytes come from opened records.
    from_records: bool,
}

impl<'a, D: Datapath> Receiver<'a, D> {
    /// `from_records`: the bytes come from opened records.
    pub(crate) fn new(
        cx: Context<'a>,
        driver: &'a mut D,
        state: &'a mut D::State,
        from_records: bool,
    ) -> Self {
        Self {
            cx,
            driver,
            state,
            from_records,
        }
    }

    /// Handles the end of the handshake: the peer has authenticated.
    fn on_authenticated(&mut self) -> Result<(), CloseReason> {
        self.cx.session.phase = ConnectionPhase::Pairing;
        match self.driver.on_authenticated(&mut self.cx, self.state)? {
            HandshakeStep::OpenConnection => self.cx.opened(),
            HandshakeStep::Pairing => {}
        }
        Ok(())
    }
}

impl<D: Datapath> Consumer for Receiver<'_, D> {
    type Kind = FrameKind<D::Kind>;

    fn begin(&mut self, header: &FrameHeader) -> Result<(Self::Kind, BodyShape), CloseReason> {
        let phase = self.cx.session.phase;
        if self.cx.session.is_sealed && !self.from_records {
            return Err(WireError::BadValue {
                what: "frame in the clear on a sealed connection, kind",
                got: u64::from(header.kind),
            }
            .into());
        }
        let spoken = self.cx.session.version;
        let is_said = match phase {
            ConnectionPhase::Connecting
            | ConnectionPhase::AwaitWelcome
            | ConnectionPhase::AwaitHello => false,
            ConnectionPhase::AwaitProof
            | ConnectionPhase::Pairing
            | ConnectionPhase::OpenConnection => true,
        };
        if is_said && header.version != spoken && header.kind != kind::GOODBYE {
            return Err(WireError::BadValue {
                what: "frame of a protocol version that the connection does not have",
                got: u64::from(header.version),
            }
            .into());
        }
        let kind = FrameKind::<D::Kind>::decode(header.kind);
        let handshake = (BodyShape::Whole, bounds::MAX_HANDSHAKE_BYTES);
        let message = (BodyShape::Whole, header::MAX_MESSAGE_BYTES);
        let allowed = kind.and_then(|kind| {
            let (comes, shape) = match kind {
                FrameKind::Goodbye => (true, handshake),
                FrameKind::Hello => (phase == ConnectionPhase::AwaitHello, handshake),
                FrameKind::Welcome => (phase == ConnectionPhase::AwaitWelcome, handshake),
                FrameKind::Proof => (phase == ConnectionPhase::AwaitProof, handshake),
                FrameKind::Message(_) => (phase == ConnectionPhase::OpenConnection, message),
                FrameKind::Transport(own) if own.pairs() => {
                    (phase == ConnectionPhase::Pairing, own.shape())
                }
                FrameKind::Transport(own) => {
                    (phase == ConnectionPhase::OpenConnection, own.shape())
                }
            };
            comes.then_some((kind, shape))
        });
        let Some((kind, (shape, limit))) = allowed else {
            let error = match phase {
                ConnectionPhase::OpenConnection | ConnectionPhase::Pairing => {
                    WireError::UnknownKind { got: header.kind }
                }
                ConnectionPhase::Connecting
                | ConnectionPhase::AwaitWelcome
                | ConnectionPhase::AwaitHello
                | ConnectionPhase::AwaitProof => WireError::BadValue {
                    what: "frame kind before the handshake",
                    got: u64::from(header.kind),
                },
            };
            return Err(error.into());
        };
        let length = header.length.get();
        WireError::check_limit("frame body", u64::from(length), u64::from(limit))?;
        Ok((kind, shape))
    }

    fn head(
        &mut self,
        kind: Self::Kind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        match kind {
            FrameKind::Transport(own) => self.driver.on_head(&mut self.cx, own, id, head, length),
            FrameKind::Hello | FrameKind::Welcome | FrameKind::Proof | FrameKind::Goodbye => {
                Err(WireError::BadValue {
                    what: "head of a handshake frame, bytes",
                    got: head.len() as u64,
                }
                .into())
            }
            FrameKind::Message(got) => Err(WireError::UnknownKind { got }.into()),
        }
    }

    fn slot(&mut self, sink: &Sink, at: usize, length: usize) -> Option<&mut [u8]> {
        match sink {
            Sink::Exposed { key, offset, .. } => {
                let offset = offset.checked_add(at as u64)?;
                let connection = self.cx.connection;
                self.cx
                    .shared
                    .exposures
                    .writable(connection, *key, offset, length)
            }
            Sink::Read { sequence, refused } => {
                let read = self.cx.session.reads.get_mut(sequence)?;
                (!refused).then_some(())?;
                read.target.bytes_mut().get_mut(at..at.checked_add(length)?)
            }
        }
    }

    fn payload_end(
        &mut self,
        id: u64,
        sink: Sink,
        length: usize,
        dropped: bool,
    ) -> Result<(), CloseReason> {
        self.cx.shared.counters.frames_in += 1;
        match sink {
            Sink::Exposed { key, immediate, .. } => {
                let taken = (!dropped).then_some(length);
                self.cx.write_came(key, immediate, taken);
                if dropped {
                    self.cx.refuse_if_room(id);
                }
            }
            Sink::Read { sequence, refused } => {
                if let Some(read) = self.cx.session.reads.remove(&sequence) {
                    let outcome = if refused {
                        Outcome::Refused
                    } else {
                        Outcome::Done
                    };
                    self.cx.read_ended(read, outcome);
                }
            }
        }
        Ok(())
    }

    fn switches(&self) -> bool {
        !self.from_records && self.cx.session.keys.is_some()
    }

    fn frame(&mut self, kind: Self::Kind, id: u64, body: Vec<u8>) -> Result<(), CloseReason> {
        let cx = &mut self.cx;
        cx.shared.counters.frames_in += 1;
        match kind {
            FrameKind::Goodbye => Err(handshake_frames::on_goodbye(&body)),
            FrameKind::Hello => handshake_frames::on_hello(cx, &body),
            FrameKind::Welcome => {
                handshake_frames::on_welcome(cx, &body)?;
                self.on_authenticated()
            }
            FrameKind::Proof => {
                handshake_frames::on_proof(cx, &body)?;
                self.on_authenticated()
            }
            FrameKind::Message(kind) => {
                let connection = cx.connection;
                cx.shared.counters.messages_in += 1;
                cx.event(Event::Message {
                    connection,
                    message: Message { kind, id, body },
                });
                Ok(())
            }
            FrameKind::Transport(own) => self.driver.on_frame(cx, self.state, own, id, &body),
        }
    }
}
