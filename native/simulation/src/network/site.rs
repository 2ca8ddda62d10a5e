//! One fabric of one process: its connections, its exposures, and the events that it will report.

use super::counters::SiteCounters;
use super::Outage;
use crate::core::Time;
use crate::step::{ConnectionEnd, LinkId};
use faro_fabric::{
    ConnectionId, Event, Exposure, FabricKind, Identity, RemoteRange, RevokeStatus, Waker,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The key of a site's first exposure. It is not 0 or 1, so that an invented key is unlikely to match.
const FIRST_KEY: u64 = 0x5eed_0000;

/// Memory that a peer may access.
pub(super) struct ExposedMemory {
    pub(super) connection: ConnectionId,
    pub(super) exposure: Exposure,
    /// True if the last write has come, or if no more writes can come.
    pub(super) is_settled: bool,
    /// True if its owner has revoked it and waits for it.
    pub(super) is_revoked: bool,
}

/// The speed of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessSpeed {
    /// Minimum time between two turns of a thread.
    pub(crate) pause: Duration,
    /// Maximum number of packets that it takes in one turn.
    pub(crate) packets: usize,
}

impl ProcessSpeed {
    pub(crate) const FAST: Self = Self {
        pause: Duration::from_micros(2),
        packets: 256,
    };
}

/// One fabric of one process.
pub(crate) struct SimulatedSite {
    pub(crate) node: usize,
    /// Number of the node's progress thread that polls it.
    pub(crate) place: usize,
    pub(super) kind: FabricKind,
    pub(super) identity: Identity,
    pub(super) location: String,
    /// True while its process lives.
    pub(super) is_alive: bool,
    /// The state of its device.
    pub(super) outage: Outage,
    pub(super) events: VecDeque<Event>,
    /// Connections that peers have begun and that are not accepted yet.
    pub(super) dials: VecDeque<LinkId>,
    pub(super) connections: BTreeMap<ConnectionId, (LinkId, ConnectionEnd)>,
    pub(super) exposures: BTreeMap<u64, ExposedMemory>,
    pub(super) counters: SiteCounters,
    next_connection: u64,
    next_key: u64,
    pub(crate) pace: ProcessSpeed,
    pub(crate) last_turn: Time,
    /// The time of its next planned turn.
    pub(crate) turn_at: Option<Time>,
    /// The time that its thread wanted to wait when it last polled.
    pub(crate) waits: Duration,
    rung: Arc<AtomicBool>,
}

impl SimulatedSite {
    pub(super) fn new(
        (node, place): (usize, usize),
        kind: FabricKind,
        identity: Identity,
        location: String,
    ) -> Self {
        Self {
            node,
            place,
            kind,
            identity,
            location,
            is_alive: true,
            outage: Outage::None,
            events: VecDeque::new(),
            dials: VecDeque::new(),
            connections: BTreeMap::new(),
            exposures: BTreeMap::new(),
            counters: SiteCounters::default(),
            next_connection: 1,
            next_key: FIRST_KEY,
            pace: ProcessSpeed::FAST,
            last_turn: Time::ZERO,
            turn_at: None,
            waits: Duration::ZERO,
            rung: Arc::default(),
        }
    }

    /// Returns the number of its connections, to whichever end they were begun from.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    pub(super) fn waker(&self) -> Waker {
        let rung = Arc::clone(&self.rung);
        Arc::new(move || rung.store(true, Ordering::Release))
    }

    /// Returns whether another thread of the process has rung since the last call.
    pub(crate) fn take_ring(&self) -> bool {
        self.rung.swap(false, Ordering::AcqRel)
    }

    pub(super) fn new_connection(&mut self, link: LinkId, end: ConnectionEnd) -> ConnectionId {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(id, (link, end));
        id
    }

    pub(super) fn expose(&mut self, connection: ConnectionId, exposure: Exposure) -> RemoteRange {
        let key = self.next_key;
        self.next_key += 1;
        let length = match &exposure {
            Exposure::Writable(lease) => lease.capacity(),
            Exposure::Readable(lease) => lease.capacity(),
        };
        let exposed = ExposedMemory {
            connection,
            exposure,
            is_settled: false,
            is_revoked: false,
        };
        self.exposures.insert(key, exposed);
        RemoteRange {
            key,
            // Offsets do not begin at zero, so that peers cannot rely on it.
            offset: key % 7 * 4_096,
            length: length as u32,
        }
    }

    pub(super) fn exposures_of(&self, connection: ConnectionId) -> usize {
        let all = self.exposures.values();
        all.filter(|exposed| exposed.connection == connection)
            .count()
    }

    /// Ends an exposure, if the fabric can do so alone.
    pub(super) fn revoke(&mut self, key: u64) -> RevokeStatus {
        let is_open = |connection| self.connections.contains_key(&connection);
        let Some(exposed) = self.exposures.get_mut(&key).filter(|e| !e.is_revoked) else {
            return RevokeStatus::Unknown;
        };
        let may_change = self.kind.is_by_device()
            && matches!(exposed.exposure, Exposure::Writable(_))
            && !exposed.is_settled
            && is_open(exposed.connection);
        if may_change {
            exposed.is_revoked = true;
            return RevokeStatus::Later;
        }
        match self.exposures.remove(&key) {
            Some(exposed) => RevokeStatus::Now(exposed.exposure),
            None => RevokeStatus::Unknown,
        }
    }

    /// Reports a peer's write with an immediate.
    pub(super) fn written(
        &mut self,
        connection: ConnectionId,
        key: u64,
        immediate: u16,
        length: u32,
    ) {
        self.events.push_back(Event::Written {
            connection,
            key,
            immediate,
            length,
        });
    }

    /// Returns a revoked exposure to its owner, because the peer can no longer write to it.
    pub(super) fn let_go(&mut self, key: u64) {
        if self.exposures.get(&key).is_some_and(|e| e.is_revoked) {
            if let Some(ExposedMemory { exposure, .. }) = self.exposures.remove(&key) {
                self.events.push_back(Event::Revoked { key, exposure });
            }
        }
    }

    /// Returns the exposure and the range that a peer names, if the peer may write there.
    pub(super) fn writable(
        &mut self,
        connection: ConnectionId,
        target: &RemoteRange,
        length: usize,
    ) -> Option<(&mut ExposedMemory, std::ops::Range<usize>)> {
        let offset = target.offset.checked_sub(target.key % 7 * 4_096)?;
        let exposed = self.exposures.get_mut(&target.key)?;
        let Exposure::Writable(lease) = &exposed.exposure else {
            return None;
        };
        let fits = exposed.connection == connection
            && length <= target.length as usize
            && lease.contains(offset, length as u64);
        let from = offset as usize;
        fits.then_some((exposed, from..from + length))
    }

    /// Returns the bytes that a peer names, if the peer may read them.
    pub(super) fn readable(
        &self,
        connection: ConnectionId,
        source: &RemoteRange,
    ) -> Option<Vec<u8>> {
        let offset = source.offset.checked_sub(source.key % 7 * 4_096)?;
        let exposed = self.exposures.get(&source.key)?;
        let Exposure::Readable(lease) = &exposed.exposure else {
            return None;
        };
        let fits = exposed.connection == connection && lease.contains(offset, source.length.into());
        let from = offset as usize;
        fits.then(|| lease.bytes()[from..from + source.length as usize].to_vec())
    }
}
