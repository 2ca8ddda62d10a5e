//! A peer that follows a script instead of the protocol, on a real fabric.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use crate::by_hand::fabric_by_hand;
use faro_endpoint::FabricChoice;
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Fabric, Message, OwnIdentity, RemoteRange, Write,
    WriteSource,
};
use faro_pool::{Pool, Purpose, PAGE_BYTES};
use faro_secure::Protection;
use faro_simulation::VirtualNetwork;
use faro_wire::message::{
    BlockEntry, DataWritten, Failed, FailureCode, Fetch, FetchResponse, RemoteBuffer, WrittenBuffer,
};
use faro_wire::{crc32c, kind, Card, CardAddress};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub struct Stage {
    pub fabric: Box<dyn Fabric>,
    pub pool: Arc<Pool>,
}

#[allow(dead_code)] // Each test binary uses its own part.
impl Stage {
    /// Makes a connection of its own to the endpoint of that card.
    pub fn connect(&mut self, card: &[u8]) -> ConnectionId {
        let card = Card::decode(card).unwrap();
        let deadline = Instant::now() + crate::support::TIMEOUT;
        let location = &card.addresses[0].location;
        let connected = self
            .fabric
            .connect(location, &crate::support::identity(&card), deadline);
        connected.unwrap()
    }

    /// Answers a fetch of one block with `bytes`.
    pub fn answer(&mut self, peer: ConnectionId, id: u64, fetch: &Fetch, bytes: &[u8]) {
        self.write(peer, &fetch.buffers[0], bytes);
        self.respond(peer, id, &[bytes.len() as u64]);
        self.written(peer, id, &[(0, bytes, 0)], true);
    }

    /// Answers a fetch of one block with `bytes` and with a checksum that is not theirs.
    pub fn answer_corrupt(&mut self, peer: ConnectionId, id: u64, fetch: &Fetch, bytes: &[u8]) {
        self.write(peer, &fetch.buffers[0], bytes);
        self.respond(peer, id, &[bytes.len() as u64]);
        self.written(peer, id, &[(0, bytes, 1)], true);
    }

    /// Refuses a request because the server has no room. The client may ask again after `retry_ms`
    /// milliseconds; 0: it is not to ask again.
    pub fn refuse(&mut self, peer: ConnectionId, id: u64, retry_ms: u32, detail: &str) {
        let failed = Failed {
            code: FailureCode::Busy,
            retry_ms,
            detail: detail.to_owned(),
        };
        self.send(peer, kind::FAILED, id, failed.encode());
    }

    pub fn send(&mut self, peer: ConnectionId, kind: u8, id: u64, body: Vec<u8>) {
        assert!(self.fabric.send(peer, Message { kind, id, body }).is_ok());
    }

    /// Writes `bytes` into `buffer`.
    pub fn write(&mut self, peer: ConnectionId, buffer: &RemoteBuffer, bytes: &[u8]) {
        let mut lease = self.pool.try_lease(bytes.len(), Purpose::Serve).unwrap();
        lease.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let target = RemoteRange {
            key: buffer.key.get(),
            offset: buffer.offset.get(),
            length: buffer.length.get(),
        };
        let (source, length) = (Arc::new(lease), bytes.len());
        let write = Write {
            token: 0,
            source: WriteSource::part(source, 0, length),
            target,
            immediate: None,
            last: false,
        };
        assert!(self.fabric.write(peer, write).is_ok());
    }

    pub fn respond(&mut self, peer: ConnectionId, id: u64, lengths: &[u64]) {
        let blocks = lengths
            .iter()
            .map(|length| BlockEntry::found(*length))
            .collect();
        self.send(
            peer,
            kind::FETCH_RESPONSE,
            id,
            FetchResponse { blocks }.encode(),
        );
    }

    pub fn written(
        &mut self,
        peer: ConnectionId,
        id: u64,
        chunks: &[(u32, &[u8], u32)],
        last: bool,
    ) {
        let chunks = chunks
            .iter()
            .map(|(buffer, bytes, lie)| WrittenBuffer {
                buffer: (*buffer).into(),
                length: (bytes.len() as u32).into(),
                crc: (crc32c(bytes) ^ lie).into(),
                unsummed: 0.into(),
            })
            .collect();
        self.send(
            peer,
            kind::DATA_WRITTEN,
            id,
            DataWritten {
                buffers: chunks,
                last,
            }
            .encode(),
        );
    }

    /// Exposes a page that the peer may read, with chosen bytes. It stays exposed until the end.
    pub fn page(&mut self, peer: ConnectionId, fill: impl FnOnce(&mut [u8])) -> RemoteRange {
        let mut lease = self.pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap();
        fill(lease.bytes_mut());
        let exposure = Exposure::Readable(Arc::new(lease));
        let exposed = self.fabric.expose(peer, exposure);
        exposed.unwrap_or_else(|_| panic!("a page cannot be exposed"))
    }

    pub fn flush(&mut self) {
        self.fabric.flush();
    }

