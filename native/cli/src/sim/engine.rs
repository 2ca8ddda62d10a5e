//! The discrete-event engine.
//!
//! ```text
//!   reader ──post──▶ owner: flows in turn ──▶ link ──▶ port of the reader: buffer ──▶ drained
//!      ▲                  ▲                               │ full: lost, again after the RTO
//!      └── bytes in flight └──────── next window ─────────┴──────────────┘
//! ```
//! - A *flow* is what one owner sends to one reader. It has at most one *window* in the network; the
//!   next one joins its owner's queue when that is drained (acknowledgements are not modelled, a
//!   window is taken to cover the round trip). So an owner serves its flows in turn.
//! - A window leaves at the owner's rate and cuts through to the reader's port, which is a queue that
//!   drains at the reader's rate. A port's backlog counts windows that are on their way, so one
//!   sender alone never has any, and the k-th of k that start together meets k - 1 windows: what the
//!   buffer has to hold.
//! - When the backlog exceeds the buffer: `drop` loses the window (its link time is spent) and the
//!   flow starts again after the timeout, with one packet, then twice as much each time (kind: TCP
//!   and verbs also back off); `pause` holds the owner's whole link until there is room.
//! - Constant delays (latency, timeout) make those events come in order, so only links, posts and
//!   windows in the network are in the heap, not the many requests and timeouts.

use super::args::Overflow;
use super::model::Model;
use super::policy::Fetch;
use super::stats::Stats;
use super::units::Picos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Events between two calls of the progress callback.
const PROGRESS_EVERY: u64 = 1 << 18;

#[derive(Clone, Copy)]
enum Event {
    /// The reader may post its next request.
    Post = 0,
    /// The owner's link is free.
    LinkFree = 1,
    /// A flow's window is drained at its reader.
    Drained = 2,
}

struct Flow {
    reader: u16,
    owner: u16,
    /// Requested and not yet sent.
    unsent: u64,
    /// In the network, or lost and waiting for the timeout; at most one window.
    sent: u32,
    /// Largest next send: one packet after a loss, doubled by each send that arrives.
    window: u32,
    /// Requests on their way to the owner.
    coming: u32,
    /// The owner has admitted it; otherwise it waits for a place.
    served: bool,
}

#[derive(Default, Clone)]
struct Endpoint {
    // As a reader.
    /// Next request in its order.
    next: usize,
    /// Requested and not received.
    in_flight: u64,
    /// Owners with an open flow to it.
    reading: u32,
    /// A Post event is scheduled.
    posting: bool,
    /// Bytes received.
    received: u64,
    /// When the last byte came.
    done: Picos,
    // Its port of the switch.
    /// When the port's backlog is drained.
    port_free: Picos,
    /// Windows in the network towards it.
    fan_in: u32,
    // As an owner.
    /// Flows with a window to send, in turn.
    queue: VecDeque<u32>,
    /// Flows that wait to be served.
    waiting: VecDeque<u32>,
    /// Flows being served.
    serving: u32,
    /// The link is sending.
    busy: bool,
    // Both.
    /// Peers with a served flow in either direction: queue pairs in use.
    peers: u32,
}

pub struct Engine<'a> {
    model: &'a Model,
    fetch: &'a Fetch,
    now: Picos,
    endpoints: Vec<Endpoint>,
    /// Open flows, and closed ones whose slots are in `free`.
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Open flows of pairs that take several requests, by reader · N + owner.
    several: HashMap<usize, u32>,
    /// One bit for reader · N + owner: the owner serves the reader.
    served: Vec<u64>,
    /// (time << 64) | (kind << 32) | index: ties are broken in the same way in every run.
    heap: BinaryHeap<Reverse<u128>>,
    /// Requests on their way, in order of time.
    arrivals: VecDeque<(Picos, u32, u64)>,
    /// Flows that wait for the timeout, in order of time.
    retries: VecDeque<(Picos, u32)>,
    stats: Stats,
}

