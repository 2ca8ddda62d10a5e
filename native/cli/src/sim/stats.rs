//! Counters of one run of the engine, and the figures computed from them.

use super::args::PolicyName;
use super::units::{Picos, SECOND};
use serde::Serialize;

#[derive(Debug, Default, Clone)]
pub struct SimStats {
    /// Time of each client's last byte.
    pub completions: Vec<Picos>,
    /// Most servers to which one client had open requests.
    pub peak_active_peers: u32,
    /// Most clients that one server served at once.
    pub peak_serving: u32,
    /// Most peers of one endpoint with data moving in either direction.
    pub peak_queue_pair_peers: u32,
    /// Most windows on their way to one port.
    pub peak_fan_in: u32,
    /// Largest backlog that a port accepted a window with.
    pub peak_buffer_bytes: u64,
    pub buffer_overflows: u64,
    pub lost_bytes: u64,
    pub pauses: u64,
    /// Time that links were paused, summed over all links.
    pub paused: Picos,
    pub received_bytes: u64,
    pub events: u64,
}

/// The result for one policy, as printed.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyFigures {
    #[serde(skip)]
    pub policy: PolicyName,
    /// Time of the last endpoint's last byte.
    pub completion_s: f64,
    /// Mean over endpoints.
    pub mean_completion_s: f64,
    /// The busiest link at its rate, divided by completion_s.
    pub efficiency: f64,
    /// Servers that one client reads from at once.
    pub peak_active_peers: u32,
    /// Clients that one server serves at once.
    pub peak_serving: u32,
    /// Servers with bytes in the network towards one client's port at once.
    pub peak_fan_in: u32,
    /// Queue pairs of one endpoint with data moving, in either direction.
    pub peak_active_queue_pairs: u32,
    /// Windows lost to a full buffer.
    pub buffer_overflows: u64,
    pub lost_bytes: u64,
    pub peak_buffer_bytes: u64,
    pub pauses: u64,
    pub paused_s: f64,
    pub received_bytes: u64,
    pub events: u64,
}

impl PolicyFigures {
    pub fn new(
        policy: PolicyName,
        stats: &SimStats,
        ideal: Picos,
        qps_per_peer: u32,
    ) -> PolicyFigures {
        let seconds = |t: Picos| t as f64 / SECOND as f64;
        let last = stats.completions.iter().copied().max().unwrap_or(0);
        let sum: f64 = stats.completions.iter().map(|&t| seconds(t)).sum();
        PolicyFigures {
            policy,
            completion_s: seconds(last),
            mean_completion_s: sum / stats.completions.len().max(1) as f64,
            efficiency: ideal as f64 / last.max(1) as f64,
            peak_active_peers: stats.peak_active_peers,
            peak_serving: stats.peak_serving,
            peak_fan_in: stats.peak_fan_in,
            peak_active_queue_pairs: stats.peak_queue_pair_peers * qps_per_peer,
            buffer_overflows: stats.buffer_overflows,
            lost_bytes: stats.lost_bytes,
            peak_buffer_bytes: stats.peak_buffer_bytes,
            pauses: stats.pauses,
            paused_s: seconds(stats.paused),
            received_bytes: stats.received_bytes,
            events: stats.events,
        }
    }
}
