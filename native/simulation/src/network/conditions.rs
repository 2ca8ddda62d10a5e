//! What a network is like: chosen once for each run, and for each link of it.

use crate::dice::Dice;
use std::time::Duration;

/// Bounds and speeds of all links of a run.
#[derive(Debug, Clone)]
pub(crate) struct Conditions {
    /// One way, the least.
    pub(crate) latency: Duration,
    /// A packet may take so much longer, at most.
    pub(crate) jitter: Duration,
    /// Bytes in a second.
    pub(crate) bandwidth: u64,
    /// Bytes on the way that the receiver has not taken: the kernel's buffers, or a device's credits.
    pub(crate) window: usize,
    /// Bytes that a connection queues before it is full.
    pub(crate) queued_bytes: usize,
    /// Posts that it queues.
    pub(crate) queued_posts: usize,
    /// Exposures of one connection.
    pub(crate) exposures: usize,
    /// Of 1,000 payloads, so many have a wrong bit.
    pub(crate) corrupt: u64,
    /// Of 1,000 losses of a connection, so many are noticed by deadlines only.
    pub(crate) silent_losses: u64,
}

impl Conditions {
    pub(crate) fn roll(dice: &mut Dice) -> Self {
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