    pub fn hang_up(&mut self, peer: ConnectionId) {
        self.fabric.disconnect(peer, CloseReason::Local);
    }
}

/// Handles one event; the `Fetch` is decoded when it is one.
pub type Script = Box<dyn FnMut(&mut Stage, ConnectionId, u64, Option<Fetch>, &Message) + Send>;

#[allow(dead_code)] // Each test binary uses its own part.
pub struct ScriptedPeer {
    pub card: Vec<u8>,
    /// Its own connections are open.
    pub connected: Arc<AtomicBool>,
    pub closed: Arc<Mutex<Vec<CloseReason>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[allow(dead_code)] // Each test binary uses its own part.
impl ScriptedPeer {
    pub fn start(script: Script) -> Self {
        Self::start_as(0xfa50_0000_0000_0001, script)
    }

    /// Starts a peer with the keys of a chosen number.
    pub fn start_as(number: u128, script: Script) -> Self {
        let own = OwnIdentity::public(number);
        Self::start_on(FabricChoice::Tcp, own, Protection::Clear, None, script)
    }

    /// Starts a peer on a chosen fabric, and connects to the endpoint on the card `to`.
    pub fn start_on(
        choice: FabricChoice,
        own: OwnIdentity,
        protection: Protection,
        to: Option<Vec<u8>>,
        script: Script,
    ) -> Self {
        let pool = Pool::new(crate::support::MEMORY).unwrap();
        let endpoint = own.endpoint;
        let (scheme, mut fabric) = fabric_by_hand(choice, own, protection, Arc::clone(&pool));
        let card = card(endpoint, &fabric.location());
        if let Some(to) = to {
            let to = Card::decode(&to).unwrap();
            let mut addresses = to.addresses.iter();
            let address = addresses.find(|address| address.scheme == scheme).unwrap();
            let deadline = Instant::now() + crate::support::TIMEOUT;
            let peer = crate::support::identity(&to);
            fabric.connect(&address.location, &peer, deadline).unwrap();
        }
        let (stop, connected) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let closed: Arc<Mutex<Vec<CloseReason>>> = Arc::default();
        let mut play = Play {
            stage: Stage { fabric, pool },
            script,
            events: Vec::new(),
            connected: Arc::clone(&connected),
            closed: Arc::clone(&closed),
        };
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Acquire) {
                    play.turn();
                }
            }
        });
        Self {
            card,
            connected,
            closed,
            stop,
            thread: Some(thread),
        }
    }

    /// Starts a peer in a network with virtual time.
    pub fn start_in(network: &VirtualNetwork, script: Script) -> Self {
        Self::start_in_as(network, 0xfa50_0000_0000_0001, script)
    }

    /// Starts a peer with the keys of a chosen number in a network with virtual time.
    pub fn start_in_as(network: &VirtualNetwork, number: u128, script: Script) -> Self {
        let own = OwnIdentity::public(number);
        let pool = Pool::new(crate::support::MEMORY).unwrap();
        let connected = Arc::new(AtomicBool::new(false));
        let closed: Arc<Mutex<Vec<CloseReason>>> = Arc::default();
        let mut address = String::new();
        network.peer(&own, |fabric| {
            address = fabric.location();
            let mut play = Play {
                stage: Stage { fabric, pool },
                script,
                events: Vec::new(),
                connected: Arc::clone(&connected),
                closed: Arc::clone(&closed),
            };
            Box::new(move || play.turn())
        });
        Self {
            card: card(own.endpoint, &address),
            connected,
            closed,
            stop: Arc::default(),
            thread: None,
        }
    }
}

/// A script that is played.
struct Play {
    stage: Stage,
    script: Script,
    events: Vec<Event>,
    connected: Arc<AtomicBool>,
    closed: Arc<Mutex<Vec<CloseReason>>>,
}

#[allow(dead_code)] // Each test binary uses its own part.
impl Play {
    /// Waits for events for a while, and handles them.
    fn turn(&mut self) {
        let (events, wait) = (&mut self.events, Duration::from_millis(5));
        self.stage.fabric.poll(events, wait).unwrap();
        for event in self.events.drain(..) {
            match event {
                Event::Message {
                    connection: peer,
                    message,
                } => {
                    let fetch = (message.kind == kind::FETCH)
                        .then(|| Fetch::decode(&message.body).unwrap());
                    (self.script)(&mut self.stage, peer, message.id, fetch, &message);
                }
                Event::Connected { .. } => self.connected.store(true, Ordering::Release),
                Event::Closed { reason, .. } => self.closed.lock().unwrap().push(reason),
                _ => {}
            }
        }
    }
}

impl Drop for ScriptedPeer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub fn card(endpoint: u128, location: &str) -> Vec<u8> {
    let address = CardAddress {
        scheme: "tcp".to_owned(),
        location: location.to_owned(),
    };
    Card {
        endpoint,
        name: "scripted".to_owned(),
        addresses: vec![address],
        secret: faro_secure::Secret::new([0; 32]),
    }
    .encode()
}
