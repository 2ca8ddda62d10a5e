//! The discrete-event engine.
//!
//! ```text
//!   client ──post──▶ server: flows in turn ──▶ link ──▶ port of the client: buffer ──▶ drained
//!      ▲                  ▲                                │ full: lost, again after the RTO
//!      └── bytes in flight └──────── next window ──────────┴──────────────┘
//! ```
//! - A *flow* is the bytes that one server sends to one client. It has at most one *window* in the
//!   network; when that is drained, the flow joins its server's queue again with the next one
//!   (acknowledgements are not modelled: a window is assumed to cover the round trip). So a server
//!   serves its flows in turn.
//! - A window leaves at the server's rate and cuts through to the client's port, a queue that drains
//!   at the client's rate. A port's backlog counts windows that are on their way, so one sender alone
//!   never causes a backlog, and the k-th of k that start together meets k - 1 windows, which the
//!   buffer has to hold.
//! - If the backlog exceeds the buffer, `drop` loses the window (its link time is spent) and the flow
//!   starts again after the timeout, with one packet, then twice as much each time (TCP and verbs
//!   would also back off); `pause` holds the server's whole link until the buffer has room.
//! - Latency and timeout are constant, so those events come in order and need no heap: it holds only
//!   links, posts and windows in the network, not the many requests and timeouts.

use super::args::Overflow;
use super::model::Model;
use super::policy::PolicyFetch;
use super::stats::SimStats;
use super::units::Picos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// Events between two calls of the progress callback.
const PROGRESS_EVERY: u64 = 1 << 18;

#[derive(Clone, Copy)]
enum SimEvent {
    /// The client may post its next request.
    Post = 0,
    /// The server's link is free.
    LinkFree = 1,
    /// The client's port has drained a flow's window.
    Drained = 2,
}

struct Flow {
    client: u16,
    server: u16,
    /// Bytes requested and not yet sent.
    unsent: u64,
    /// Bytes in the network, or lost and waiting for the timeout; at most one window.
    sent: u32,
    /// Largest next send: one packet after a loss, doubled by each send that arrives.
    window: u32,
    /// Requests on their way to the server.
    coming: u32,
    /// The server has given it a permit; otherwise it waits for one.
    served: bool,
}

#[derive(Default, Clone)]
struct SimEndpoint {
    // The part of a client.
    /// Next request in its order.
    next: usize,
    /// Bytes requested and not received.
    in_flight: u64,
    /// Servers with an open flow to it.
    reading: u32,
    /// A Post event is scheduled.
    posting: bool,
    /// Bytes received.
    received: u64,
    /// Time of the last byte.
    done: Picos,
    // The fields below are of the member's port of the switch.
    /// Time at which the port's backlog is drained.
    port_free: Picos,
    /// Windows in the network towards it.
    fan_in: u32,
    // The part of a server.
    /// Flows with a window to send, in turn.
    queue: VecDeque<u32>,
    /// Flows that wait for a permit.
    waiting: VecDeque<u32>,
    /// Flows with a permit.
    serving: u32,
    /// The link is sending.
    busy: bool,
    // Both.
    /// Peers with a flow that has a permit, in either direction: queue pairs in use.
    peers: u32,
}

pub struct Engine<'a> {
    model: &'a Model,
    fetch: &'a PolicyFetch,
    now: Picos,
    endpoints: Vec<SimEndpoint>,
    /// Open flows, and closed ones whose slots are in `free`.
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Open flows of pairs that take several requests, by client · N + server.
    several: HashMap<usize, u32>,
    /// One bit for client · N + server: the flow has a permit.
    served: Vec<u64>,
    /// (time << 64) | (kind << 32) | index: ties are broken in the same way in every run.
    heap: BinaryHeap<Reverse<u128>>,
    /// Requests on their way, in order of time.
    arrivals: VecDeque<(Picos, u32, u64)>,
    /// Flows that wait for the timeout, in order of time.
    retries: VecDeque<(Picos, u32)>,
    stats: SimStats,
}