impl<'a> Engine<'a> {
    pub fn new(model: &'a Model, fetch: &'a Fetch) -> Engine<'a> {
        let n = model.endpoints;
        Engine {
            model,
            fetch,
            now: 0,
            endpoints: vec![Endpoint::default(); n],
            flows: Vec::new(),
            free: Vec::new(),
            several: HashMap::new(),
            served: vec![0; (n * n).div_ceil(64)],
            heap: BinaryHeap::new(),
            arrivals: VecDeque::new(),
            retries: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Runs until all is received. `progress` gets the bytes received so far.
    pub fn run(mut self, mut progress: impl FnMut(u64)) -> Stats {
        for reader in 0..self.endpoints.len() {
            self.endpoints[reader].posting = true;
            self.schedule(self.model.starts[reader], Event::Post, reader as u32);
        }
        while self.step() {
            self.stats.events += 1;
            if self.stats.events % PROGRESS_EVERY == 0 {
                progress(self.stats.received_bytes);
            }
        }
        progress(self.stats.received_bytes);
        self.stats.completions = self.endpoints.iter().map(|e| e.done).collect();
        self.stats
    }

    fn schedule(&mut self, at: Picos, event: Event, index: u32) {
        let key = (u128::from(at) << 64) | ((event as u128) << 32) | u128::from(index);
        self.heap.push(Reverse(key));
    }

    /// Handles the earliest event; false when there is none.
    fn step(&mut self) -> bool {
        let heap = self
            .heap
            .peek()
            .map_or(Picos::MAX, |Reverse(key)| (key >> 64) as Picos);
        let arrival = self.arrivals.front().map_or(Picos::MAX, |a| a.0);
        let retry = self.retries.front().map_or(Picos::MAX, |r| r.0);
        if arrival <= heap && arrival <= retry {
            let Some((at, flow, bytes)) = self.arrivals.pop_front() else {
                return false;
            };
            self.now = at;
            self.arrived(flow, bytes);
        } else if retry <= heap {
            if let Some((at, flow)) = self.retries.pop_front() {
                self.now = at;
                let f = &mut self.flows[flow as usize];
                f.unsent += u64::from(std::mem::take(&mut f.sent));
                self.enqueue(flow);
            }
        } else if let Some(Reverse(key)) = self.heap.pop() {
            self.now = (key >> 64) as Picos;
            let index = key as u32;
            match (key >> 32) as u32 {
                k if k == Event::Post as u32 => self.post(index as usize),
                k if k == Event::LinkFree as u32 => {
                    self.endpoints[index as usize].busy = false;
                    self.send(index as usize);
                }
                _ => self.drained(index),
            }
        }
        true
    }

    /// Posts the reader's next request when bytes in flight and peers allow.
    fn post(&mut self, reader: usize) {
        self.endpoints[reader].posting = false;
        let Some((owner, bytes, flow)) = self.allowed(reader) else {
            return;
        };
        let e = &mut self.endpoints[reader];
        e.next += 1;
        e.in_flight += bytes;
        let flow = flow.unwrap_or_else(|| self.open(reader, owner));
        self.flows[flow as usize].coming += 1;
        self.arrivals
            .push_back((self.now + self.model.latency, flow, bytes));
        self.want_post(reader);
    }

    /// The next request, when it may be posted: owner, bytes, and the flow if one is open.
    fn allowed(&self, reader: usize) -> Option<(usize, u64, Option<u32>)> {
        let e = &self.endpoints[reader];
        let request = self.fetch.orders[reader].get(e.next)?;
        let owner = usize::from(request.owner);
        let start = u64::from(request.part) * self.fetch.request;
        let all = self.model.bytes(reader, owner);
        let bytes = (all - start).min(self.fetch.request);
        let fits = e.in_flight == 0 || e.in_flight + bytes <= self.fetch.in_flight;
        let flow = match all > bytes {
            true => self.several.get(&self.pair(reader, owner)).copied(),
            false => None,
        };
        let peers = flow.is_some() || e.reading < self.fetch.max_peers;
        (fits && peers).then_some((owner, bytes, flow))
    }

    fn want_post(&mut self, reader: usize) {
        if !self.endpoints[reader].posting && self.allowed(reader).is_some() {
            self.endpoints[reader].posting = true;
            self.schedule(self.now + self.model.post, Event::Post, reader as u32);
        }
    }

    fn open(&mut self, reader: usize, owner: usize) -> u32 {
        let flow = Flow {
            reader: reader as u16,
            owner: owner as u16,
            unsent: 0,
            sent: 0,
            window: self.model.window as u32,
            coming: 0,
            served: false,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flows[slot as usize] = flow;
                slot
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        if self.model.bytes(reader, owner) > self.fetch.request {
            self.several.insert(self.pair(reader, owner), slot);
        }
        let reading = &mut self.endpoints[reader].reading;
        *reading += 1;
        self.stats.peak_active_peers = self.stats.peak_active_peers.max(*reading);
        slot
    }

    /// A request reaches its owner, which serves it or lets it wait for a place.
    fn arrived(&mut self, flow: u32, bytes: u64) {
        let f = &mut self.flows[flow as usize];
        let idle = f.unsent == 0 && f.sent == 0;
        f.unsent += bytes;
        f.coming -= 1;
        let owner = usize::from(f.owner);
        if f.served {
            if idle {
                self.enqueue(flow);
            }
        } else if self.endpoints[owner].serving < self.fetch.max_peers {
            self.serve(flow);
        } else if idle {
            self.endpoints[owner].waiting.push_back(flow);
        }
    }

    fn serve(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        f.served = true;
        let (reader, owner) = (usize::from(f.reader), usize::from(f.owner));
        let serving = &mut self.endpoints[owner].serving;
        *serving += 1;
        self.stats.peak_serving = self.stats.peak_serving.max(*serving);
        let pair = self.pair(reader, owner);
        self.served[pair / 64] |= 1 << (pair % 64);
        if !self.is_served(owner, reader) {
            for e in [reader, owner] {
                self.endpoints[e].peers += 1;
                let peers = self.endpoints[e].peers;
                self.stats.peak_queue_pair_peers = self.stats.peak_queue_pair_peers.max(peers);
            }
        }
        self.enqueue(flow);
    }

    /// Whether `owner` serves `reader` now.
    fn is_served(&self, reader: usize, owner: usize) -> bool {
        let pair = self.pair(reader, owner);
        self.served[pair / 64] >> (pair % 64) & 1 == 1
    }

    fn pair(&self, reader: usize, owner: usize) -> usize {
        reader * self.model.endpoints + owner
    }

    fn enqueue(&mut self, flow: u32) {
        let owner = usize::from(self.flows[flow as usize].owner);
        self.endpoints[owner].queue.push_back(flow);
        self.send(owner);
    }

    /// Sends the next window of the owner's flows when its link is free.
    fn send(&mut self, owner: usize) {
        if self.endpoints[owner].busy {
            return;
        }
        let Some(flow) = self.endpoints[owner].queue.pop_front() else {
            return;
        };
        let model = self.model;
        let f = &mut self.flows[flow as usize];
        let reader = usize::from(f.reader);
        let bytes = f.unsent.min(u64::from(f.window));
        f.unsent -= bytes;
        f.sent = bytes as u32;
        let peers = self.endpoints[owner].peers;
        let port = &mut self.endpoints[reader];
        let byte_time = model.byte_time[reader];
        let waiting = port.port_free.saturating_sub(self.now);
        let backlog = (waiting as f64 / byte_time) as u64;
        let full = model.overflow != Overflow::Never && backlog > model.buffer;
        let link = model.service(owner, bytes, peers);
        self.stats.peak_fan_in = self.stats.peak_fan_in.max(port.fan_in + 1);
        let mut start = self.now;
        if full && model.overflow == Overflow::Drop {
            self.stats.buffer_overflows += 1;
            self.stats.lost_bytes += bytes;
            f.window = model.packet.min(model.window) as u32;
            self.retries.push_back((self.now + model.rto, flow));
        } else {
            if full {
                self.stats.pauses += 1;
                start = port.port_free - (model.buffer as f64 * byte_time) as Picos;
                self.stats.paused += start - self.now;
            }
            self.stats.peak_buffer_bytes = self.stats.peak_buffer_bytes.max(backlog);
            port.fan_in += 1;
            port.port_free = port.port_free.max(start) + model.service(reader, bytes, port.peers);
            let at = port.port_free.max(start + link);
            self.schedule(at, Event::Drained, flow);
        }
        self.endpoints[owner].busy = true;
        self.schedule(start + link, Event::LinkFree, owner as u32);
    }

    /// A window is at its reader: the flow goes on, or is closed.
    fn drained(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        let bytes = u64::from(std::mem::take(&mut f.sent));
        f.window = (f.window * 2).min(self.model.window as u32);
        let (reader, more) = (usize::from(f.reader), f.unsent > 0);
        let last = !more && f.coming == 0;
        let e = &mut self.endpoints[reader];
        e.fan_in -= 1;
        e.in_flight -= bytes;
        e.received += bytes;
        e.done = self.now;
        self.stats.received_bytes += bytes;
        if more {
            self.enqueue(flow);
        } else if last {
            self.close(flow);
        }
        self.want_post(reader);
    }

    fn close(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        f.served = false;
        let (reader, owner) = (usize::from(f.reader), usize::from(f.owner));
        let pair = self.pair(reader, owner);
        self.served[pair / 64] &= !(1 << (pair % 64));
        if !self.several.is_empty() {
            self.several.remove(&pair);
        }
        self.free.push(flow);
        self.endpoints[reader].reading -= 1;
        self.endpoints[owner].serving -= 1;
        if !self.is_served(owner, reader) {
            self.endpoints[reader].peers -= 1;
            self.endpoints[owner].peers -= 1;
        }
        if let Some(next) = self.endpoints[owner].waiting.pop_front() {
            self.serve(next);
        }
    }
}
