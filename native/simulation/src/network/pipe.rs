//! One direction of a connection: its queued posts, and its packets on the wire.

use super::Conditions;
use crate::core::Time;
use faro_fabric::{Message, RemoteRange, Write};
use std::collections::VecDeque;

/// Bytes of a frame without its payload.
const HEAD_BYTES: usize = 48;

/// A post that was not sent yet.
pub(super) enum QueuedPost {
    Message(Message),
    Write(Write),
    ReadRequest {
        token: u64,
        source: RemoteRange,
    },
    /// The bytes that were read, or `None` if the read was refused.
    ReadReply {
        token: u64,
        bytes: Option<Vec<u8>>,
    },
}

/// A packet between its sender and its receiver.
pub(super) enum Packet {
    /// The acceptor has accepted.
    Welcome,
    Message(Message),
    Write {
        bytes: Vec<u8>,
        target: RemoteRange,
        immediate: Option<u16>,
        last: bool,
    },
    ReadRequest {
        token: u64,
        source: RemoteRange,
    },
    ReadReply {
        token: u64,
        bytes: Option<Vec<u8>>,
    },
    /// The completion of a write with an immediate, whose bytes a device has put into memory. It is
    /// polled in the order in which the packets came.
    Written {
        key: u64,
        immediate: u16,
        length: u32,
    },
    /// The result of a write, on fabrics that report it.
    WriteReply {
        taken: bool,
    },
    /// The sender has ended the connection, with a reason or without.
    Goodbye {
        detail: Option<String>,
    },
}

impl QueuedPost {
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES
            + match self {
                Self::Message(message) => message.body.len(),
                Self::Write(write) => write.source.length(),
                Self::ReadRequest { .. } => 0,
                Self::ReadReply { bytes, .. } => bytes.as_ref().map_or(0, Vec::len),
            }
    }
}

impl Packet {
    pub(super) fn bytes(&self) -> usize {
        HEAD_BYTES
            + match self {
                Self::Message(message) => message.body.len(),
                Self::Write { bytes, .. } => bytes.len(),
                Self::ReadReply { bytes, .. } => bytes.as_ref().map_or(0, Vec::len),
                Self::Welcome
                | Self::ReadRequest { .. }
                | Self::Written { .. }
                | Self::WriteReply { .. }
                | Self::Goodbye { .. } => 0,
            }
    }

    /// Returns whether a device takes the packet without the receiver's process.
    pub(super) fn is_one_sided(&self) -> bool {
        match self {
            Self::Write { .. }
            | Self::ReadRequest { .. }
            | Self::ReadReply { .. }
            | Self::WriteReply { .. } => true,
            Self::Welcome | Self::Message(_) | Self::Written { .. } | Self::Goodbye { .. } => false,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Welcome => "welcome",
            Self::Message(_) => "message",
            Self::Write { .. } => "write",
            Self::ReadRequest { .. } => "read",
            Self::ReadReply { .. } => "bytes",
            Self::Written { .. } => "completion",
            Self::WriteReply { .. } => "written",
            Self::Goodbye { .. } => "goodbye",
        }
    }
}

/// A packet and the time at which it arrives.
pub(super) struct Flight {
    pub(super) arrives: Time,
    pub(super) packet: Packet,
}

/// One direction of a connection.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) queued: VecDeque<QueuedPost>,
    queued_bytes: usize,
    /// Packets that the receiver has not taken, in order.
    pub(super) wire: VecDeque<Flight>,
    wire_bytes: usize,
    /// The times at which the last bit leaves the sender, and at which the last packet arrives.
    line_free: Time,
    last_arrival: Time,
    /// True if the sender saw that the pipe is full.
    pub(super) sender_waits: bool,
}

impl Pipe {
    /// Returns whether one more post of `bytes` bytes may be queued.
    pub(super) fn has_room(&self, bytes: usize, conditions: &Conditions) -> bool {
        self.queued.is_empty()
            || self.queued.len() < conditions.queued_posts
                && self.queued_bytes + bytes <= conditions.queued_bytes
    }

    pub(super) fn push(&mut self, post: QueuedPost) {
        self.queued_bytes += post.bytes();
        self.queued.push_back(post);
    }

    /// Takes the next post, if the window has room for it.
    pub(super) fn next(&mut self, conditions: &Conditions) -> Option<QueuedPost> {
        let bytes = self.queued.front()?.bytes();
        if self.wire_bytes > 0 && self.wire_bytes + bytes > conditions.window {
            return None;
        }
        self.queued_bytes -= bytes;
        self.queued.pop_front()
    }

    /// Sends a packet and returns the time at which it arrives.
    pub(super) fn send(&mut self, now: Time, delay: Time, bandwidth: u64, packet: Packet) -> Time {
        let bytes = packet.bytes();
        let takes =
            Time::from_nanos((bytes as u128 * 1_000_000_000 / u128::from(bandwidth)) as u64);
        self.line_free = self.line_free.max(now) + takes;
        let arrives = (self.line_free + delay).max(self.last_arrival);
        self.last_arrival = arrives;
        self.wire_bytes += bytes;
        self.wire.push_back(Flight { arrives, packet });
        arrives
    }

    /// Takes the first packet that has arrived and that `which` accepts. Returns its place too.
    pub(super) fn take(
        &mut self,
        now: Time,
        which: impl Fn(&Packet) -> bool,
    ) -> Option<(usize, Packet)> {
        let arrived = self.wire.iter().take_while(|flight| flight.arrives <= now);
        let at = arrived
            .enumerate()
            .find_map(|(at, flight)| which(&flight.packet).then_some(at))?;
        let flight = self.wire.remove(at)?;
        self.wire_bytes -= flight.packet.bytes();
        Some((at, flight.packet))
    }

    /// Puts a packet that has arrived at a place that `take` has returned.
    pub(super) fn requeue(&mut self, now: Time, at: usize, packet: Packet) {
        self.wire_bytes += packet.bytes();
        let arrives = now;
        self.wire.insert(at, Flight { arrives, packet });
    }

    /// Loses all packets on the wire, and returns them.
    pub(super) fn lose(&mut self) -> VecDeque<Flight> {
        self.wire_bytes = 0;
        std::mem::take(&mut self.wire)
    }

    /// Removes and returns the posts that were not sent.
    pub(super) fn flush(&mut self) -> VecDeque<QueuedPost> {
        self.queued_bytes = 0;
        std::mem::take(&mut self.queued)
    }
}
