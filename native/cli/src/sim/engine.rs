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

use super::args::Overflow;
use super::events::{EventQueue, SimEvent};
use super::flows::Flows;
use super::model::Model;
use super::policy::PolicyFetch;
use super::stats::SimStats;
use super::units::Picos;
use std::collections::VecDeque;

/// Events between two calls of the progress callback.
const PROGRESS_EVERY: u64 = 1 << 18;

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
    // The member's port of the switch.
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
    flows: Flows,
    events: EventQueue,
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
            flows: Flows::new(n),
            events: EventQueue::default(),
            stats: SimStats::default(),
        }
    }

    /// Runs until all is received. `progress` gets the bytes received so far.
    pub fn run(mut self, mut progress: impl FnMut(u64)) -> SimStats {
        for client in 0..self.endpoints.len() {
            self.endpoints[client].posting = true;
            self.events.post(self.model.starts[client], client);
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

    /// Handles the earliest event. Returns false if no event remains.
    fn step(&mut self) -> bool {
        let Some((at, event)) = self.events.pop() else {
            return false;
        };
        self.now = at;
        match event {
            SimEvent::Post { client } => self.post(client),
            SimEvent::Arrived { flow, bytes } => self.arrived(flow, bytes),
            SimEvent::LinkFree { server } => {
                self.endpoints[server].busy = false;
                self.send(server);
            }
            SimEvent::Drained { flow } => self.drained(flow),
            SimEvent::Retry { flow } => {
                let f = self.flows.get(flow);
                f.unsent += u64::from(std::mem::take(&mut f.sent));
                self.enqueue(flow);
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
        self.flows.get(flow).coming += 1;
        self.events
            .arrived(self.now + self.model.latency, flow, bytes);
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
            true => self.flows.of_several(client, server),
            false => None,
        };
        let peers = flow.is_some() || e.reading < self.fetch.max_peers;
        (fits && peers).then_some((server, bytes, flow))
    }

    fn want_post(&mut self, client: usize) {
        if !self.endpoints[client].posting && self.allowed(client).is_some() {
            self.endpoints[client].posting = true;
            self.events.post(self.now + self.model.post, client);
        }
    }

    fn open(&mut self, client: usize, server: usize) -> u32 {
        let several = self.model.bytes(client, server) > self.fetch.request;
        let window = self.model.window as u32;
        let flow = self.flows.open(client, server, window, several);
        let reading = &mut self.endpoints[client].reading;
        *reading += 1;
        self.stats.peak_active_peers = self.stats.peak_active_peers.max(*reading);
        flow
    }

    /// A request reaches its server, which gives it a permit or lets it wait for one.
    fn arrived(&mut self, flow: u32, bytes: u64) {
        let f = self.flows.get(flow);
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
        let (client, server) = self.flows.serve(flow);
        let serving = &mut self.endpoints[server].serving;
        *serving += 1;
        self.stats.peak_serving = self.stats.peak_serving.max(*serving);
        if !self.flows.is_served(server, client) {
            for e in [client, server] {
                self.endpoints[e].peers += 1;
                let peers = self.endpoints[e].peers;
                self.stats.peak_queue_pair_peers = self.stats.peak_queue_pair_peers.max(peers);
            }
        }
        self.enqueue(flow);
    }

    fn enqueue(&mut self, flow: u32) {
        let server = usize::from(self.flows.get(flow).server);
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
        let f = self.flows.get(flow);
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
            self.events.retry(self.now + model.rto, flow);
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
            self.events.drained(at, flow);
        }
        self.endpoints[server].busy = true;
        self.events.link_free(start + link, server);
    }

    /// A window has arrived at its client: the flow sends the next one or is closed.
    fn drained(&mut self, flow: u32) {
        let f = self.flows.get(flow);
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
        let (client, server) = self.flows.close(flow);
        self.endpoints[client].reading -= 1;
        self.endpoints[server].serving -= 1;
        if !self.flows.is_served(server, client) {
            self.endpoints[client].peers -= 1;
            self.endpoints[server].peers -= 1;
        }
        if let Some(next) = self.endpoints[server].waiting.pop_front() {
            self.serve(next);
        }
    }
}
