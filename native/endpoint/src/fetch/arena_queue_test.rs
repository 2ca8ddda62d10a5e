use super::*;
use crate::counters::EndpointCounters;
use crate::fetch::completion::Delivery;
use crate::fetch::completion_sink::CompletionSink;
use crate::memory::{RegionMode, Staging};
use faro_pool::{Pool, SLAB_BYTES};
use faro_region::ChunkCache;
use faro_sync::simulated::SimulationGuard;
use faro_wire::message::{BlockEntry, FetchResponse, WrittenBuffer};
use faro_wire::{crc32c, BlockId};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

const MS: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(30);
const REQUESTS: u64 = 24;
/// Buffers that a connection has room for.
const ROOM: usize = 20;
/// The last server stops for good in some runs; the others only pause.
const SERVERS: u64 = 4;

#[test]
fn each_connection_has_its_own_the_oldest_first() {
    let (a, b) = (ConnectionId(1), ConnectionId(2));
    let mut blocked = SendBackpressure::default();
    for (connection, attempt) in [(a, (7, 1)), (b, (3, 2)), (a, (5, 3)), (a, (9, 4))] {
        blocked.insert(connection, attempt);
    }
    blocked.remove(a, (9, 4));
    assert!(blocked.has_older(a, 7) && !blocked.has_older(a, 5));
    assert!(blocked.has(a, 5) && !blocked.has(b, 5));
    assert_eq!(blocked.pop(a), Some((5, 3)));
    assert_eq!(blocked.pop(a), Some((7, 1)));
    assert_eq!(blocked.pop(a), None);
    assert!(blocked.0.keys().eq([&b]));
}

/// What a server knows of an attempt.
struct ModelAttempt {
    lengths: Vec<u64>,
    has_answered: bool,
    /// The buffers that it may write into, and the number of the first one.
    buffers: VecDeque<(u64, u32)>,
    next: u32,
    missing: u64,
}

/// The queue, with a model of the service that acts for it, and of the servers.
struct QueueModel {
    clock: SimulationGuard,
    since: Duration,
    dice: u64,
    memory: Arc<Memory>,
    queue: ArenaQueue,
    attempts: Attempts,
    sink: Arc<CompletionSink>,
    served: BTreeMap<u64, ModelAttempt>,
    /// The memory of the offered buffers, by key and connection.
    exposed: BTreeMap<u64, (ConnectionId, Lease)>,
    next_key: u64,
    /// Blocks that the caller has not read yet.
    unread: VecDeque<Delivery>,
    has_returned: Arc<AtomicBool>,
    /// A progress thread of another fabric, and until when its request waits.
    other: PlaceInOrder,
    other_until: Duration,
    /// Until when each server sends nothing.
    pauses: [Duration; SERVERS as usize],
    lengths: BTreeMap<u64, Vec<u64>>,
    succeeded: BTreeSet<u64>,
    failed: BTreeMap<u64, WaitVerdict>,
}

