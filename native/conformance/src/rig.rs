//! Fabrics under test, driven step by step.

use crate::{fill, Bench};
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Message, Outcome, OwnIdentity, RemoteRange,
    RevokeStatus, Write,
};
use faro_pool::{Lease, Pool, Purpose};
use faro_sync::clock::now;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bound of every wait; only a hang reaches it.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an idle step waits in each fabric.
const STEP: Duration = Duration::from_millis(1);

/// One endpoint's fabric.
pub struct Site {
    /// The fabric under test.
    pub fabric: Box<dyn Fabric>,
    /// The fabric's memory.
    pub pool: Arc<Pool>,
    /// The identity that it proves to peers.
    pub identity: OwnIdentity,
}

struct Station {
    site: Site,
    /// Events not looked at yet, oldest first.
    events: Vec<Event>,
    /// True if it is not polled, like a process that hangs.
    asleep: bool,
}

/// A connection, seen from both ends.
#[derive(Debug, Clone, Copy)]
pub struct ConnectedPair {
    /// Station that connected, and its name for the other.
    pub from: (usize, ConnectionId),
    /// Station that accepted, and its name for the other.
    pub to: (usize, ConnectionId),
}

/// Several stations, driven by one thread.
pub struct Rig {
    /// The stations; `None` after a station was killed.
    stations: Vec<Option<Station>>,
}

impl Rig {
    /// Returns a rig of `count` stations that are not connected.
    pub fn new(bench: &dyn Bench, count: usize) -> Self {
        let station = |_| {
            Some(Station {
                site: bench.site(),
                events: Vec::new(),
                asleep: false,
            })
        };
        Self {
            stations: (0..count).map(station).collect(),
        }
    }

    /// Returns a rig of two connected stations.
    pub fn pair(bench: &dyn Bench) -> (Self, ConnectedPair) {
        let mut rig = Self::new(bench, 2);
        let link = rig.link(0, 1);
        (rig, link)
    }

    fn station(&mut self, station: usize) -> &mut Station {
        self.stations[station].as_mut().expect("it was killed")
    }

    /// Returns a station's site.
    pub fn at(&mut self, station: usize) -> &mut Site {
        &mut self.station(station).site
    }

    /// Returns a station's fabric.
    pub fn fabric(&mut self, station: usize) -> &mut dyn Fabric {
        &mut *self.station(station).site.fabric
    }

    /// Drops a station's fabric, as the end of its process would: no goodbye.
    pub fn kill(&mut self, station: usize) {
        self.stations[station] = None;
    }

    /// Stops polling a station, or starts again.
    pub fn sleep(&mut self, station: usize, asleep: bool) {
        self.station(station).asleep = asleep;
    }

    /// Returns a deadline that only a hang reaches.
    pub fn deadline() -> Instant {
        now() + TIMEOUT
    }

    /// Starts to connect.
    pub fn connect(&mut self, from: usize, to: usize) -> ConnectionId {
        let location = self.fabric(to).location();
        let expected = self.at(to).identity.clone();
        self.fabric(from)
            .connect(&location, &expected, Self::deadline())
            .expect("the location is good")
    }

    /// Connects two stations.
    pub fn link(&mut self, from: usize, to: usize) -> ConnectedPair {
        let connection = self.connect(from, to);
        self.wait(from, "Connected", |event| match event {
            Event::Connected {
                connection: got, ..
            } if *got == connection => Some(()),
            _ => None,
        });
        let other = self.at(from).identity.endpoint;
        let accepted = self.wait(to, "Accepted", |event| match event {
            Event::Accepted {
                connection,
                endpoint,
            } if *endpoint == other => Some(*connection),
            _ => None,
        });
        ConnectedPair {
            from: (from, connection),
            to: (to, accepted),
        }
    }

    /// Polls every station once; waits a little in each if `idle`.
    fn turn(&mut self, idle: bool) -> bool {
        let mut progress = false;
        for station in self.stations.iter_mut().flatten() {
            if station.asleep {
                continue;
            }
            let before = station.events.len();
            let timeout = if idle { STEP } else { Duration::ZERO };
            station
                .site
                .fabric
                .poll(&mut station.events, timeout)
                .expect("poll works");
            progress |= station.events.len() > before;
        }
        progress
    }

    /// Polls one station once, without waiting.
    pub fn step(&mut self, station: usize) {
        let Station { site, events, .. } = self.station(station);
        site.fabric
            .poll(events, Duration::ZERO)
            .expect("poll works");
    }

    /// Drives all stations until `condition` gives something.
    pub fn drive_until<T>(
        &mut self,
        what: &str,
        mut condition: impl FnMut(&mut Self) -> Option<T>,
    ) -> T {
        let deadline = Self::deadline();
        let mut idle = false;
        loop {
            if let Some(found) = condition(self) {
                return found;
            }
            assert!(now() < deadline, "gave up waiting for {what}");
            idle = !self.turn(idle);
        }
    }