impl<'a> Engine<'a> {
    pub fn new(model: &'a Model, fetch: &'a PolicyFetch) -> Engine<'a> {
        let n = model.endpoints;
        Engine {
            model,
            fetch,
            now: 0,
            endpoints: vec![SimEndpoint::default(); n],
            flows: Vec::new(),
            free: Vec::new(),
            several: HashMap::new(),
            served: vec![0; (n * n).div_ceil(64)],
            heap: BinaryHeap::new(),
            arrivals: VecDeque::new(),
            retries: VecDeque::new(),
            stats: SimStats::default(),
        }
    }

    /// Runs until all is received. `progress` gets the bytes received so far.
    pub fn run(mut self, mut progress: impl FnMut(u64)) -> SimStats {
        for client in 0..self.endpoints.len() {
            self.endpoints[client].posting = true;
            self.schedule(self.model.starts[client], SimEvent::Post, client as u32);
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

    fn schedule(&mut self, at: Picos, event: SimEvent, index: u32) {
        let key = (u128::from(at) << 64) | ((event as u128) << 32) | u128::from(index);
        self.heap.push(Reverse(key));
    }

    /// Handles the earliest event. Returns false if there is none.
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
                k if k == SimEvent::Post as u32 => self.post(index as usize),
                k if k == SimEvent::LinkFree as u32 => {
                    self.endpoints[index as usize].busy = false;
                    self.send(index as usize);
                }
                _ => self.drained(index),
            }
        }
        true
    }

    /// Posts the client's next request if the bounds on bytes in flight and on peers allow it.
    fn post(&mut self, client: usize) {
        self.endpoints[client].posting = false;
        let Some((server, bytes, flow)) = self.allowed(client) else {
            return;
        };
        let e = &mut self.endpoints[client];
        e.next += 1;
        e.in_flight += bytes;
        let flow = flow.unwrap_or_else(|| self.open(client, server));
        self.flows[flow as usize].coming += 1;
        self.arrivals
            .push_back((self.now + self.model.latency, flow, bytes));
        self.want_post(client);
    }

    /// The next request, if it may be posted: server, bytes, and the flow if one is open.
    fn allowed(&self, client: usize) -> Option<(usize, u64, Option<u32>)> {
        let e = &self.endpoints[client];
        let request = self.fetch.orders[client].get(e.next)?;
        let server = usize::from(request.server);
        let start = u64::from(request.part) * self.fetch.request;
        let all = self.model.bytes(client, server);
        let bytes = (all - start).min(self.fetch.request);
        let fits = e.in_flight == 0 || e.in_flight + bytes <= self.fetch.in_flight;
        let flow = match all > bytes {
            true => self.several.get(&self.pair(client, server)).copied(),
            false => None,
        };
        let peers = flow.is_some() || e.reading < self.fetch.max_peers;
        (fits && peers).then_some((server, bytes, flow))
    }

    fn want_post(&mut self, client: usize) {
        if !self.endpoints[client].posting && self.allowed(client).is_some() {
            self.endpoints[client].posting = true;
            self.schedule(self.now + self.model.post, SimEvent::Post, client as u32);
        }
    }

    fn open(&mut self, client: usize, server: usize) -> u32 {
        let flow = Flow {
            client: client as u16,
            server: server as u16,
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
        if self.model.bytes(client, server) > self.fetch.request {
            self.several.insert(self.pair(client, server), slot);
        }
        let reading = &mut self.endpoints[client].reading;
        *reading += 1;
        self.stats.peak_active_peers = self.stats.peak_active_peers.max(*reading);
        slot
    }

    /// A request reaches its server, which gives it a permit or lets it wait for one.
    fn arrived(&mut self, flow: u32, bytes: u64) {
        let f = &mut self.flows[flow as usize];
        let idle = f.unsent == 0 && f.sent == 0;
        f.unsent += bytes;
        f.coming -= 1;
        let server = usize::from(f.server);
        if f.served {
            if idle {
                self.enqueue(flow);
            }
        } else if self.endpoints[server].serving < self.fetch.max_peers {
            self.serve(flow);
        } else if idle {
            self.endpoints[server].waiting.push_back(flow);
        }
    }

    fn serve(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        f.served = true;
        let (client, server) = (usize::from(f.client), usize::from(f.server));
        let serving = &mut self.endpoints[server].serving;
        *serving += 1;
        self.stats.peak_serving = self.stats.peak_serving.max(*serving);
        let pair = self.pair(client, server);
        self.served[pair / 64] |= 1 << (pair % 64);
        if !self.is_served(server, client) {
            for e in [client, server] {
                self.endpoints[e].peers += 1;
                let peers = self.endpoints[e].peers;
                self.stats.peak_queue_pair_peers = self.stats.peak_queue_pair_peers.max(peers);
            }
        }
        self.enqueue(flow);
    }

    /// Returns whether `server` serves `client` now.
    fn is_served(&self, client: usize, server: usize) -> bool {
        let pair = self.pair(client, server);
        self.served[pair / 64] >> (pair % 64) & 1 == 1
    }

    fn pair(&self, client: usize, server: usize) -> usize {
        client * self.model.endpoints + server
    }

    fn enqueue(&mut self, flow: u32) {
        let server = usize::from(self.flows[flow as usize].server);
        self.endpoints[server].queue.push_back(flow);
        self.send(server);
    }

    /// Sends the next window of the server's flows if its link is free.
    fn send(&mut self, server: usize) {
        if self.endpoints[server].busy {
            return;
        }
        let Some(flow) = self.endpoints[server].queue.pop_front() else {
            return;
        };
        let model = self.model;
        let f = &mut self.flows[flow as usize];
        let client = usize::from(f.client);
        let bytes = f.unsent.min(u64::from(f.window));
        f.unsent -= bytes;
        f.sent = bytes as u32;
        let peers = self.endpoints[server].peers;
        let port = &mut self.endpoints[client];
        let byte_time = model.byte_time[client];
        let waiting = port.port_free.saturating_sub(self.now);
        let backlog = (waiting as f64 / byte_time) as u64;
        let full = model.overflow != Overflow::Never && backlog > model.buffer;
        let link = model.service(server, bytes, peers);
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
            port.port_free = port.port_free.max(start) + model.service(client, bytes, port.peers);
            let at = port.port_free.max(start + link);
            self.schedule(at, SimEvent::Drained, flow);
        }
        self.endpoints[server].busy = true;
        self.schedule(start + link, SimEvent::LinkFree, server as u32);
    }

    /// A window has arrived at its client: the flow sends the next one or is closed.
    fn drained(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        let bytes = u64::from(std::mem::take(&mut f.sent));
        f.window = (f.window * 2).min(self.model.window as u32);
        let (client, more) = (usize::from(f.client), f.unsent > 0);
        let last = !more && f.coming == 0;
        let e = &mut self.endpoints[client];
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
        self.want_post(client);
    }

    fn close(&mut self, flow: u32) {
        let f = &mut self.flows[flow as usize];
        f.served = false;
        let (client, server) = (usize::from(f.client), usize::from(f.server));
        let pair = self.pair(client, server);
        self.served[pair / 64] &= !(1 << (pair % 64));
        if !self.several.is_empty() {
            self.several.remove(&pair);
        }
        self.free.push(flow);
        self.endpoints[client].reading -= 1;
        self.endpoints[server].serving -= 1;
        if !self.is_served(server, client) {
            self.endpoints[client].peers -= 1;
            self.endpoints[server].peers -= 1;
        }
        if let Some(next) = self.endpoints[server].waiting.pop_front() {
            self.serve(next);
        }
    }
}
