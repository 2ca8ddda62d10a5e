//! Which frames may come in which phase, the greeting, and where each frame goes.
//!
//! Before a connection is `Open` its peer can send one greeting of at most 4 KiB (and what its
//! fabric's pairing needs); everything else ends it.

use super::driver::{Greeted, TransportDriver};
use super::frames::{Goodbye, GoodbyeCode, Hello, Layout, Welcome};
use super::inbound::{Consumer, Shape, Sink};
use super::kinds::{FrameKind, TransportKind};
use super::outbound::Frame;
use super::session::{Context, Phase};
use crate::{CloseReason, EndpointId, Event, Message, Outcome};
use faro_wire::{header, kind, FrameHeader, WireError};
use zerocopy::IntoBytes;

/// Handles the frames of one connection.
pub(crate) struct Receiver<'a, D: TransportDriver> {
    pub(crate) cx: Context<'a>,
    pub(crate) driver: &'a mut D,
    pub(crate) state: &'a mut D::Connection,
}

impl<D: TransportDriver> Consumer for Receiver<'_, D> {
    type Kind = FrameKind<D::Kind>;

    fn begin(&mut self, header: &FrameHeader) -> Result<(Self::Kind, Shape), CloseReason> {
        let phase = self.cx.session.phase;
        let kind = FrameKind::<D::Kind>::decode(header.kind);
        let greeting = (Shape::Whole, header::MAX_GREETING_BYTES);
        let message = (Shape::Whole, header::MAX_MESSAGE_BYTES);
        let allowed = kind.and_then(|kind| {
            let (comes, shape) = match kind {
                FrameKind::Goodbye => (true, greeting),
                FrameKind::Hello => (phase == Phase::AwaitHello, greeting),
                FrameKind::Welcome => (phase == Phase::Greeting, greeting),
                FrameKind::Message(_) => (phase == Phase::Open, message),
                FrameKind::Transport(own) => (phase == own.phase(), own.shape()),
            };
            comes.then_some((kind, shape))
        });
        let Some((kind, (shape, limit))) = allowed else {
            let error = match phase {
                Phase::Open | Phase::Pairing => WireError::UnknownKind { got: header.kind },
                Phase::Connecting | Phase::Greeting | Phase::AwaitHello => WireError::BadValue {
                    what: "frame kind before the greeting",
                    got: u64::from(header.kind),
                },
            };
            return Err(error.into());
        };
        let length = header.length.get();
        if length > limit {
            return Err(WireError::TooLarge {
                what: "frame body",
                got: u64::from(length),
                limit: u64::from(limit),
            }
            .into());
        }
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
            FrameKind::Hello | FrameKind::Welcome | FrameKind::Goodbye => {
                Err(WireError::BadValue {
                    what: "head of a greeting, bytes",
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

    fn frame(&mut self, kind: Self::Kind, id: u64, body: Vec<u8>) -> Result<(), CloseReason> {
        let cx = &mut self.cx;
        cx.shared.counters.frames_in += 1;
        match kind {
            FrameKind::Goodbye => Err(cx.on_goodbye(&body)),
            FrameKind::Hello => {
                let endpoint = cx.on_hello(&body)?;
                self.greeted(endpoint);
                Ok(())
            }
            FrameKind::Welcome => {
                let endpoint = cx.on_welcome(&body)?;
                self.greeted(endpoint);
                Ok(())
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

impl<D: TransportDriver> Receiver<'_, D> {
    fn greeted(&mut self, endpoint: EndpointId) {
        self.cx.session.remote = endpoint;
        self.cx.session.phase = Phase::Pairing;
        match self.driver.greeted() {
            Greeted::Open => self.cx.opened(),
            Greeted::Pairing => {}
        }
    }
}

impl Context<'_> {
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

    fn on_hello(&mut self, body: &[u8]) -> Result<EndpointId, CloseReason> {
        let hello = Hello::decode(body)?;
        if !hello.speaks(header::VERSION) {
            return Err(WireError::UnsupportedVersion {
                got: hello.highest,
                supported: header::VERSION,
            }
            .into());
        }
        let (expected, got) = (
            EndpointId::from_le_bytes(hello.expected),
            self.shared.endpoint,
        );
        if expected != got {
            return Err(CloseReason::WrongEndpoint { expected, got });
        }
        let welcome = Welcome {
            endpoint: got.to_le_bytes(),
        };
        self.push(Frame::small(kind::WELCOME, 0, welcome.as_bytes()));
        Ok(EndpointId::from_le_bytes(hello.endpoint))
    }

    fn on_welcome(&mut self, body: &[u8]) -> Result<EndpointId, CloseReason> {
        let got = EndpointId::from_le_bytes(Welcome::decode(body)?.endpoint);
        self.check_identity(got)?;
        Ok(got)
    }

    fn check_identity(&self, got: EndpointId) -> Result<(), CloseReason> {
        match &self.session.expected {
            Some((expected, _)) if *expected != got => Err(CloseReason::WrongEndpoint {
                expected: *expected,
                got,
            }),
            _ => Ok(()),
        }
    }

    fn on_goodbye(&mut self, body: &[u8]) -> CloseReason {
        match Goodbye::decode(body) {
            Ok(goodbye) => {
                if goodbye.code == GoodbyeCode::WrongEndpoint as u32 {
                    if let Err(reason) = self.check_identity(goodbye.endpoint) {
                        return reason;
                    }
                }
                CloseReason::Peer {
                    detail: goodbye.text,
                }
            }
            Err(error) => error.into(),
        }
    }
}
