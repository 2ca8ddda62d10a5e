use super::*;
use crate::counters::EndpointCounters;
use crate::fetch::completion::Delivery;
use crate::fetch::completion_sink::CompletionSink;
use crate::memory::RegionMode;
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
/// The largest block that the arena has room for.
const LARGEST: u64 = SLAB_BYTES as u64 - 2 * PAGE_BYTES as u64;
const SERVERS: u64 = 4;
const LAST: u64 = SERVERS - 1;
/// The oldest requests, to which the last server writes nothing in some scenes.
const STUCK: u64 = 4;

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

/// Exposes the first `capacity` bytes of a lease to the attempt's server, unless its connection is
/// full. Returns the key and the capacity.
fn expose(
    exposed: &mut BTreeMap<u64, (ConnectionId, Lease)>,
    next_key: &mut u64,
    room: usize,
    attempt: &mut Attempt,
    lease: Lease,
    capacity: u32,
) -> Option<(u64, u32)> {
    let on_connection = exposed.values().filter(|e| e.0 == attempt.connection);
    if on_connection.count() >= room {
        return None;
    }
    *next_key += 1;
    exposed.insert(*next_key, (attempt.connection, lease));
    attempt.offered(*next_key, capacity);
    Some((*next_key, capacity))
}

/// What happens in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Servers pause and connections fill up.
    Pauses,
    /// The same, and the last server stops for good.
    Stops,
    /// Each block needs most of the arena, and first buffers hold parts of many.
    HugeBlocks,
    /// The last server has most of the arena when it stops for good, before anything else happens.
    StopsWithMost,
    /// The last server writes nothing for every other request, and answers all else.
    SlowRequests,
}

impl Scene {
    /// Returns how many buffers a connection has room for.
    fn room(self) -> usize {
        match self {
            Self::Pauses | Self::Stops => 20,
            Self::HugeBlocks | Self::StopsWithMost | Self::SlowRequests => 1_024,
        }
    }

    /// Returns the server of a request.
    fn server(self, request: u64) -> u64 {
        match self {
            Self::Pauses | Self::Stops | Self::HugeBlocks => request % SERVERS,
            Self::StopsWithMost | Self::SlowRequests if request <= STUCK => LAST,
            // Also the last one answers, if only some of its requests are slow.
            Self::StopsWithMost => request % LAST,
            Self::SlowRequests => request % SERVERS,
        }
    }

    /// Returns whether the server writes nothing more for a request.
    fn is_stuck(self, request: u64) -> bool {
        match self {
            Self::Pauses | Self::HugeBlocks => false,
            Self::Stops => self.server(request) == LAST,
            Self::StopsWithMost | Self::SlowRequests => request <= STUCK,
        }
    }

    /// Returns the longest time until all other requests have ended, from when no server pauses.
    fn bound(self) -> Duration {
        match self {
            Self::Pauses => RELIEF_WAIT * 4,
            Self::HugeBlocks => RELIEF_WAIT * 6,
            Self::Stops | Self::StopsWithMost => SILENCE_IN_SHORTAGE * 2,
            Self::SlowRequests => SILENCE_IN_SHORTAGE * 3,
        }
    }
}

