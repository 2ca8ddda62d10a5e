//! Two endpoints' [`PeerConnections`] against each other over a network that orders nothing but the
//! frames of one connection: random interleavings of what can happen, and what must hold in all of
//! them.

use super::connections::{LinkState, PeerConnections};
use faro_fabric::ConnectionId;
use std::collections::{HashMap, HashSet, VecDeque};

#[derive(Debug, Clone, Copy, PartialEq)]
enum ModelFrame {
    Hello,
    Welcome,
    Fetch(u64),
    Reply(u64),
    Goodbye,
    /// The connection was cut, as an end sees it.
    Lost,
}

#[derive(Clone, Copy, PartialEq)]
enum ModelEnd {
    /// The maker's before WELCOME, the other's before HELLO.
    Before,
    Open,
    Closed,
}

struct ModelSide {
    connections: PeerConnections,
    /// Requests that wait for a connection to open.
    waiting: Vec<u64>,
    /// The requests in flight, with their connection.
    attempts: HashMap<u64, usize>,
    /// Fetches of the other side to be answered.
    serving: HashSet<(usize, u64)>,
}

/// A connection: `ends` and `to` by side, `to[s]` is on its way to side s.
struct Conn {
    maker: usize,
    ends: [ModelEnd; 2],
    to: [VecDeque<ModelFrame>; 2],
}

struct ConnectionsModel {
    ids: [u128; 2],
    sides: [ModelSide; 2],
    conns: Vec<Conn>,
    done: HashSet<u64>,
    cuts: usize,
    /// True if makers close unused connections at any time.
    closes_idle: bool,
    /// Requests that saw a fault.
    faults: usize,
    state: u64,
}