    /// Takes the first event of a station that `pick` knows, if it is there.
    pub fn take<T>(
        &mut self,
        station: usize,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> Option<(T, Event)> {
        let events = &mut self.station(station).events;
        let (at, found) = events
            .iter()
            .enumerate()
            .find_map(|(at, event)| Some((at, pick(event)?)))?;
        Some((found, events.remove(at)))
    }

    /// Waits for an event of a station.
    pub fn wait<T>(&mut self, station: usize, what: &str, pick: impl Fn(&Event) -> Option<T>) -> T {
        self.drive_until(what, |rig| Some(rig.take(station, &pick)?.0))
    }

    /// Takes all events of a station, the oldest first.
    pub fn events(&mut self, station: usize) -> Vec<Event> {
        std::mem::take(&mut self.station(station).events)
    }

    /// Returns the events of a station that no check has taken.
    pub fn pending(&mut self, station: usize) -> &[Event] {
        &self.station(station).events
    }

    /// Returns a lease of a station, filled with a pattern.
    pub fn lease(&mut self, station: usize, bytes: usize, seed: u8) -> Lease {
        let mut lease = self
            .at(station)
            .pool
            .try_lease(bytes, Purpose::Serve)
            .expect("the pool has room");
        fill(lease.bytes_mut(), seed);
        lease
    }

    /// Exposes memory for the peer to write.
    pub fn writable(&mut self, end: (usize, ConnectionId), bytes: usize, seed: u8) -> RemoteRange {
        let lease = self.lease(end.0, bytes, seed);
        self.fabric(end.0)
            .expose(end.1, Exposure::Writable(lease))
            .map_err(drop)
            .expect("there is room for an exposure")
    }

    /// Exposes memory for the peer to read.
    pub fn readable(&mut self, end: (usize, ConnectionId), bytes: usize, seed: u8) -> RemoteRange {
        let lease = Arc::new(self.lease(end.0, bytes, seed));
        self.fabric(end.0)
            .expose(end.1, Exposure::Readable(lease))
            .map_err(drop)
            .expect("there is room for an exposure")
    }

    /// Ends an exposure, and waits until it has ended.
    pub fn revoke(&mut self, station: usize, key: u64) -> Exposure {
        match self.fabric(station).revoke(key) {
            RevokeStatus::Now(exposure) => exposure,
            RevokeStatus::Later => self.revoked(station, key),
            RevokeStatus::Unknown => panic!("expected the key to be known"),
        }
    }

    /// Waits for the end of a revocation that was deferred.
    pub fn revoked(&mut self, station: usize, key: u64) -> Exposure {
        let ended = |event: &Event| match event {
            Event::Revoked { key: got, .. } if *got == key => Some(()),
            _ => None,
        };
        match self.drive_until("Revoked", |rig| rig.take(station, ended)) {
            (_, Event::Revoked { exposure, .. }) => exposure,
            _ => unreachable!("picked above"),
        }
    }

    /// Queues a message.
    pub fn say(&mut self, end: (usize, ConnectionId), id: u64, body: &[u8]) {
        let message = Message {
            kind: faro_wire::kind::FIRST_MESSAGE,
            id,
            body: body.to_vec(),
        };
        self.fabric(end.0)
            .send(end.1, message)
            .expect("there is room for a message");
    }

    /// Waits for the next message of a peer.
    pub fn hear(&mut self, end: (usize, ConnectionId)) -> Message {
        self.wait(end.0, "a message", |event| match event {
            Event::Message {
                connection,
                message,
            } if *connection == end.1 => Some(message.clone()),
            _ => None,
        })
    }

    /// Queues a write.
    pub fn write(&mut self, end: (usize, ConnectionId), write: Write) {
        self.fabric(end.0)
            .write(end.1, write)
            .map_err(drop)
            .expect("there is room for a write");
    }

    /// Waits for a write's end.
    pub fn write_end(&mut self, end: (usize, ConnectionId), token: u64) -> Outcome {
        self.wait(end.0, "WriteEnded", |event| match event {
            Event::WriteEnded {
                connection,
                token: got,
                outcome,
            } if (*connection, *got) == (end.1, token) => Some(outcome.clone()),
            _ => None,
        })
    }

    /// Sends a message from one end to the other and waits for it: everything posted before it
    /// has arrived.
    pub fn fence(&mut self, link: ConnectedPair) {
        self.say(link.from, u64::MAX, b"fence");
        let connection = link.to.1;
        self.wait(link.to.0, "the fence", |event| match event {
            Event::Message {
                connection: got,
                message,
            } if *got == connection && message.id == u64::MAX => Some(()),
            _ => None,
        });
    }

    /// Returns a counter of a station.
    pub fn counter(&mut self, station: usize, name: &str) -> u64 {
        let counters = self.fabric(station).counters();
        let found = counters.iter().find(|(got, _)| *got == name);
        found.unwrap_or_else(|| panic!("no counter {name}")).1
    }
}
