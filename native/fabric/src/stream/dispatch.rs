//! Which frames may come when, the greeting, and who gets what.
//!
//! Until a connection is `Open` it can send one frame of at most 4 KiB; everything else ends it.

use super::frames::{Goodbye, GoodbyeCode, Hello, Layout, Welcome};
use super::inbound::{Consumer, Shape, Sink};
use super::outbound::Frame;
use super::session::{Carrier, Context, Phase};
use crate::{CloseReason, EndpointId, Event, Message, Outcome};
use faro_wire::{header, kind, FrameHeader, WireError};
use zerocopy::IntoBytes;

/// Gives the frames of one connection their meaning.
pub(crate) struct Receiver<'a, C: Carrier> {
    pub(crate) cx: Context<'a, C>,
    pub(crate) carrier: &'a mut C,
}

impl<C: Carrier> Consumer for Receiver<'_, C> {
    fn begin(&mut self, header: &FrameHeader) -> Result<Shape, CloseReason> {
        let greeting = Some((Shape::Whole, header::MAX_GREETING_BYTES));
        let allowed = match (&self.cx.session.phase, header.kind) {
            (_, kind::GOODBYE) => greeting,
            (Phase::AwaitHello, kind::HELLO) | (Phase::Greeting, kind::WELCOME) => greeting,
            (Phase::Open, kind::HELLO | kind::WELCOME) => None,
            (Phase::Open, message) if message >= kind::FIRST_MESSAGE => {
                Some((Shape::Whole, header::MAX_MESSAGE_BYTES))
            }
            (Phase::Open, one_sided) => C::shape(one_sided),
            (Phase::Pairing, kind) => C::pairing(kind).map(|limit| (Shape::Whole, limit)),
            _ => {
                return Err(WireError::BadValue {
                    what: "frame kind before the greeting",
                    got: u64::from(header.kind),
                }
                .into());
            }
        };
        let Some((shape, limit)) = allowed else {
            return Err(WireError::UnknownKind { got: header.kind }.into());
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
        Ok(shape)
    }

    fn head(
        &mut self,
        header: &FrameHeader,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        self.carrier.on_head(&mut self.cx, header, head, length)
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
        header: &FrameHeader,
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
                    self.cx.refuse_if_room(header.id.get());
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

    fn frame(&mut self, header: &FrameHeader, body: Vec<u8>) -> Result<(), CloseReason> {
        let cx = &mut self.cx;
        cx.shared.counters.frames_in += 1;
        match header.kind {
            kind::GOODBYE => Err(cx.on_goodbye(&body)),
            kind::HELLO => {
                let endpoint = cx.on_hello(&body)?;
                self.greeted(endpoint)
            }
            kind::WELCOME => {
                let endpoint = cx.on_welcome(&body)?;
                self.greeted(endpoint)
            }
            kind if kind >= kind::FIRST_MESSAGE => {
                let connection = cx.connection;
                let id = header.id.get();
                cx.shared.counters.messages_in += 1;
                cx.event(Event::Message {
                    connection,
                    message: Message { kind, id, body },
                });
                Ok(())
            }
            _ => self.carrier.on_frame(cx, header, &body),
        }
    }
}

impl<C: Carrier> Receiver<'_, C> {
    fn greeted(&mut self, endpoint: EndpointId) -> Result<(), CloseReason> {
        self.cx.session.remote = endpoint;
        self.cx.session.phase = Phase::Pairing;
        if self.carrier.greeted(&mut self.cx) {
            self.cx.opened();
        }
        Ok(())
    }
}

impl<C: Carrier> Context<'_, C> {
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
