//! A fabric that fails for good in the middle of a fetch: the request goes on by the next one.

use crate::config::{RegionMode, Staging};
use crate::counters::Counters;
use crate::exchange::{Exchange, ExchangeConfig};
use crate::files::Catalog;
use crate::memory::Memory;
use crate::owner::IoPool;
use crate::progress::{Command, Inbox, Parts, Progress};
use crate::router::Router;
use faro_fabric::{
    CloseReason, ConnectionId, EndpointId, Event, Exposure, Fabric, FabricError, FabricKind,
    Message, Read, Rejected, RemoteRange, Revoked, Waker, Write,
};
use faro_pool::Pool;
use faro_region::ChunkCache;
use faro_wire::{kind, BlockId, Card, CardAddress};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connects at once, takes a FETCH, and is gone.
struct Doomed {
    connected: Option<EndpointId>,
    fetched: bool,
}

const PEER: ConnectionId = ConnectionId(1);

impl Fabric for Doomed {
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
        to: EndpointId,
        _: Instant,
    ) -> Result<ConnectionId, FabricError> {
        self.connected = Some(to);
        Ok(PEER)
    }
    fn disconnect(&mut self, _: ConnectionId, _: CloseReason) {}
    fn expose(
        &mut self,
        peer: ConnectionId,
        what: Exposure,
    ) -> Result<RemoteRange, Rejected<Exposure>> {
        Err(Rejected::NotConnected(what, peer))
    }
    fn revoke(&mut self, _: u64) -> Revoked {
        Revoked::Unknown
    }
    fn send(&mut self, _: ConnectionId, message: Message) -> Result<(), Rejected<Message>> {
        self.fetched |= message.kind == kind::FETCH;
        Ok(())
    }
    fn write(&mut self, peer: ConnectionId, write: Write) -> Result<(), Rejected<Write>> {
        Err(Rejected::NotConnected(write, peer))
    }
    fn read(&mut self, peer: ConnectionId, read: Read) -> Result<(), Rejected<Read>> {
        Err(Rejected::NotConnected(read, peer))
    }
    fn flush(&mut self) {}
    fn poll(&mut self, events: &mut Vec<Event>, _: Duration) -> Result<(), FabricError> {
        if self.fetched {
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
    let pool = Pool::new(64 << 20).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 4).unwrap();
    let memory = Memory::new(pool, cache, RegionMode::Unpinned, Staging::OnDemand);
    let counters = Arc::new(Counters::default());
    let catalog = Arc::new(Catalog::new());
    let (doomed, doomed_commands) = Inbox::new(Arc::new(|| {}));
    let (tcp, tcp_commands) = Inbox::new(Arc::new(|| {}));
    let inboxes = vec![
        (FabricKind::Verbs, Arc::clone(&doomed)),
        (FabricKind::Tcp, tcp),
    ];
    let patience = Duration::from_secs(30);
    let exchange = Exchange::new(1, String::new(), ExchangeConfig::default(), patience);
    let router = Router::new(inboxes, None, Arc::clone(&counters), Arc::new(exchange));
    let router = Arc::new(router);
    let parts = Parts {
        endpoint: 1,
        router: Arc::clone(&router),
        memory: Arc::clone(&memory),
        catalog: Arc::clone(&catalog),
        io: Arc::new(IoPool::start(1, memory, catalog).unwrap()),
        question_age: Duration::from_secs(1),
    };
    let addresses = ["verbs", "tcp"].map(|scheme| CardAddress {
        scheme: scheme.to_owned(),
        location: "there".to_owned(),
    });
    let peer = router.add_peer(&Card {
        endpoint: 2,
        name: "executor-2".to_owned(),
        addresses: addresses.to_vec(),
    });
    let block = BlockId {
        map_id: 0.into(),
        shuffle_id: 0.into(),
        start_reduce: 0.into(),
        end_reduce: 1.into(),
        reserved: 0.into(),
    };
    let fabric = Box::new(Doomed {
        connected: None,
        fetched: false,
    });
    let progress = Progress::new(fabric, Arc::clone(&doomed), doomed_commands, parts);
    let thread = std::thread::spawn(move || progress.run());

    let first = router.admit(peer, vec![block], patience).unwrap();
    let came = |what: &str| match tcp_commands.recv_timeout(patience) {
        Ok(Command::Fetch(request, route)) => (request.id, route.fabric),
        _ => panic!("{what} did not come to tcp"),
    };
    assert_eq!(came("what was under way"), (first, FabricKind::Tcp));
    let second = router.admit(peer, vec![block], patience).unwrap();
    assert_eq!(came("what is new"), (second, FabricKind::Tcp));
    assert_eq!(counters.retries.get(), 1);
    let mut failed = Vec::new();
    router.completions.take(1, Duration::ZERO, &mut failed);
    assert!(failed.is_empty(), "nobody was told of an error");
    doomed.send(Command::Close);
    thread.join().unwrap();
}
