//! Peers that send well-formed messages that are not true. Each ends in an error of the one request or
//! connection; memory comes back, and honest peers are served as before.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[path = "support/scripted.rs"]
mod scripted;
mod support;

use faro_endpoint::limits::{MAX_CONNECTIONS_OF_PEER, MAX_UNRESOLVED, MAX_UNRESOLVED_OF_PEER};
use faro_endpoint::{Config, Endpoint, FabricChoice};
use faro_fabric::tcp::{TcpConfig, TcpFabric};
use faro_fabric::{ConnectionId, Event, Exposure, Fabric, Message, OwnIdentity};
use faro_pool::{Pool, Purpose};
use faro_secure::Protection;
use faro_wire::codes::FetchErrorCode;
use faro_wire::message::{
    BlockEntry, ClearToSend, ClearToSendHead, CommandReply, CommandStatus, DataReady, DataWritten,
    FailureCode, Fetch, FetchResponse, Incoming, Join, MoreBuffers, OfferedSlice, ReadOffer,
    RemoteBuffer, ToClient, ToCommands, ToMember, ToServer, WrittenBuffer,
};
use faro_wire::{crc32c, BlockId, BlockStatus, Card, OutputId};
use scripted::{ScriptedPeer, Stage};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{
    block, config, counter, fetch, pattern, until, until_leases_are_back, Server, TIMEOUT,
};

const PAGE: u32 = 256 << 10;

fn buffer(key: u64, offset: u64, length: u32) -> RemoteBuffer {
    RemoteBuffer {
        key: key.into(),
        offset: offset.into(),
        length: length.into(),
        reserved: 0.into(),
    }
}

fn slice(length: u32) -> OfferedSlice {
    OfferedSlice {
        key: 0x5a5a.into(),
        offset: 0.into(),
        length: length.into(),
        slot: 0.into(),
        version: 2.into(),
        crc: 0.into(),
        reserved: 0.into(),
    }
}

fn offer(versions: RemoteBuffer, slices: Vec<OfferedSlice>) -> ToClient {
    ToClient::ReadOffer(ReadOffer { versions, slices })
}

/// Returns an offer of `length` bytes in one slice, under keys that do not exist.
fn plain_offer(length: u32) -> ToClient {
    offer(buffer(0xa5a5, 0, 4096), vec![slice(length)])
}

fn response(lengths: &[u64]) -> ToClient {
    let blocks = lengths.iter().map(|&l| BlockEntry::found(l)).collect();
    ToClient::FetchResponse(FetchResponse { blocks })
}

fn written(buffer: u32, bytes: &[u8], last: bool) -> ToClient {
    ToClient::DataWritten(DataWritten {
        buffers: vec![WrittenBuffer {
            buffer: buffer.into(),
            length: (bytes.len() as u32).into(),
            crc: crc32c(bytes).into(),
            unsummed: 0.into(),
        }],
        last,
    })
}

/// Returns the report of a buffer without a checksum.
fn unsummed() -> ToClient {
    let ToClient::DataWritten(mut report) = written(0, b"abc", true) else {
        unreachable!();
    };
    (report.buffers[0].crc, report.buffers[0].unsummed) = (0.into(), 1.into());
    ToClient::DataWritten(report)
}

fn say(stage: &mut Stage, peer: ConnectionId, id: u64, message: &ToClient) {
    stage.send(peer, message.kind(), id, message.encode());
}

/// Starts a client's fetch of one block from a server that answers any request with `messages`.
fn fetch_from_liar(
    messages: Vec<ToClient>,
) -> (Arc<Endpoint>, support::FetchOutcome, ScriptedPeer) {
    let server = ScriptedPeer::start(Box::new(move |stage, peer, id, fetch, _| {
        if fetch.is_some() {
            for message in &messages {
                say(stage, peer, id, message);
            }
        }
    }));
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    until_leases_are_back(&client);
    (client, fetched, server)
}

