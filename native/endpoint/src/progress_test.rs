//! Tests a fabric that fails for good in the middle of a fetch, or whose thread panics: the request
//! must continue on the next fabric, or fail at once.

use crate::collective::{CollectiveService, Dispatch};
use crate::command::{CommandQueue, CommandService};
use crate::counters::EndpointCounters;
use crate::fetch::{FetchCommand, FetchService, PlaceInOrder, RequestQueue};
use crate::files::Catalog;
use crate::memory::{Memory, RegionMode};
use crate::net::{CardRoutes, CardSecrets, Doorbell, Inbox, Net, PeerTable};
use crate::progress::{Progress, ProgressShared};
use crate::schedule::{Exchange, ExchangeConfig, ServerQueue};
use crate::serve::{IoPool, ServeService};
use crate::services::Services;
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, Fabric, FabricError, FabricKind,
    Message, Read, RejectedPost, RemoteRange, RevokeStatus, Waker, Write, WriteSources,
};
use faro_pool::Pool;
use faro_region::ChunkCache;
use faro_wire::codes::FetchErrorCode;
use faro_wire::{kind, BlockId, Card, CardAddress};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The fault after the first FETCH.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doom {
    /// The fabric fails for good.
    Fails,
    /// The thread panics.
    Panics,
    /// It panics, and again when the connection is given up.
    PanicsTwice,
}

/// Connects at once, takes a FETCH, and is gone.
struct FailingFabric {
    doom: Doom,
    connected: Option<EndpointId>,
    fetched: bool,
}

const PEER: ConnectionId = ConnectionId(1);

