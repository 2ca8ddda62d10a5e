//! The flows of a run: their bytes in progress and their permits.

use std::collections::HashMap;

/// The bytes that one server sends to one client.
pub struct Flow {
    pub client: u16,
    pub server: u16,
    /// Bytes requested and not yet sent.
    pub unsent: u64,
    /// Bytes in the network, or lost and waiting for the timeout; at most one window.
    pub sent: u32,
    /// Largest next send: one packet after a loss, doubled by each send that arrives.
    pub window: u32,
    /// Requests on their way to the server.
    pub coming: u32,
    /// The server has given it a permit; otherwise it waits for one.
    pub served: bool,
}

/// All flows, by number.
pub struct Flows {
    endpoints: usize,
    /// Open flows, and closed ones whose slots are in `free`.
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Open flows of pairs that take several requests, by client · N + server.
    several: HashMap<usize, u32>,
    /// One bit for client · N + server: the flow has a permit.
    served: Vec<u64>,
}

impl Flows {
    /// Returns an empty set for `endpoints` endpoints.
    pub fn new(endpoints: usize) -> Self {
        Self {
            endpoints,
            flows: Vec::new(),
            free: Vec::new(),
            several: HashMap::new(),
            served: vec![0; (endpoints * endpoints).div_ceil(64)],
        }
    }

    pub fn get(&mut self, flow: u32) -> &mut Flow {
        &mut self.flows[flow as usize]
    }

    /// Returns the open flow of a pair that takes several requests.
    pub fn of_several(&self, client: usize, server: usize) -> Option<u32> {
        self.several.get(&self.pair(client, server)).copied()
    }

    /// Opens a flow without bytes. `several`: its pair takes several requests.
    pub fn open(&mut self, client: usize, server: usize, window: u32, several: bool) -> u32 {
        let flow = Flow {
            client: client as u16,
            server: server as u16,
            unsent: 0,
            sent: 0,
            window,
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
        if several {
            self.several.insert(self.pair(client, server), slot);
        }
        slot
    }

    /// Gives a flow its permit. Returns its client and its server.
    pub fn serve(&mut self, flow: u32) -> (usize, usize) {
        let f = self.get(flow);
        f.served = true;
        let (client, server) = (usize::from(f.client), usize::from(f.server));
        self.set_served(client, server, true);
        (client, server)
    }

    /// Closes a flow, which then has no permit. Returns its client and its server.
    pub fn close(&mut self, flow: u32) -> (usize, usize) {
        let f = self.get(flow);
        f.served = false;
        let (client, server) = (usize::from(f.client), usize::from(f.server));
        self.set_served(client, server, false);
        if !self.several.is_empty() {
            self.several.remove(&self.pair(client, server));
        }
        self.free.push(flow);
        (client, server)
    }

    /// Returns whether `server` serves `client` now.
    pub fn is_served(&self, client: usize, server: usize) -> bool {
        let pair = self.pair(client, server);
        self.served[pair / 64] >> (pair % 64) & 1 == 1
    }

    fn set_served(&mut self, client: usize, server: usize, served: bool) {
        let pair = self.pair(client, server);
        let bit = 1 << (pair % 64);
        match served {
            true => self.served[pair / 64] |= bit,
            false => self.served[pair / 64] &= !bit,
        }
    }

    fn pair(&self, client: usize, server: usize) -> usize {
        client * self.endpoints + server
    }
}