/// The queue, with a model of the service that acts for it, and of the servers.
struct QueueModel {
    scene: Scene,
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
    fn new(seed: u64, scene: Scene) -> Self {
        let clock = SimulationGuard::begin(seed, 128);
        let pool = Pool::new(2 * SLAB_BYTES as u64).unwrap();
        let has_returned = Arc::new(AtomicBool::new(false));
        let returned = Arc::clone(&has_returned);
        pool.on_release(Box::new(move || returned.store(true, Ordering::Relaxed)));
        let cache = ChunkCache::new(Arc::clone(&pool), 4).unwrap();
        let modes = (RegionMode::Unpinned, false);
        let memory = Memory::new(pool, cache, modes, 1 << 20);
        let wakers = (0..2).map(|_| Arc::new(|| {}) as faro_fabric::Waker);
        let mut places = PlaceInOrder::of_each(wakers);
        let other = places.remove(1);
        Self {
            scene,
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

    /// Returns the lengths of the blocks of a new request.
    fn lengths_of(&mut self, id: u64) -> Vec<u64> {
        let blocks = 1 + self.roll(4);
        let largest = if self.scene == Scene::SlowRequests {
            12 << 20
        } else {
            3 << 20
        };
        let sizes = [3_000, 60_000, 700_000, largest];
        match self.scene {
            Scene::HugeBlocks => return vec![LARGEST - self.roll(4 << 20); 1],
            Scene::StopsWithMost | Scene::SlowRequests if id <= STUCK => return vec![6 << 20; 2],
            Scene::Pauses | Scene::Stops | Scene::StopsWithMost | Scene::SlowRequests => {}
        }
        let lengths = (0..blocks).map(|_| {
            let most = sizes[self.roll(4) as usize];
            1 + self.roll(most)
        });
        lengths.collect()
    }

    fn start_new(&mut self, id: u64) {
        let lengths = self.lengths_of(id);
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
            self.scene.server(id).into(),
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
                let (room, next_key) = (self.scene.room(), &mut self.next_key);
                let exposed = &mut self.exposed;
                match expose(exposed, next_key, room, &mut attempt, lease, capacity) {
                    Some(buffer) => buffers.push_back(buffer),
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
        let Self {
            queue,
            attempts,
            exposed,
            ..
        } = self;
        let (room, next_key) = (self.scene.room(), &mut self.next_key);
        let offer = |attempt: &mut Attempt, lease, capacity| {
            expose(exposed, next_key, room, attempt, lease, capacity)
        };
        let (granted, buffers) = queue.offer_more(attempts, id, offer);
        self.served.get_mut(&id).unwrap().buffers.extend(buffers);
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
        let (scene, attempts) = (self.scene, &self.attempts);
        let can_act = |(id, served): &(&u64, &ModelAttempt)| {
            let attempt = attempts.get(**id).unwrap();
            let is_slow = scene == Scene::SlowRequests && scene.is_stuck(attempt.request.id);
            self.pauses[attempt.connection.0 as usize] <= self.since
                && (!served.has_answered || (!served.buffers.is_empty() && !is_slow))
        };
        let active = self.served.iter().filter(can_act);
        let active: Vec<u64> = active.map(|(id, _)| *id).collect();
        if active.is_empty() {
            return;
        }
        let id = active[self.roll(active.len() as u64) as usize];
        let served = self.served.get_mut(&id).unwrap();
        let attempt = self.attempts.get_mut(id).unwrap();
        let (connection, now) = (attempt.connection, clock::now());
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
        let (key, capacity) = served.buffers.pop_front().unwrap();
        let (_, lease) = self.exposed.remove(&key).unwrap();
        let length = served.missing.min(capacity.into()) as u32;
        served.missing -= u64::from(length);
        let written = WrittenBuffer {
            buffer: served.next.into(),
            length: length.into(),
            crc: crc32c(&lease.bytes()[..length as usize]).into(),
            unsummed: 0.into(),
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

    /// A request of the other fabric waits for most of the arena, and is older than all others.
    fn other_gets_memory(&mut self) {
        self.other.publish(Some(0));
        self.other_until = Duration::MAX;
        let begun = self.since;
        while self.memory.try_lease_all(12 << 20, Purpose::Read).is_err() {
            self.unread.clear();
            self.pass(5 * MS);
            assert!(self.since - begun < SILENCE_IN_SHORTAGE * 2, "it waits");
        }
        self.other_until = Duration::ZERO;
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
            0..20 => self.serve(),
            20..28 => drop(self.unread.pop_front()),
            28 => {
                // A server pauses: for shorter or longer than it takes to be unresponsive.
                let servers = SERVERS - u64::from(self.scene != Scene::Pauses);
                let server = self.roll(servers) as usize;
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
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Requests for more than the arena holds, at servers that pause or stop, beside requests of
    /// another fabric, with connections that fill up: memory goes by age, every request that its
    /// server answers ends soon with all its blocks, whatever the others hold, those at a server
    /// that has stopped fail by their deadline and no others, and all memory returns.
    #[test]
    fn whoever_waits_gets_memory_by_age(seed in any::<u64>(), scene in scenes()) {
        let mut model = QueueModel::new(seed, scene);
        let mut ids: VecDeque<u64> = (1..=REQUESTS).collect();
        let last = LAST as usize;
        if matches!(scene, Scene::StopsWithMost | Scene::SlowRequests) {
            ids.drain(..STUCK as usize).for_each(|id| model.start_new(id));
            (0..6).for_each(|_| model.serve());
        }
        if scene == Scene::HugeBlocks {
            ids.drain(..).for_each(|id| model.start_new(id));
        }
        if scene == Scene::StopsWithMost {
            model.pauses[last] = Duration::MAX;
            if model.roll(2) == 0 {
                model.other_gets_memory();
            }
        }
        let stops_at = model.roll(600);
        for step in 0..600 {
            if scene == Scene::Stops && step == stops_at {
                model.pauses[last] = Duration::MAX;
            }
            if model.roll(6) == 0 {
                ids.pop_front().into_iter().for_each(|id| model.start_new(id));
            }
            model.step();
        }
        ids.into_iter().for_each(|id| model.start_new(id));
        // From now on no server pauses, and the caller reads at once.
        model.pauses[..last].fill(Duration::ZERO);
        if model.pauses[last] < Duration::MAX {
            model.pauses[last] = Duration::ZERO;
        }
        model.other_until = Duration::ZERO;
        let calm = model.since;
        while model.succeeded.len() + model.failed.len() < REQUESTS as usize {
            let waits = (1..=REQUESTS).filter(|id| !model.succeeded.contains(id));
            let waits: Vec<_> = waits.filter(|id| !scene.is_stuck(*id)).collect();
            let time = model.since - calm;
            prop_assert!(time < scene.bound() || waits.is_empty(), "{waits:?} wait for {time:?}");
            prop_assert!(time < 4 * TIMEOUT);
            model.unread.clear();
            (0..8).for_each(|_| model.serve());
            model.pass(5 * MS);
        }
        model.pass(TICK);
        for (request, verdict) in &model.failed {
            prop_assert!(scene.is_stuck(*request), "{request}: {verdict:?}");
        }
        model.unread.clear();
        prop_assert_eq!(model.memory.pool.held_bytes(Purpose::Read), 0);
        let queue = &model.queue;
        prop_assert!(queue.waiting.is_empty() && queue.requeued.is_empty());
        prop_assert!(queue.backpressure.0.is_empty());
        prop_assert_eq!(model.other.first_of_others(), None);
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    prop::sample::select(vec![
        Scene::Pauses,
        Scene::Stops,
        Scene::HugeBlocks,
        Scene::StopsWithMost,
        Scene::SlowRequests,
    ])
}
