//! Framing of received bytes; everything in them is checked before it is used.
//!
//! ```text
//!          32 bytes in: magic, version, header CRC        body complete: CRC
//!   HEAD ---------------- begin() ----------------> BODY ---- frame() ----> HEAD
//!     |   kind and length allowed in this phase?
//!     +-- head bytes in: CRC -- head() --> PAYLOAD -- payload_end() --> HEAD
//! ```
//! Bytes come either through [`Inbound::feed`] (copied out of the staging buffer) or in place,
//! into the memory that [`Inbound::direct`] returns, followed by [`Inbound::landed`]. Each run of
//! payload bytes asks [`Consumer::slot`] for its place, because the memory can be revoked between
//! two runs; without a slot the bytes are discarded.
//!
//! Memory: a body's buffer grows with the bytes received (at most to twice their number), never to
//! the length that a header claims.

use crate::CloseReason;
use faro_wire::{header::HEADER_BYTES, FrameHeader, WireError};

/// Number of missing bytes from which on they are received in place.
const DIRECT_BYTES: usize = 16 << 10;
/// Largest head before a payload.
const MAX_HEAD_BYTES: usize = 24;
/// Bytes of body buffer that are allocated before any byte of the body came.
const FIRST_BODY_BYTES: usize = 64 << 10;

/// Structure of the bytes after a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyShape {
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
    /// Handles a checked header. Returns its kind and the shape of what follows, or an error if it
    /// may not come now.
    fn begin(&mut self, header: &FrameHeader) -> Result<(Self::Kind, BodyShape), CloseReason>;
    /// Handles the head of a payload of `length` bytes.
    fn head(
        &mut self,
        kind: Self::Kind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason>;
    /// Returns memory for `length` bytes of the payload from `at` on; `None` discards them.
    fn slot(&mut self, sink: &Sink, at: usize, length: usize) -> Option<&mut [u8]>;
    /// Handles the end of a payload of `length` bytes. `dropped`: some had no slot.
    fn payload_end(
        &mut self,
        id: u64,
        sink: Sink,
        length: usize,
        dropped: bool,
    ) -> Result<(), CloseReason>;
    /// Returns whether the bytes after the last frame are records, which this framing cannot read
    /// before they are opened.
    fn switches(&self) -> bool {
        false
    }
    /// Handles a whole frame whose body was checked.
    fn frame(&mut self, kind: Self::Kind, id: u64, body: Vec<u8>) -> Result<(), CloseReason>;
}

enum InboundState {
    /// Header, and head if there is one.
    Head,
    /// `body[..filled]` was received; `body` is longer only between `direct` and `landed`.
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
    state: InboundState,
    /// The current frame, after its 32 bytes have come and were checked.
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
            state: InboundState::Head,
            header: None,
            head: [0; HEADER_BYTES + MAX_HEAD_BYTES],
            have: 0,
            need: HEADER_BYTES,
        }
    }

    /// Returns the bytes of memory held for a frame that is not complete.
    pub(crate) fn buffered(&self) -> usize {
        match &self.state {
            InboundState::Body { body, .. } => body.capacity(),
            _ => 0,
        }
    }

    /// Returns the bytes of body or payload after the head.
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
                InboundState::Head => {
                    let took = bytes.len().min(self.need - self.have);
                    self.head[self.have..][..took].copy_from_slice(&bytes[..took]);
                    self.have += took;
                    took
                }
                InboundState::Body { body, filled } => {
                    let took = bytes.len().min(rest - *filled);
                    body.extend_from_slice(&bytes[..took]);
                    *filled += took;
                    took
                }
                InboundState::Payload {
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

    /// Returns memory to receive the next bytes in place, if there are enough of them to be worth
    /// it.
    pub(crate) fn direct<'c>(
        &'c mut self,
        consumer: &'c mut impl Consumer<Kind = K>,
    ) -> Option<&'c mut [u8]> {
        let rest = self.rest();
        match &mut self.state {
            InboundState::Body { body, filled } if rest - *filled >= DIRECT_BYTES => {
                let step = (rest - *filled).min((*filled).max(FIRST_BODY_BYTES));
                body.resize(*filled + step, 0);
                Some(&mut body[*filled..])
            }
            InboundState::Payload {
                sink,
                filled,
                dropped: false,
            } if rest - *filled >= DIRECT_BYTES => consumer.slot(sink, *filled, rest - *filled),
            _ => None,
        }
    }

    /// Notes that `bytes` bytes were received into the memory that `direct` returned (none, if the
    /// call failed).
    pub(crate) fn landed(
        &mut self,
        bytes: usize,
        consumer: &mut impl Consumer<Kind = K>,
    ) -> Result<(), CloseReason> {
        match &mut self.state {
            InboundState::Body { body, filled } => {
                debug_assert!(*filled + bytes <= body.len(), "received beyond `direct`");
                *filled += bytes;
                body.truncate(*filled);
            }
            InboundState::Payload { filled, .. } => *filled += bytes,
            InboundState::Head => debug_assert_eq!(bytes, 0, "`direct` returned no memory"),
        }
        self.settle(consumer)
    }

    /// Goes on until bytes are missing.
    fn settle(&mut self, consumer: &mut impl Consumer<Kind = K>) -> Result<(), CloseReason> {
        loop {
            let rest = self.rest();
            match &mut self.state {
                InboundState::Head if self.have < self.need => return Ok(()),
                InboundState::Head => self.enter(consumer)?,
                InboundState::Body { filled, .. } | InboundState::Payload { filled, .. }
                    if *filled < rest =>
                {
                    return Ok(());
                }
                _ => self.complete(rest, consumer)?,
            }
        }
    }

    /// Handles the head, as far as its length is known.
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
                BodyShape::Whole => {
                    let body = Vec::with_capacity(length.min(FIRST_BODY_BYTES));
                    self.state = InboundState::Body { body, filled: 0 };
                }
                BodyShape::Headed(bytes) if length < bytes => {
                    return Err(WireError::Truncated {
                        what: "head of a one-sided operation",
                        needed: bytes,
                        got: length,
                    }
                    .into());
                }
                BodyShape::Headed(bytes) => self.need = HEADER_BYTES + bytes,
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
        self.state = InboundState::Payload {
            sink,
            filled: 0,
            dropped,
        };
        Ok(())
    }

    /// Handles a complete frame.
    fn complete(
        &mut self,
        rest: usize,
        consumer: &mut impl Consumer<Kind = K>,
    ) -> Result<(), CloseReason> {
        let state = std::mem::replace(&mut self.state, InboundState::Head);
        self.have = 0;
        self.need = HEADER_BYTES;
        let Some((header, kind)) = self.header.take() else {
            return Ok(());
        };
        match state {
            InboundState::Body { body, .. } => {
                header.check_body(&body)?;
                consumer.frame(kind, header.id.get(), body)
            }
            InboundState::Payload { sink, dropped, .. } => {
                consumer.payload_end(header.id.get(), sink, rest, dropped)
            }
            InboundState::Head => Ok(()),
        }
    }
}
