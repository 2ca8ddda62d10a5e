//! Framing of received bytes; everything in them is checked before it is used.
//!
//! ```text
//!          32 bytes in: magic, version, header CRC        body complete: CRC
//!   HEAD ---------------- begin() ----------------> BODY ---- frame() ----> HEAD
//!     |   kind and length allowed in this phase?
//!     +-- head bytes in: CRC -- head() --> PAYLOAD -- payload_end() --> HEAD
//! ```
//! Bytes come either through [`Inbound::feed`] (copied out of the staging buffer) or in place,
//! into what [`Inbound::direct`] offers, followed by [`Inbound::landed`]. Where payload goes is
//! asked anew for every run of bytes ([`Consumer::slot`]), because the memory can be revoked
//! between two of them; without a slot the bytes are discarded.
//!
//! Memory: a body's buffer grows with the bytes received (at most to twice their number), never to
//! the length that a header claims.

use crate::CloseReason;
use faro_wire::{header::HEADER_BYTES, FrameHeader, WireError};

/// Bytes still missing from which on they are received in place.
const DIRECT_BYTES: usize = 16 << 10;
/// Largest head before a payload.
const MAX_HEAD_BYTES: usize = 24;
/// Bytes of body buffer that are allocated before any byte of the body came.
const FIRST_BODY_BYTES: usize = 64 << 10;

/// Structure of the bytes after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A body, passed on when it is complete.
    Whole,
    /// A head of that many bytes, then payload.
    Headed(usize),
}

/// Destination of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sink {
    /// Into an exposed lease.
    Exposed {
        key: u64,
        offset: u64,
        immediate: Option<u16>,
    },
    /// Into the target of a read that this side posted.
    Read { sequence: u64, refused: bool },
}

/// Handles the frames that the framing finds.
pub(crate) trait Consumer {
    /// A decoded kind.
    type Kind: Copy;
    /// A checked header came. Returns its kind and what follows; an error if it may not come now.
    fn begin(&mut self, header: &FrameHeader) -> Result<(Self::Kind, Shape), CloseReason>;
    /// The head of a payload of `length` bytes came.
    fn head(
        &mut self,
        kind: Self::Kind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason>;
    /// Memory for the payload's bytes from `at` on, `length` of them; `None` throws them away.
    fn slot(&mut self, sink: &Sink, at: usize, length: usize) -> Option<&mut [u8]>;
    /// All `length` bytes of a payload came. `dropped`: not all of them found a slot.
    fn payload_end(
        &mut self,
        id: u64,
        sink: Sink,
        length: usize,
        dropped: bool,
    ) -> Result<(), CloseReason>;
    /// Whether the bytes after the last frame are records, which this framing cannot read before
    /// they are opened.
    fn switches(&self) -> bool {
        false
    }
    /// A whole frame came, body checked.
    fn frame(&mut self, kind: Self::Kind, id: u64, body: Vec<u8>) -> Result<(), CloseReason>;
}

enum State {
    /// Header, and head if there is one.
    Head,
    /// `body[..filled]` is there; longer only between `direct` and `landed`.
    Body { body: Vec<u8>, filled: usize },
    /// `filled` bytes of the payload came.
    Payload {
        sink: Sink,
        filled: usize,
        dropped: bool,
    },
}

/// One connection's framing.
pub(crate) struct Inbound<K> {
    state: State,
    /// The frame under way, once its 32 bytes are in and checked.
    header: Option<(FrameHeader, K)>,
    head: [u8; HEADER_BYTES + MAX_HEAD_BYTES],
    /// Bytes in `head`.
    have: usize,
    /// Bytes of `head` this frame has.
    need: usize,
}

impl<K: Copy> Inbound<K> {
    pub(crate) fn new() -> Self {
        Self {
            state: State::Head,
            header: None,
            head: [0; HEADER_BYTES + MAX_HEAD_BYTES],
            have: 0,
            need: HEADER_BYTES,
        }
    }

    /// Bytes of memory held for a frame that is not complete.
    pub(crate) fn buffered(&self) -> usize {
        match &self.state {
            State::Body { body, .. } => body.capacity(),
            _ => 0,
        }
    }

    /// Bytes of body or payload after the head.
    fn rest(&self) -> usize {
        self.header.as_ref().map_or(0, |(header, _)| {
            header.length.get() as usize - (self.need - HEADER_BYTES)
        })
    }