impl ConnectionsModel {
    fn new(seed: u64) -> Self {
        let side = |own| ModelSide {
            connections: PeerConnections::new(own),
            waiting: Vec::new(),
            attempts: HashMap::new(),
            serving: HashSet::new(),
        };
        // Either side is the smaller one in half of the runs.
        let ids = if seed % 2 == 0 { [7, 9] } else { [9, 7] };
        Self {
            ids,
            sides: ids.map(side),
            conns: Vec::new(),
            done: HashSet::new(),
            cuts: 0,
            closes_idle: false,
            faults: 0,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % below
    }

    fn start(&mut self, side: usize, request: u64) {
        let other = self.ids[1 - side];
        match self.sides[side].connections.link(other) {
            LinkState::Open(connection) => self.issue(side, connection, request),
            LinkState::Opening => self.sides[side].waiting.push(request),
            LinkState::None => {
                let mut to = [VecDeque::new(), VecDeque::new()];
                to[1 - side].push_back(ModelFrame::Hello);
                let ends = [ModelEnd::Before; 2];
                self.conns.push(Conn {
                    maker: side,
                    ends,
                    to,
                });
                let connection = ConnectionId(self.conns.len() as u64 - 1);
                self.sides[side].connections.begun(other, connection);
                self.sides[side].waiting.push(request);
            }
        }
    }

    /// Tries waiting requests again after a connection was opened or closed, as a service does.
    fn start_waiting(&mut self, side: usize) {
        for request in std::mem::take(&mut self.sides[side].waiting) {
            self.start(side, request);
        }
    }

    fn issue(&mut self, side: usize, connection: ConnectionId, request: u64) {
        let at = connection.0 as usize;
        self.sides[side].attempts.insert(request, at);
        assert!(self.conns[at].ends[side] == ModelEnd::Open || self.cuts > 0);
        self.send(at, 1 - side, ModelFrame::Fetch(request));
    }

    fn send(&mut self, at: usize, to: usize, frame: ModelFrame) {
        // A cut connection carries nothing more; its `Lost` is on its way to this end as well.
        if !self.conns[at].to[1 - to].contains(&ModelFrame::Lost) {
            self.conns[at].to[to].push_back(frame);
        }
    }

    fn close(&mut self, side: usize, connection: ConnectionId) {
        let at = connection.0 as usize;
        self.conns[at].ends[side] = ModelEnd::Closed;
        self.send(at, 1 - side, ModelFrame::Goodbye);
    }

    /// Hands the oldest frame to the end it goes to.
    fn deliver(&mut self, at: usize, side: usize) {
        let Some(frame) = self.conns[at].to[side].pop_front() else {
            return;
        };
        let connection = ConnectionId(at as u64);
        if self.conns[at].ends[side] == ModelEnd::Closed {
            let lost = matches!(frame, ModelFrame::Fetch(_) | ModelFrame::Reply(_));
            let may_be_lost = self.cuts > 0 || self.closes_idle;
            assert!(!lost || may_be_lost, "{frame:?} came to a closed end");
            return;
        }
        match frame {
            ModelFrame::Hello => {
                self.conns[at].ends[side] = ModelEnd::Open;
                self.send(at, 1 - side, ModelFrame::Welcome);
                let connections = &mut self.sides[side].connections;
                if let Some(unneeded) = connections.accepted(self.ids[1 - side], connection) {
                    self.close(side, unneeded);
                }
                self.start_waiting(side);
            }
            ModelFrame::Welcome => {
                self.conns[at].ends[side] = ModelEnd::Open;
                self.sides[side].connections.connected(connection);
                self.start_waiting(side);
            }
            ModelFrame::Fetch(id) => {
                self.sides[side].serving.insert((at, id));
            }
            ModelFrame::Reply(id) => {
                if self.sides[side].attempts.get(&id) == Some(&at) {
                    self.sides[side].attempts.remove(&id);
                    assert!(self.done.insert(id), "answered twice");
                }
            }
            ModelFrame::Goodbye | ModelFrame::Lost => self.closed(at, side),
        }
    }

    fn closed(&mut self, at: usize, side: usize) {
        let known = self.conns[at].maker == side || self.conns[at].ends[side] == ModelEnd::Open;
        self.conns[at].ends[side] = ModelEnd::Closed;
        let here = &mut self.sides[side];
        here.serving.retain(|(on, _)| *on != at);
        let under_way = here.attempts.iter().filter(|(_, on)| **on == at);
        let again: Vec<u64> = under_way.map(|(id, _)| *id).collect();
        here.attempts.retain(|_, on| *on != at);
        self.faults += again.len();
        let id = ConnectionId(at as u64);
        if here.connections.removed(id).is_some() {
            assert!(known);
            self.start_waiting(side);
        }
        again.into_iter().for_each(|id| self.start(side, id));
    }

    /// Closes those of the connections that no request uses.
    fn close_unused(&mut self, side: usize, connections: Vec<ConnectionId>) {
        for id in connections {
            let (at, here) = (id.0 as usize, &self.sides[side]);
            let used = here.attempts.values().any(|on| *on == at)
                || here.serving.iter().any(|(on, _)| *on == at);
            if !used {
                self.sides[side].connections.removed(id);
                self.close(side, id);
            }
        }
    }

    fn tidy(&mut self, side: usize) {
        let surplus = self.sides[side].connections.surplus();
        self.close_unused(side, surplus);
    }

    /// Closes the open connections that this side made, as after the idle time.
    fn close_idle(&mut self, side: usize) {
        let mut all = self.sides[side].connections.all();
        all.retain(|id| {
            let conn = &self.conns[id.0 as usize];
            conn.maker == side && conn.ends[side] == ModelEnd::Open
        });
        self.close_unused(side, all);
    }

    fn serve(&mut self, side: usize) {
        if let Some((at, id)) = self.sides[side].serving.iter().min().copied() {
            self.sides[side].serving.remove(&(at, id));
            self.send(at, 1 - side, ModelFrame::Reply(id));
        }
    }

    /// Drops the network's connection; each end learns of it in its own time.
    fn cut(&mut self, at: usize) {
        self.cuts += 1;
        for to in &mut self.conns[at].to {
            to.clear();
            to.push_back(ModelFrame::Lost);
        }
    }

    fn anything(&mut self) {
        let side = self.random(2);
        match self.random(8) {
            0 => self.tidy(side),
            1 => self.serve(side),
            2 if self.closes_idle => self.close_idle(side),
            _ if self.conns.is_empty() => {}
            _ => {
                let at = self.random(self.conns.len());
                self.deliver(at, side);
            }
        }
    }

    fn run(&mut self, requests: u64, cuts: usize) {
        let mut next = 0;
        while next < requests {
            if self.random(6) == 0 {
                let side = self.random(2);
                self.start(side, next);
                next += 1;
            }
            if self.cuts < cuts && !self.conns.is_empty() && self.random(40) == 0 {
                let at = self.random(self.conns.len());
                self.cut(at);
            }
            self.anything();
        }
        // Everything that is on its way arrives.
        for _ in 0..40 {
            for side in [0, 1] {
                for at in 0..self.conns.len() {
                    (0..=requests).for_each(|_| self.deliver(at, side));
                }
                (0..requests).for_each(|_| self.serve(side));
                self.tidy(side);
            }
        }
        assert_eq!(
            self.done.len() as u64,
            requests,
            "every request is answered"
        );
        let [one, two] = [0, 1].map(|side: usize| self.sides[side].connections.all());
        assert_eq!(one, two, "both ends know the same connections");
        assert!(one.len() <= 1, "{one:?} are left");
    }
}

#[test]
fn whatever_crosses_no_request_sees_a_fault_and_one_connection_is_left() {
    let (mut crossed, mut more) = (0, 0);
    for seed in 1..=5_000 {
        let mut world = ConnectionsModel::new(seed);
        world.run(6, 0);
        assert_eq!(world.faults, 0, "seed {seed}");
        assert_eq!(world.sides.each_ref().map(|s| s.connections.len()), [1, 1]);
        crossed += usize::from(world.conns.len() == 2);
        more += usize::from(world.conns.len() > 2);
    }
    assert!(
        crossed > 500,
        "the case of interest was met {crossed} times"
    );
    assert_eq!(more, 0, "never more than one each");
}

#[test]
fn after_losses_too_every_request_is_answered_and_one_connection_is_left() {
    for seed in 1..=5_000 {
        let mut world = ConnectionsModel::new(seed);
        world.run(8, 3);
    }
}

#[test]
fn after_idle_connections_were_closed_every_request_is_answered_and_one_is_left() {
    let mut faults = 0;
    for seed in 1..=5_000 {
        let mut world = ConnectionsModel::new(seed);
        world.closes_idle = true;
        world.run(8, 0);
        faults += world.faults;
    }
    assert!(faults > 100, "requests crossed a close {faults} times");
}
