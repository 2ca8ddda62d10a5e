//! Counters of a site, by the names that real fabrics give them.

use super::pipe::Packet;

/// Counters since the fabric was made.
#[derive(Debug, Default, Clone)]
pub(super) struct SiteCounters {
    bytes_in: u64,
    bytes_out: u64,
    frames_in: u64,
    frames_out: u64,
    pub(super) connected: u64,
    pub(super) accepted: u64,
    pub(super) closed: u64,
    messages_in: u64,
    writes_in: u64,
    write_bytes_in: u64,
    writes_refused: u64,
    pub(super) rejected_full: u64,
}

impl SiteCounters {
    /// Counts a packet that leaves the site.
    pub(super) fn sent(&mut self, packet: &Packet) {
        self.frames_out += 1;
        self.bytes_out += packet.bytes() as u64;
    }

    /// Counts a packet that the site takes.
    pub(super) fn received(&mut self, packet: &Packet) {
        // It was counted as the write that it completes.
        if matches!(packet, Packet::Written { .. }) {
            return;
        }
        self.frames_in += 1;
        self.bytes_in += packet.bytes() as u64;
        self.messages_in += u64::from(matches!(packet, Packet::Message(_)));
    }

    /// Counts a peer's write, which was taken or refused.
    pub(super) fn written(&mut self, taken: bool, bytes: usize) {
        if taken {
            self.writes_in += 1;
            self.write_bytes_in += bytes as u64;
        } else {
            self.writes_refused += 1;
        }
    }

    /// Returns all counters by their names.
    pub(super) fn named(&self, exposures: usize) -> Vec<(&'static str, u64)> {
        vec![
            ("bytes_in", self.bytes_in),
            ("bytes_out", self.bytes_out),
            ("frames_in", self.frames_in),
            ("frames_out", self.frames_out),
            ("connected", self.connected),
            ("accepted", self.accepted),
            ("closed", self.closed),
            ("messages_in", self.messages_in),
            ("writes_in", self.writes_in),
            ("write_bytes_in", self.write_bytes_in),
            ("writes_refused", self.writes_refused),
            ("rejected_full", self.rejected_full),
            ("exposures", exposures as u64),
        ]
    }
}