impl Fabric for FailingFabric {
    fn kind(&self) -> FabricKind {
        FabricKind::Verbs
    }
    fn location(&self) -> String {
        "here".to_owned()
    }
    fn waker(&self) -> Waker {
        Arc::new(|| {})
    }
    fn connect(
        &mut self,
        _: &str,
        to: &faro_fabric::Identity,
        _: Instant,
    ) -> Result<ConnectionId, FabricError> {
        self.connected = Some(to.endpoint);
        Ok(PEER)
    }
    fn disconnect(&mut self, _: ConnectionId, _: CloseReason) {}
    fn expose(
        &mut self,
        peer: ConnectionId,
        what: Exposure,
    ) -> Result<RemoteRange, RejectedPost<Exposure>> {
        Err(RejectedPost::NotConnected(what, peer))
    }
    fn revoke(&mut self, _: u64) -> RevokeStatus {
        RevokeStatus::Unknown
    }
    fn send(&mut self, _: ConnectionId, message: Message) -> Result<(), RejectedPost<Message>> {
        self.fetched |= message.kind == kind::FETCH;
        let again = self.doom == Doom::PanicsTwice && message.kind == kind::CANCEL;
        assert!(!again, "the same defect again");
        Ok(())
    }
    fn write_sources(&mut self, _: ConnectionId) -> WriteSources {
        WriteSources::FRAMES
    }
    fn write(&mut self, peer: ConnectionId, write: Write) -> Result<(), RejectedPost<Write>> {
        Err(RejectedPost::NotConnected(write, peer))
    }
    fn read(&mut self, peer: ConnectionId, read: Read) -> Result<(), RejectedPost<Read>> {
        Err(RejectedPost::NotConnected(read, peer))
    }
    fn flush(&mut self) {}
    fn poll(&mut self, events: &mut Vec<Event>, _: Duration) -> Result<(), FabricError> {
        if self.fetched {
            assert!(self.doom == Doom::Fails, "a defect of the fabric");
            let reason = "unplugged".to_owned();
            let fabric = "verbs";
            return Err(FabricError::Unavailable {
                fabric,
                reason,
                absent: true,
            });
        }
        let connected = self.connected.take();
        events.extend(connected.map(|endpoint| Event::Connected {
            connection: PEER,
            endpoint,
        }));
        Ok(())
    }
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[test]
fn a_fabric_that_fails_for_good_hands_its_requests_on() {
    a_request_goes_on(Doom::Fails);
}

#[test]
fn a_thread_that_panics_hands_its_requests_on() {
    a_request_goes_on(Doom::Panics);
}

#[test]
fn a_request_whose_thread_cannot_even_hand_it_on_fails_at_once() {
    a_request_goes_on(Doom::PanicsTwice);
}

/// Runs a progress thread over `FailingFabric`, with the queue of a second fabric that works.
fn a_request_goes_on(doom: Doom) {
    let pool = Pool::new(64 << 20).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 4).unwrap();
    let modes = (RegionMode::Unpinned, false);
    let memory = Memory::new(pool, cache, modes, 16 << 20);
    let (counters, catalog) = (
        Arc::new(EndpointCounters::default()),
        Arc::new(Catalog::new(1 << 30)),
    );
    let doomed = Doorbell::new(Arc::new(|| {}));
    let (doomed_inbox, doomed_commands) = Inbox::new(&doomed);
    let (tcp_inbox, tcp_commands) = Inbox::new(&Doorbell::new(Arc::new(|| {})));
    let timeout = Duration::from_secs(30);
    let config = ExchangeConfig::default();
    let exchange = Arc::new(Exchange::new(1, String::new(), config, timeout));
    let peers = Arc::new(PeerTable::new(
        CardRoutes::new(
            vec![FabricKind::Verbs, FabricKind::Tcp],
            None,
            CardSecrets::default(),
        ),
        Arc::clone(&exchange),
        Arc::clone(&counters),
    ));
    let queue = Arc::new(RequestQueue::new(
        Arc::clone(&peers),
        vec![
            (FabricKind::Verbs, doomed_inbox),
            (FabricKind::Tcp, tcp_inbox),
        ],
        Arc::clone(&exchange),
        Arc::clone(&counters),
    ));
    let woken = Arc::clone(&doomed);
    let waker = Arc::new(move || woken.ring()) as Waker;
    let place = PlaceInOrder::of_each([waker].into_iter()).remove(0);
    let io = IoPool::start(1, Arc::clone(&memory), Arc::clone(&catalog)).unwrap();
    let dispatch = Arc::new(Dispatch::new(Arc::clone(&peers), Vec::new()));
    let commands = Arc::new(CommandQueue::new(Arc::clone(&peers), Vec::new()));
    let services = Services {
        fetch: FetchService::new(
            Arc::clone(&queue),
            doomed_commands,
            Arc::clone(&memory),
            place,
            Arc::clone(&counters),
        ),
        serve: ServeService::new(
            Arc::new(io),
            Inbox::new(&doomed),
            Arc::clone(&counters),
            Arc::clone(&memory),
            ServerQueue::new(exchange),
            timeout,
        ),
        collective: CollectiveService::new(dispatch, Inbox::new(&doomed).1, Arc::clone(&counters)),
        command: CommandService::new(commands, Inbox::new(&doomed), None, Arc::clone(&counters)),
    };
    let addresses = ["verbs", "tcp"].map(|scheme| CardAddress {
        scheme: scheme.to_owned(),
        location: "there".to_owned(),
    });
    let card = Card {
        endpoint: 2,
        name: "executor-2".to_owned(),
        addresses: addresses.to_vec(),
        secret: faro_secure::Secret::new([0; 32]),
    };
    let peer = peers.add(&card, &[]).unwrap();
    let block = BlockId {
        map_id: 0.into(),
        shuffle_id: 0.into(),
        start_reduce: 0.into(),
        end_reduce: 1.into(),
        piece: 0.into(),
    };
    let fabric = Box::new(FailingFabric {
        doom,
        connected: None,
        fetched: false,
    });
    let net = Net::new(
        1,
        fabric,
        Arc::clone(&peers),
        Arc::clone(&counters),
        Duration::ZERO,
    );
    let shared = ProgressShared {
        queue: Arc::clone(&queue),
        peers,
        memory,
        catalog,
        question_timeout: Duration::from_secs(1),
    };
    let progress = Progress::new(net, Arc::clone(&doomed), services, shared);
    let thread = std::thread::spawn(move || progress.run());

    let first = queue.admit(peer, vec![block], timeout, false).unwrap();
    // Kept: a request that is dropped is lost.
    let mut kept = Vec::new();
    let mut came = |what: &str| match tcp_commands.recv_timeout(timeout) {
        Ok(FetchCommand::Start(request, route)) => {
            let came = (request.id, route.fabric);
            kept.push(request);
            came
        }
        _ => panic!("{what} did not come to tcp"),
    };
    let mut failed = Vec::new();
    if doom == Doom::PanicsTwice {
        queue.completions().take(0, 1, timeout, &mut failed);
        let failed = failed.pop().expect("the caller gets an error");
        let code = failed.outcome.err().map(|failure| failure.code);
        assert_eq!((failed.request, failed.last), (first, true));
        assert_eq!(code, Some(FetchErrorCode::ConnectionLost));
    } else {
        assert_eq!(came("what was under way"), (first, FabricKind::Tcp));
    }
    let second = queue.admit(peer, vec![block], timeout, false).unwrap();
    assert_eq!(came("what is new"), (second, FabricKind::Tcp));
    queue.completions().take(0, 1, Duration::ZERO, &mut failed);
    assert!(failed.is_empty(), "no other caller gets an error");
    doomed.close();
    thread.join().unwrap();
    let retries = u64::from(doom != Doom::PanicsTwice);
    assert_eq!(counters.retries.get(), retries);
}