#[test]
fn a_server_that_lies_breaks_the_protocol() {
    let versions = || buffer(0xa5a5, 0, 4096);
    let lies: [(&str, Vec<ToClient>); 10] = [
        (
            "no checksum though nobody else verifies",
            vec![response(&[3]), unsummed()],
        ),
        ("response twice", vec![response(&[3]), response(&[3])]),
        ("offer twice", vec![plain_offer(3), plain_offer(3)]),
        ("offer after response", vec![response(&[3]), plain_offer(3)]),
        (
            "offer of more than the response",
            vec![plain_offer(4), response(&[3])],
        ),
        (
            "offer of less than the response",
            vec![plain_offer(2), response(&[3])],
        ),
        (
            "slice of more than a page",
            vec![plain_offer(PAGE + 1), response(&[u64::from(PAGE) + 1])],
        ),
        (
            "versions of more than a page",
            vec![
                offer(buffer(0xa5a5, 0, PAGE + 8), vec![slice(3)]),
                response(&[3]),
            ],
        ),
        (
            "versions beyond the last address",
            vec![
                offer(buffer(0xa5a5, u64::MAX - 7, 4096), vec![slice(3)]),
                response(&[3]),
            ],
        ),
        (
            "slice beyond the last address",
            vec![
                offer(
                    versions(),
                    vec![OfferedSlice {
                        offset: (u64::MAX - 1).into(),
                        ..slice(3)
                    }],
                ),
                response(&[3]),
            ],
        ),
    ];
    for (what, messages) in lies {
        let (_client, fetched, server) = fetch_from_liar(messages);
        let failure = fetched.failure.as_ref().expect(what);
        assert_eq!(
            failure.code,
            FetchErrorCode::Protocol,
            "{what}: {failure:?}"
        );
        assert!(fetched.blocks.is_empty(), "{what}");
        until("both connections are closed", || {
            server.closed.lock().unwrap().len() == 2
        });
    }
}

#[test]
fn a_block_that_fits_no_arena_is_an_error_of_the_request() {
    let (client, fetched, _server) = fetch_from_liar(vec![response(&[i64::MAX as u64])]);
    let failure = fetched.failure.unwrap();
    assert_eq!(failure.code, FetchErrorCode::PoolExhausted, "{failure:?}");
    assert_eq!(counter(&client, "retries"), 0);
}