    /// Takes bytes that were staged; returns how many of the last ones it left, because records
    /// begin with them.
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        consumer: &mut impl Consumer<Kind = K>,
    ) -> Result<usize, CloseReason> {
        while !bytes.is_empty() && !consumer.switches() {
            let rest = self.rest();
            let took = match &mut self.state {
                State::Head => {
                    let took = bytes.len().min(self.need - self.have);
                    self.head[self.have..][..took].copy_from_slice(&bytes[..took]);
                    self.have += took;
                    took
                }
                State::Body { body, filled } => {
                    let took = bytes.len().min(rest - *filled);
                    body.extend_from_slice(&bytes[..took]);
                    *filled += took;
                    took
                }
                State::Payload {
                    sink,
                    filled,
                    dropped,
                } => {
                    let took = bytes.len().min(rest - *filled);
                    match consumer.slot(sink, *filled, took) {
                        Some(slot) if !*dropped => slot.copy_from_slice(&bytes[..took]),
                        _ => *dropped = true,
                    }
                    *filled += took;
                    took
                }
            };
            bytes = &bytes[took..];
            self.settle(consumer)?;
        }
        Ok(bytes.len())
    }

    /// Memory to receive the next bytes in, if there are enough of them to be worth it.
    pub(crate) fn direct<'c>(
        &'c mut self,
        consumer: &'c mut impl Consumer<Kind = K>,
    ) -> Option<&'c mut [u8]> {
        let rest = self.rest();
        match &mut self.state {
            State::Body { body, filled } if rest - *filled >= DIRECT_BYTES => {
                let step = (rest - *filled).min((*filled).max(FIRST_BODY_BYTES));
                body.resize(*filled + step, 0);
                Some(&mut body[*filled..])
            }
            State::Payload {
                sink,
                filled,
                dropped: false,
            } if rest - *filled >= DIRECT_BYTES => consumer.slot(sink, *filled, rest - *filled),
            _ => None,
        }
    }

    /// `bytes` were received into what `direct` offered (none, if the call failed).
    pub(crate) fn landed(
        &mut self,
        bytes: usize,
        consumer: &mut impl Consumer<Kind = K>,
    ) -> Result<(), CloseReason> {
        match &mut self.state {
            State::Body { body, filled } => {
                *filled += bytes;
                body.truncate(*filled);
            }
            State::Payload { filled, .. } => *filled += bytes,
            State::Head => {}
        }
        self.settle(consumer)
    }

    /// Goes on until bytes are missing.
    fn settle(&mut self, consumer: &mut impl Consumer<Kind = K>) -> Result<(), CloseReason> {
        loop {
            let rest = self.rest();
            match &mut self.state {
                State::Head if self.have < self.need => return Ok(()),
                State::Head => self.enter(consumer)?,
                State::Body { filled, .. } | State::Payload { filled, .. } if *filled < rest => {
                    return Ok(());
                }
                _ => self.complete(rest, consumer)?,
            }
        }
    }

    /// The head, as far as it is known, is in.
    fn enter(&mut self, consumer: &mut impl Consumer<Kind = K>) -> Result<(), CloseReason> {
        let Some((header, kind)) = self.header else {
            let header = FrameHeader::parse(&self.head[..HEADER_BYTES])?;
            for (what, got) in [
                ("header flags", u32::from(header.flags.get())),
                ("header's reserved field", header.reserved.get()),
            ] {
                if got != 0 {
                    let got = u64::from(got);
                    return Err(WireError::BadValue { what, got }.into());
                }
            }
            let length = header.length.get() as usize;
            let (kind, shape) = consumer.begin(&header)?;
            match shape {
                Shape::Whole => {
                    let body = Vec::with_capacity(length.min(FIRST_BODY_BYTES));
                    self.state = State::Body { body, filled: 0 };
                }
                Shape::Headed(bytes) if length < bytes => {
                    return Err(WireError::Truncated {
                        what: "head of a one-sided operation",
                        needed: bytes,
                        got: length,
                    }
                    .into());
                }
                Shape::Headed(bytes) => self.need = HEADER_BYTES + bytes,
            }
            self.header = Some((header, kind));
            return Ok(());
        };
        let head = &self.head[HEADER_BYTES..self.need];
        header.check_body(head)?;
        let rest = self.rest();
        let sink = consumer.head(kind, header.id.get(), head, rest)?;
        // The whole range or nothing: a write that ends out of bounds must not begin in them.
        let dropped = consumer.slot(&sink, 0, rest).is_none();
        self.state = State::Payload {
            sink,
            filled: 0,
            dropped,
        };
        Ok(())
    }

    /// The frame is in.
    fn complete(
        &mut self,
        rest: usize,
        consumer: &mut impl Consumer<Kind = K>,
    ) -> Result<(), CloseReason> {
        let state = std::mem::replace(&mut self.state, State::Head);
        self.have = 0;
        self.need = HEADER_BYTES;
        let Some((header, kind)) = self.header.take() else {
            return Ok(());
        };
        match state {
            State::Body { body, .. } => {
                header.check_body(&body)?;
                consumer.frame(kind, header.id.get(), body)
            }
            State::Payload { sink, dropped, .. } => {
                consumer.payload_end(header.id.get(), sink, rest, dropped)
            }
            State::Head => Ok(()),
        }
    }
}