impl QueueModel {
    fn new(seed: u64) -> Self {
        let clock = SimulationGuard::begin(seed, 128);
        let pool = Pool::new(2 * SLAB_BYTES as u64).unwrap();
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = Arc::clone(&has_returned);
        pool.on_release(Box::new(move || returned.store(true, Ordering::Relaxed)));
        let cache = ChunkCache::new(Arc::clone(&pool), 4).unwrap();
        let modes = (RegionMode::Unpinned, Staging::OnDemand);
        let memory = Memory::new(pool, cache, modes, 1 << 20);
        let wakers = (0..2).map(|_| Arc::new(|| {}) as faro_fabric::Waker);
        let mut places = PlaceInOrder::of_each(wakers);
        let other = places.remove(1);
        Self {
            clock,
            since: Duration::ZERO,
            dice: seed | 1,
            queue: ArenaQueue::new(Arc::clone(&memory), places.remove(0)),
            memory,
            attempts: Attempts::default(),
            sink: CompletionSink::new(Arc::new(EndpointCounters::default())),
            served: BTreeMap::new(),
            exposed: BTreeMap::new(),
            next_key: 0,
            unread: VecDeque::new(),
            has_returned,
            other,
            other_until: Duration::ZERO,
            pauses: [Duration::ZERO; SERVERS as usize],
            lengths: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Returns a number below `below`.
    fn roll(&mut self, below: u64) -> u64 {
        // xorshift64*
        self.dice ^= self.dice >> 12;
        self.dice ^= self.dice << 25;
        self.dice ^= self.dice >> 27;
        (self.dice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn start_new(&mut self, id: u64) {
        let blocks = 1 + self.roll(4);
        let sizes = [3_000, 60_000, 700_000, 3 << 20];
        let lengths = (0..blocks).map(|_| {
            let most = sizes[self.roll(4) as usize];
            1 + self.roll(most)
        });
        let lengths: Vec<u64> = lengths.collect();
        let block = BlockId {
            map_id: 0.into(),
            shuffle_id: 0.into(),
            start_reduce: 0.into(),
            end_reduce: 1.into(),
            piece: 0.into(),
        };
        let blocks = vec![block; lengths.len()];
        let request = FetchRequest::new(
            id,
            (id % SERVERS).into(),
            blocks,
            TIMEOUT,
            Arc::clone(&self.sink),
        );
        self.lengths.insert(id, lengths);
        self.start(request, None);
    }

    fn start(&mut self, request: FetchRequest, deadline: Option<Instant>) {
        let connection = ConnectionId(request.endpoint as u64);
        let lengths = self.lengths[&request.id][request.handed_out..].to_vec();
        self.queue.on_attempt(&request);
        let now = clock::now();
        let mut attempt = Attempt::new(request, connection, deadline.unwrap_or(now + TIMEOUT));
        let mut buffers = VecDeque::new();
        if deadline.is_none() {
            if let Some(lease) = self.queue.first_lease(&attempt) {
                let capacity = lease.capacity() as u32;
                match self.offer(&mut attempt, lease, capacity) {
                    Some(key) => buffers.push_back((key, capacity)),
                    None => self.queue.gave_back(),
                }
            }
        }
        let served = ModelAttempt {
            missing: lengths.iter().sum(),
            lengths,
            has_answered: false,
            buffers,
            next: 0,
        };
        self.served.insert(self.attempts.begin(attempt), served);
    }

    fn offer(&mut self, attempt: &mut Attempt, lease: Lease, capacity: u32) -> Option<u64> {
        let on_connection = self.exposed.values().filter(|e| e.0 == attempt.connection);
        if on_connection.count() >= ROOM {
            return None;
        }
        self.next_key += 1;
        self.exposed
            .insert(self.next_key, (attempt.connection, lease));
        attempt.offered(self.next_key, capacity);
        Some(self.next_key)
    }

    fn end(&mut self, id: u64) -> FetchRequest {
        let attempt = self.attempts.end(id).unwrap();
        let connection = attempt.connection;
        let (request, keys) = attempt.end();
        self.queue.leave(connection, request.id, id);
        self.served.remove(&id);
        for key in keys {
            self.exposed.remove(&key);
        }
        request
    }

    /// Grants memory as the service does, and checks the order.
    fn grant_memory(&mut self) {
        let mut round = self.queue.begin_round(&self.attempts);
        let mut before = None;
        while let Some(id) = self.queue.next(&mut round) {
            let attempt = self.attempts.get(id).unwrap();
            let order = (self.queue.is_behind(attempt), attempt.request.id);
            assert!(before < Some(order), "{order:?} comes after {before:?}");
            assert_ne!(round.last, MemoryGrant::NoMemory, "a refusal ends a round");
            before = Some(order);
            round.last = self.grant(id);
            self.queue.granted(&mut self.attempts, id, round.last);
        }
        for (request, id) in &self.queue.waiting {
            assert_eq!(self.attempts.of_request(*request), Some(*id));
        }
    }

    fn grant(&mut self, id: u64) -> MemoryGrant {
        let mut attempt = self.attempts.take_out(id).unwrap();
        let granted = loop {
            let mut bytes = attempt.next_bytes();
            if bytes == 0 {
                break MemoryGrant::Served;
            }
            if self.queue.is_held_back(&self.attempts, attempt.request.id) {
                break MemoryGrant::NoMemory;
            }
            let Ok(leases) = self.memory.try_lease_all(bytes, Purpose::Read) else {
                break MemoryGrant::NoMemory;
            };
            for lease in leases {
                let capacity = bytes.min(lease.capacity() as u64) as u32;
                let Some(key) = self.offer(&mut attempt, lease, capacity) else {
                    break;
                };
                let served = self.served.get_mut(&id).unwrap();
                served.buffers.push_back((key, capacity));
                bytes -= u64::from(capacity);
            }
            if bytes > 0 {
                self.queue.gave_back();
                break MemoryGrant::NoRoom;
            }
        };
        self.attempts.put_in(id, attempt);
        granted
    }

    fn has_room(&mut self, connection: ConnectionId) {
        if self.queue.has_room(connection) {
            self.grant_memory();
        }
    }

    fn send_requeued(&mut self) {
        let due: Vec<_> = self.queue.take_due(&self.attempts).collect();
        for request in due {
            self.start(request, None);
        }
    }

    /// A turn of the progress thread, before it waits for events.
    fn turn(&mut self) {
        if self.queue.begin_turn() {
            self.grant_memory();
            self.send_requeued();
        }
        if self.has_returned.swap(false, Ordering::Relaxed) {
            self.queue.on_memory();
            self.grant_memory();
            self.send_requeued();
        }
        self.queue.publish_first(&self.attempts);
    }

    /// A server that does not pause does its next step for one of its attempts.
    fn serve(&mut self) {
        let at = self.roll(self.served.len() as u64) as usize;
        let (id, served) = self.served.iter_mut().nth(at).unwrap();
        let id = *id;
        let attempt = self.attempts.get_mut(id).unwrap();
        let (connection, now) = (attempt.connection, clock::now());
        if self.pauses[connection.0 as usize] > self.since {
            return;
        }
        if !served.has_answered {
            served.has_answered = true;
            let blocks = served.lengths.iter().map(|bytes| BlockEntry::found(*bytes));
            let blocks = blocks.collect();
            let total = served.missing;
            attempt.progress(now);
            let too_large = attempt.on_response(FetchResponse { blocks }, u64::MAX);
            assert!(!too_large.unwrap());
            self.queue.on_arrival(connection, now);
            self.queue.on_reply(&mut self.attempts, id, total);
            return self.grant_memory();
        }
        let Some((key, capacity)) = served.buffers.pop_front() else {
            return;
        };
        let (_, lease) = self.exposed.remove(&key).unwrap();
        let length = served.missing.min(capacity.into()) as u32;
        served.missing -= u64::from(length);
        let written = WrittenBuffer {
            buffer: served.next.into(),
            length: length.into(),
            crc: crc32c(&lease.bytes()[..length as usize]).into(),
            reserved: 0.into(),
        };
        served.next += 1;
        let is_last = served.missing == 0;
        attempt.progress(now);
        assert_eq!(attempt.expect(&written).unwrap().key, key);
        attempt.take(lease, &written).unwrap();
        attempt.request.was_preempted = false;
        self.memory.note_arrived(length.into());
        self.unread.extend(
            attempt
                .ready(is_last, &self.memory)
                .map(|ready| ready.delivery),
        );
        self.queue.on_arrival(connection, now);
        if is_last {
            let mut request = self.end(id);
            request.ended();
            assert!(request.missing().is_empty());
            self.succeeded.insert(request.id);
        } else {
            self.queue.join(&mut self.attempts, id);
            self.grant_memory();
        }
        self.has_room(connection);
    }

    fn tick(&mut self) {
        let now = clock::now();
        if self.other_until <= self.since {
            self.other.publish(None);
        }
        for connection in self.queue.tick(&self.attempts, now) {
            self.has_room(connection);
        }
        self.grant_memory();
        let oldest = self.queue.first_in_line(&self.attempts);
        let oldest = oldest.filter(|first| !self.queue.order.is_held_back(*first));
        for (id, relief) in self.queue.relieve(&self.attempts, now) {
            let deadline = self.attempts.get(id).unwrap().deadline;
            let mut request = self.end(id);
            match relief {
                Relief::AskAgain => {
                    request.was_preempted = true;
                    self.start(request, Some(deadline));
                }
                Relief::Requeue => {
                    assert_ne!(oldest, Some(request.id), "the oldest one keeps what it has");
                    self.queue.requeue(request);
                }
            }
        }
        self.grant_memory();
        self.send_requeued();
        while let Some(id) = self.attempts.due(now) {
            let attempt = self.attempts.get(id).unwrap();
            match self.queue.judge(attempt, now) {
                WaitVerdict::Later(at) => self.attempts.look_at(id, at),
                WaitVerdict::Requeue => {
                    let request = self.end(id);
                    self.queue.requeue(request);
                }
                verdict => {
                    let mut request = self.end(id);
                    request.ended();
                    self.failed.insert(request.id, verdict);
                }
            }
        }
    }

    /// Lets virtual time pass.
    fn pass(&mut self, time: Duration) {
        let ticks = |since: Duration| since.as_millis() / TICK.as_millis();
        let before = ticks(self.since);
        self.since += time;
        self.clock.set(self.since);
        self.turn();
        if ticks(self.since) > before {
            self.tick();
        }
    }

    fn step(&mut self) {
        match self.roll(40) {
            0..20 if !self.served.is_empty() => self.serve(),
            20..28 => drop(self.unread.pop_front()),
            28 => {
                // A server pauses: for shorter or longer than it takes to be unresponsive.
                let server = self.roll(SERVERS - 1) as usize;
                let pause = MS * self.roll(6_000) as u32;
                self.pauses[server] = self.pauses[server].max(self.since + pause);
            }
            29 if self.other_until <= self.since => {
                self.other_until = self.since + MS * self.roll(900) as u32;
                let older = self.roll(REQUESTS);
                self.other.publish(Some(older));
            }
            _ => {
                let time = MS * self.roll(20) as u32;
                self.pass(time);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Requests for more than the arena holds, at servers that pause, beside requests of another
    /// fabric, with connections that fill up: memory goes by age, every request at a server that
    /// answers ends with all its blocks, those at a server that has stopped fail by their deadline
    /// and no others, and all memory returns.
    #[test]
    fn whoever_waits_gets_memory_by_age(seed in any::<u64>(), stops in any::<bool>()) {
        let mut model = QueueModel::new(seed);
        let stops_at = model.roll(600);
        let mut next = 1;
        for step in 0..600 {
            if stops && step == stops_at {
                model.pauses[SERVERS as usize - 1] = Duration::MAX;
            }
            if next <= REQUESTS && model.roll(6) == 0 {
                model.start_new(next);
                next += 1;
            }
            model.step();
        }
        (next..=REQUESTS).for_each(|id| model.start_new(id));
        // From now on no server pauses, and the caller reads at once.
        model.pauses[..SERVERS as usize - 1].fill(Duration::ZERO);
        model.other_until = Duration::ZERO;
        let calm = model.since;
        while model.succeeded.len() + model.failed.len() < REQUESTS as usize {
            let waits = (1..=REQUESTS).filter(|id| {
                let is_stopped = stops && id % SERVERS == SERVERS - 1;
                !model.succeeded.contains(id) && !is_stopped
            });
            prop_assert!(model.since < calm + TIMEOUT / 2 || waits.count() == 0);
            prop_assert!(model.since < calm + 4 * TIMEOUT);
            model.unread.clear();
            for _ in 0..8 {
                if !model.served.is_empty() {
                    model.serve();
                }
            }
            model.pass(5 * MS);
        }
        model.pass(TICK);
        for (request, verdict) in &model.failed {
            prop_assert!(stops && request % SERVERS == SERVERS - 1, "{request}: {verdict:?}");
        }
        model.unread.clear();
        prop_assert_eq!(model.memory.pool.held_bytes(Purpose::Read), 0);
        let queue = &model.queue;
        prop_assert!(queue.waiting.is_empty() && queue.requeued.is_empty());
        prop_assert!(queue.backpressure.0.is_empty());
        prop_assert_eq!(model.other.first_of_others(), None);
    }
}