#[test]
fn an_offer_under_unknown_keys_is_fetched_by_writes() {
    let server = ScriptedPeer::start(Box::new(|stage, peer, id, fetch, _| {
        let Some(fetch) = fetch else { return };
        if fetch.writes_only {
            return stage.answer(peer, id, &fetch, b"true");
        }
        say(stage, peer, id, &plain_offer(4));
        say(stage, peer, id, &response(&[4]));
    }));
    let client = Endpoint::start(config("client", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&server.card).unwrap();
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(fetched.bytes(), [b"true".to_vec()]);
    until_leases_are_back(&client);
}

/// A client without an endpoint, which sends what it likes.
struct Liar {
    fabric: TcpFabric,
    pool: Arc<Pool>,
    server: ConnectionId,
    inbox: std::collections::VecDeque<Message>,
    connected: bool,
    closed: bool,
}

impl Liar {
    fn connect(card: &[u8]) -> Self {
        Self::connect_as(0xfa50_0000_0000_0002, card)
    }

    /// Connects with the keys of a chosen number.
    fn connect_as(number: u128, card: &[u8]) -> Self {
        let pool = Pool::new(support::MEMORY).unwrap();
        let mut fabric = TcpFabric::new(TcpConfig {
            bind: "127.0.0.1:0".parse().unwrap(),
            advertise: "127.0.0.1".to_owned(),
            identity: OwnIdentity::public(number),
            protection: Protection::Clear,
            pool: Arc::clone(&pool),
        })
        .unwrap();
        let card = Card::decode(card).unwrap();
        let location = &card.addresses[0].location;
        let deadline = Instant::now() + TIMEOUT;
        let server = fabric
            .connect(location, &crate::support::identity(&card), deadline)
            .unwrap();
        let mut liar = Self {
            fabric,
            pool,
            server,
            inbox: std::collections::VecDeque::new(),
            connected: false,
            closed: false,
        };
        until("a connection", || {
            liar.poll();
            assert!(!liar.closed, "the connection does not open");
            liar.connected
        });
        liar
    }

    fn send(&mut self, id: u64, message: &Incoming) {
        let (kind, body) = (message.kind(), message.encode());
        let sent = self.fabric.send(self.server, Message { kind, id, body });
        assert!(sent.is_ok());
    }

    fn fetch(&mut self, id: u64, buffers: Vec<RemoteBuffer>, blocks: Vec<BlockId>) {
        let fetch = Fetch {
            deadline_ms: TIMEOUT.as_millis() as u32,
            writes_only: true,
            reader_verifies: false,
            buffers,
            blocks,
        };
        self.send(id, &Incoming::ToServer(ToServer::Fetch(fetch)));
    }

    /// Exposes a page that the server may write.
    fn page(&mut self) -> RemoteBuffer {
        let lease = self.pool.try_lease(PAGE as usize, Purpose::Read).unwrap();
        let exposure = Exposure::Writable(lease);
        let range = self.fabric.expose(self.server, exposure).ok().unwrap();
        buffer(range.key, range.offset, range.length)
    }

    fn poll(&mut self) {
        let mut events = Vec::new();
        let wait = Duration::from_millis(5);
        self.fabric.poll(&mut events, wait).unwrap();
        for event in events {
            match event {
                Event::Message { message, .. } => self.inbox.push_back(message),
                Event::Connected { .. } => self.connected = true,
                Event::Closed { .. } => self.closed = true,
                _ => {}
            }
        }
    }

    /// Returns the next message with that id, decoded.
    fn answer(&mut self, id: u64) -> ToClient {
        loop {
            if let Some(message) = self.inbox.pop_front() {
                assert_eq!(message.id, id);
                match Incoming::decode(message.kind, &message.body).unwrap() {
                    Incoming::ToClient(message) => return message,
                    other => panic!("{other:?}"),
                }
            }
            assert!(!self.closed, "the server closed the connection");
            self.poll();
        }
    }

    fn until_closed(&mut self, what: &str) {
        until(what, || {
            self.poll();
            self.closed
        });
    }
}

/// Checks that another client gets its bytes, and that no memory is held for the liar.
fn serves_others(server: &Server) {
    let client = Endpoint::start(config("honest", FabricChoice::Tcp)).unwrap();
    let peer = server.peer_of(&client);
    let fetched = fetch(&client, peer, &[block(0, 0, 0, 1)]);
    assert_eq!(fetched.bytes(), [pattern(1, 1000)]);
    until_leases_are_back(&server.endpoint);
}

fn server() -> Server {
    let server = Server::start(config("server", FabricChoice::Tcp));
    server.put(0, 0, &[pattern(1, 1000)]);
    server
}

#[test]
fn a_client_that_lies_is_cut_off() {
    type Lie = fn(&mut Liar);
    let lies: [(&str, Lie); 4] = [
        ("one id for two requests", |liar| {
            liar.fetch(7, vec![], vec![block(0, 0, 0, 1)]);
            liar.fetch(7, vec![], vec![block(0, 0, 0, 1)]);
        }),
        ("a buffer of more than a page", |liar| {
            let page = liar.page();
            let wide = buffer(page.key.get(), page.offset.get(), PAGE + 1);
            liar.fetch(7, vec![wide], vec![block(0, 0, 0, 1)]);
        }),
        ("more buffers of more than a page", |liar| {
            liar.fetch(7, vec![], vec![block(0, 0, 0, 1)]);
            let buffers = vec![buffer(1, 0, PAGE + 1)];
            let more = ToServer::MoreBuffers(MoreBuffers { buffers });
            liar.send(7, &Incoming::ToServer(more));
        }),
        ("a buffer beyond the last address", |liar| {
            let high = buffer(1, u64::MAX - 7, PAGE);
            liar.fetch(7, vec![high], vec![block(0, 0, 0, 1)]);
        }),
    ];
    for (what, lie) in lies {
        let server = server();
        let mut liar = Liar::connect(&server.endpoint.card());
        lie(&mut liar);
        liar.until_closed(what);
        serves_others(&server);
    }
}

#[test]
fn buffers_under_unknown_keys_harm_nobody_else() {
    let server = server();
    let mut liar = Liar::connect(&server.endpoint.card());
    for id in 1..20 {
        liar.fetch(
            id,
            vec![buffer(0x5a5a + id, 0, PAGE)],
            vec![block(0, 0, 0, 1)],
        );
    }
    for _ in 0..20 {
        liar.poll();
    }
    serves_others(&server);
}

#[test]
fn blocks_that_do_not_exist_have_a_status() {
    let server = server();
    let mut liar = Liar::connect(&server.endpoint.card());
    let page = liar.page();
    let blocks = vec![
        block(0, 0, 1, 0),
        block(0, 0, 0, 2),
        block(0, 0, u32::MAX, u32::MAX),
        block(0, 1, 0, 1),
        block(u32::MAX, i64::MIN, 0, u32::MAX),
        block(0, 0, 0, 1),
    ];
    liar.fetch(7, vec![page], blocks);
    let ToClient::FetchResponse(response) = liar.answer(7) else {
        panic!("no response");
    };
    let got: Vec<_> = response
        .blocks
        .iter()
        .map(|block| BlockStatus::try_from(block.status.get()).unwrap())
        .collect();
    use BlockStatus::{BadRange, Ok, UnknownOutput};
    assert_eq!(
        got,
        [
            BadRange,
            BadRange,
            BadRange,
            UnknownOutput,
            UnknownOutput,
            Ok
        ]
    );
    let ToClient::DataWritten(data) = liar.answer(7) else {
        panic!("no data");
    };
    assert!(data.last);
    assert_eq!(data.buffers[0].crc.get(), crc32c(&pattern(1, 1000)));
    serves_others(&server);
}

/// Messages for requests and members that do not exist change nothing: the next fetch on the same
/// connection is served.
#[test]
fn messages_about_nothing_are_dropped() {
    let server = server();
    let mut liar = Liar::connect(&server.endpoint.card());
    let page = liar.page();
    let to_server = [
        ToServer::Cancel,
        ToServer::MoreBuffers(MoreBuffers {
            buffers: vec![buffer(1, 0, PAGE)],
        }),
    ];
    let to_client = [
        response(&[3]),
        plain_offer(3),
        written(0, b"abc", true),
        ToClient::Failed(faro_wire::message::Failed {
            code: faro_wire::message::FailureCode::Internal,
            retry_ms: 0,
            detail: "not asked for".to_owned(),
        }),
    ];
    let head = ClearToSendHead {
        round: 0.into(),
        epoch: 0.into(),
        elements: 1.into(),
        step: 0.into(),
        from_rank: 0.into(),
        element: 1.into(),
        operation: 1.into(),
        mode: 3.into(),
        group: 0.into(),
        first_chunk: 0.into(),
        buffers: 1.into(),
    };
    let to_member = [
        ToMember::ClearToSend(ClearToSend {
            head,
            buffers: vec![buffer(1, 0, PAGE)],
        }),
        ToMember::DataReady(DataReady {
            round: 0,
            step: 0,
            from_rank: 0,
            buffers: vec![WrittenBuffer {
                buffer: 0.into(),
                length: 4.into(),
                crc: 0.into(),
                unsummed: 0.into(),
            }],
        }),
    ];
    for message in to_server {
        liar.send(99, &Incoming::ToServer(message));
    }
    for message in to_client {
        liar.send(99, &Incoming::ToClient(message));
    }
    for message in to_member {
        liar.send(99, &Incoming::ToMember(message));
    }
    let answer = ToCommands::Answer(CommandReply::Status(CommandStatus::Accepted));
    liar.send(99, &Incoming::ToCommands(answer));
    liar.fetch(7, vec![page], vec![block(0, 0, 0, 1)]);
    assert!(matches!(liar.answer(7), ToClient::FetchResponse(_)));
    assert!(matches!(liar.answer(7), ToClient::DataWritten(_)));
    // Seven messages to nobody; CANCEL and MORE_BUFFERS may cross the end of their request.
    assert_eq!(counter(&server.endpoint, "lateMessages"), 7);
    serves_others(&server);
}

/// A member that does not exist answers a `JOIN` with `ABORT`.
#[test]
fn a_join_to_no_member_is_answered() {
    let server = server();
    let mut liar = Liar::connect(&server.endpoint.card());
    let join = Join {
        from_member: 5.into(),
        from_rank: 0.into(),
        to_rank: 1.into(),
        ranks: 2.into(),
        reserved: 0.into(),
    };
    liar.send(99, &Incoming::ToMember(ToMember::Join(join)));
    until("an answer", || {
        liar.poll();
        !liar.inbox.is_empty()
    });
    let answer = liar.inbox.pop_front().unwrap();
    assert_eq!(answer.id, 5, "to the sender of the JOIN");
    let decoded = Incoming::decode(answer.kind, &answer.body).unwrap();
    assert!(matches!(decoded, Incoming::ToMember(ToMember::Abort(_))));
    serves_others(&server);
}

/// A member asks for 100,000 outputs that do not exist, and Java answers slowly. Another member
/// must be served meanwhile, and the questions that the liar may not ask now must be asked again
/// later.
#[test]
fn invented_outputs_take_no_questions_of_other_peers() {
    const REQUESTS: u64 = 100;
    const BLOCKS: i64 = 1_000;
    let server = Endpoint::start(Config {
        memory_limit: 512 << 20,
        ..config("server", FabricChoice::Tcp)
    })
    .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let id = OutputId {
        shuffle_id: 0,
        map_id: 0,
    };
    let files = support::write_output(dir.path(), id, &[pattern(1, 1000)]);
    let mut liar = Liar::connect(&server.card());
    for request in 1..=REQUESTS {
        let first = request as i64 * BLOCKS;
        let blocks = (first..first + BLOCKS).map(|map| block(9, map, 0, 1));
        liar.fetch(request, vec![], blocks.collect());
        liar.poll();
    }
    // Java answers no question about these for now. Several threads ask, so that more than one request may have asked for a
    // part of its outputs only.
    let mut open: Vec<OutputId> = Vec::new();
    let at_least = REQUESTS as usize / 2;
    until("the liar's share is used up", || {
        liar.poll();
        open.extend(server.unresolved(MAX_UNRESOLVED_OF_PEER, Duration::ZERO));
        open.len() == MAX_UNRESOLVED_OF_PEER && liar.inbox.len() >= at_least
    });
    let client = Endpoint::start(config("honest", FabricChoice::Tcp)).unwrap();
    let peer = client.add_peer(&server.card()).unwrap();
    let request = client.fetch(peer, &[block(0, 0, 0, 1)], TIMEOUT).unwrap();
    until("the honest question", || {
        server.unresolved(MAX_UNRESOLVED_OF_PEER, Duration::ZERO) == [id]
    });
    server.resolve(id, Some(files));
    let fetched = support::collect(&client, &[request]).remove(&request);
    assert_eq!(fetched.unwrap().bytes(), [pattern(1, 1000)]);
    // Java answers: a request that asked for a part of its outputs asks for the rest.
    let (mut refused, mut answered) = (0, 0);
    until("the liar's answers", || {
        for id in open.drain(..) {
            server.resolve(id, None);
        }
        open.extend(server.unresolved(MAX_UNRESOLVED_OF_PEER, Duration::ZERO));
        liar.poll();
        for message in liar.inbox.drain(..) {
            match Incoming::decode(message.kind, &message.body).unwrap() {
                Incoming::ToClient(ToClient::Failed(failed)) => {
                    assert_eq!(failed.code, FailureCode::Busy);
                    assert!(failed.detail.contains("map outputs"), "{}", failed.detail);
                    refused += 1;
                }
                Incoming::ToClient(ToClient::FetchResponse(response)) => {
                    let unknown = BlockStatus::UnknownOutput as u32;
                    assert_eq!(response.blocks.len(), BLOCKS as usize);
                    let mut all = response.blocks.iter();
                    assert!(all.all(|block| block.status.get() == unknown));
                    answered += 1;
                }
                Incoming::ToClient(ToClient::DataWritten(data)) => assert!(data.buffers.is_empty()),
                other => panic!("{other:?}"),
            }
        }
        refused + answered == REQUESTS
    });
    assert_eq!(counter(&server, "busyRefusals"), refused);
    assert!(answered as usize >= MAX_UNRESOLVED_OF_PEER / BLOCKS as usize);
}

/// Fetches the one map output of `server` by a member whose card the server has, while Java answers no question of others.
fn serves_a_known_member(server: &Arc<Endpoint>) {
    let dir = tempfile::tempdir().unwrap();
    let id = OutputId {
        shuffle_id: 0,
        map_id: 0,
    };
    let files = support::write_output(dir.path(), id, &[pattern(1, 1000)]);
    let client = Endpoint::start(config("honest", FabricChoice::Tcp)).unwrap();
    server.add_peer(&client.card()).unwrap();
    let peer = client.add_peer(&server.card()).unwrap();
    let request = client.fetch(peer, &[block(0, 0, 0, 1)], TIMEOUT).unwrap();
    until("the honest question", || {
        server.unresolved(1, Duration::ZERO) == [id]
    });
    server.resolve(id, Some(files));
    let fetched = support::collect(&client, &[request]).remove(&request);
    assert_eq!(fetched.unwrap().bytes(), [pattern(1, 1000)]);
}

/// A peer with the server's card can make ids. Nine of them ask for as many invented outputs as
/// nine shares allow.
#[test]
fn nine_ids_take_no_questions_of_a_known_member() {
    const IDS: u128 = 9;
    const REQUESTS: u64 = 12;
    const BLOCKS: i64 = 1_000;
    let server = Endpoint::start(Config {
        memory_limit: 512 << 20,
        ..config("server", FabricChoice::Tcp)
    })
    .unwrap();
    let card = server.card();
    let mut liars: Vec<_> = (0..IDS).map(|id| Liar::connect_as(id, &card)).collect();
    for (number, liar) in liars.iter_mut().enumerate() {
        for request in 1..=REQUESTS {
            let first = (number as i64 * 100 + request as i64) * BLOCKS;
            let blocks = (first..first + BLOCKS).map(|map| block(9, map, 0, 1));
            liar.fetch(request, vec![], blocks.collect());
        }
    }
    let mut open = 0;
    until("the unknown peers' share is used up", || {
        for liar in &mut liars {
            liar.poll();
        }
        open += server.unresolved(MAX_UNRESOLVED, Duration::ZERO).len();
        let refused: usize = liars.iter().map(|liar| liar.inbox.len()).sum();
        open == MAX_UNRESOLVED / 2 && refused >= liars.len()
    });
    serves_a_known_member(&server);
}

/// A peer has its share of the memory for requests once, not once for each of its connections.
#[test]
fn four_connections_have_one_share_of_the_memory_for_requests() {
    const REQUESTS: u64 = 60;
    let server = Endpoint::start(config("server", FabricChoice::Tcp)).unwrap();
    let card = server.card();
    let mut liar: Vec<_> = (0..4).map(|_| Liar::connect(&card)).collect();
    let mut max = 0;
    for connection in &mut liar {
        for request in 1..=REQUESTS {
            // One question, which Java does not answer.
            let blocks = (0..1_000).map(|part| block(9, 1, part, part + 1));
            connection.fetch(request, vec![], blocks.collect());
        }
    }
    until("more than the share is refused", || {
        for connection in &mut liar {
            connection.poll();
        }
        max = max.max(counter(&server, "memory.requestBytes"));
        liar.iter()
            .map(|connection| connection.inbox.len())
            .sum::<usize>()
            >= 4 * 60 - 44
    });
    let share = support::MEMORY / 4 / 4;
    assert!(max <= share, "{max} bytes of {share}");
    while !server.unresolved(8, Duration::ZERO).is_empty() {}
    serves_a_known_member(&server);
}

#[test]
fn a_peer_that_connects_again_and_again_loses_its_oldest_connections() {
    let server = server();
    let mut liar = Liar::connect(&server.endpoint.card());
    let card = Card::decode(&server.endpoint.card()).unwrap();
    let (mut open, mut closed) = (1, Vec::new());
    let deadline = Instant::now() + TIMEOUT;
    for _ in 0..MAX_CONNECTIONS_OF_PEER + 9 {
        let (location, to) = (&card.addresses[0].location, support::identity(&card));
        liar.fabric.connect(location, &to, deadline).unwrap();
        open += 1;
    }
    until("the oldest are closed", || {
        let mut events = Vec::new();
        liar.fabric.poll(&mut events, Duration::ZERO).unwrap();
        for event in events {
            if let Event::Closed { connection, reason } = event {
                let text = reason.to_string();
                assert!(
                    text.contains("connections that one peer has made"),
                    "{text}"
                );
                closed.push(connection);
            }
        }
        closed.len() == 10
            && counter(&server.endpoint, "connections.tcp") as usize == MAX_CONNECTIONS_OF_PEER
    });
    assert_eq!(open, closed.len() + MAX_CONNECTIONS_OF_PEER);
    serves_others(&server);
}
