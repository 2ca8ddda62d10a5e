//! Counters of the exchange.

use super::PeerAdmission;
use crate::counters::{Gauge, Peak};
use faro_fabric::EndpointId;
use faro_sync::{lock, HashMap};
use std::sync::Mutex;

/// This endpoint's side of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeSide {
    Reads,
    Serves,
}

#[derive(Default)]
struct InUse {
    /// Permits held with a peer, on both sides and on all fabrics.
    pairs: HashMap<EndpointId, u32>,
    /// Permits held by peers that are served.
    served: u64,
}

/// The counters of one endpoint's exchange.
#[derive(Default)]
pub(super) struct Usage {
    in_use: Mutex<InUse>,
    pub(super) members: Gauge,
    /// The order that runs, by its code; 0 before there are peers.
    pub(super) policy: Gauge,
    active: Gauge,
    active_peak: Peak,
    fan_in: Gauge,
    fan_in_peak: Peak,
    pairs: Gauge,
    pairs_peak: Peak,
    rounds: Gauge,
    waits: Gauge,
}

impl Usage {
    /// Takes up what an admission has done since it was last looked at.
    pub(super) fn note<T>(&self, admission: &mut PeerAdmission<T>, side: ExchangeSide) {
        for (peer, held) in admission.moves() {
            self.count_permit(peer, held, side);
        }
        if side == ExchangeSide::Reads {
            let active = admission.active() as u64;
            self.active.set(active);
            self.active_peak.at_least(active);
            self.rounds.set(admission.rounds());
            self.waits.set(admission.waited());
        }
    }

    /// Counts that a peer got a permit, or returned one.
    fn count_permit(&self, peer: EndpointId, held: bool, side: ExchangeSide) {
        let step = |count: u64| {
            if held {
                count + 1
            } else {
                count.saturating_sub(1)
            }
        };
        // The tables are whole between any two statements.
        let mut in_use = lock(&self.in_use);
        let permits = in_use.pairs.entry(peer).or_default();
        *permits = if held {
            *permits + 1
        } else {
            permits.saturating_sub(1)
        };
        if *permits == 0 {
            in_use.pairs.remove(&peer);
        }
        let pairs = in_use.pairs.len() as u64;
        self.pairs.set(pairs);
        self.pairs_peak.at_least(pairs);
        if side == ExchangeSide::Serves {
            in_use.served = step(in_use.served);
            self.fan_in.set(in_use.served);
            self.fan_in_peak.at_least(in_use.served);
        }
    }

    pub(super) fn list(&self) -> [(&'static str, u64); 10] {
        [
            ("exchange.members", self.members.get()),
            ("exchange.policy", self.policy.get()),
            ("exchange.activePeers", self.active.get()),
            ("exchange.activePeersHighWater", self.active_peak.get()),
            ("exchange.fanIn", self.fan_in.get()),
            ("exchange.fanInHighWater", self.fan_in_peak.get()),
            ("exchange.pairsInUse", self.pairs.get()),
            ("exchange.pairsInUseHighWater", self.pairs_peak.get()),
            ("exchange.rounds", self.rounds.get()),
            ("exchange.waits", self.waits.get()),
        ]
    }
}
