//! The bounds and speeds of a network, chosen once for each run.

use crate::sim_rng::SimRng;
use std::time::Duration;

/// Bounds and speeds of all links of a run.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// Minimum latency in one direction.
    pub(crate) latency: Duration,
    /// Maximum extra time of a packet.
    pub(crate) jitter: Duration,
    /// Bytes per second.
    pub(crate) bandwidth: u64,
    /// Maximum number of bytes that were sent and that the receiver has not taken: the kernel's
    /// buffers, or a device's credits.
    pub(crate) window: usize,
    /// Maximum number of bytes that a connection queues.
    pub(crate) queued_bytes: usize,
    /// Maximum number of posts that a connection queues.
    pub(crate) queued_posts: usize,
    /// Maximum number of exposures of a connection.
    pub(crate) exposures: usize,
    /// Number of payloads in 1,000 in which a bit flips.
    pub(crate) corrupt: u64,
    /// Number of lost connections in 1,000 that only deadlines detect.
    pub(crate) silent_losses: u64,
}

impl Conditions {
    /// A fast network that loses and changes nothing.
    pub(crate) const FAST: Self = Self {
        latency: Duration::from_micros(5),
        jitter: Duration::from_micros(2),
        bandwidth: 1 << 30,
        window: 1 << 20,
        queued_bytes: 64 << 20,
        queued_posts: 1_024,
        exposures: 65_536,
        corrupt: 0,
        silent_losses: 0,
    };

    pub(crate) fn roll(dice: &mut SimRng) -> Self {
        let micros = Duration::from_micros;
        Self {
            latency: dice.time(micros(2)..micros(300)),
            jitter: dice.one_of(&[micros(1), micros(50), micros(2_000)]),
            bandwidth: dice.one_of(&[200 << 20, 1 << 30, 10 << 30]),
            window: dice.one_of(&[64 << 10, 256 << 10, 1 << 20, 4 << 20]),
            queued_bytes: dice.one_of(&[1 << 20, 8 << 20, 64 << 20]),
            queued_posts: dice.one_of(&[16, 128, 1_024]),
            exposures: dice.one_of(&[64, 1_024, 65_536]),
            corrupt: 0,
            silent_losses: 200,
        }
    }
}
