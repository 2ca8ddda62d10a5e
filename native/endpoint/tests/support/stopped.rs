//! Peers that ask for much and then stop: they take no more bytes, and their connection stays open, as in a long pause
//! of a JVM.
#![allow(clippy::unwrap_used)] // Test code; clippy allows it only inside test functions.

use crate::by_hand::fabric_by_hand;
use faro_endpoint::FabricChoice;
use faro_fabric::{
    ConnectionId, Event, Exposure, Fabric, Identity, Message, OwnIdentity, RemoteRange,
};
use faro_pool::{Pool, Purpose, PAGE_BYTES, SLAB_BYTES};
use faro_secure::Protection;
use faro_sync::clock;
use faro_wire::message::{Fetch, MoreBuffers, RemoteBuffer};
use faro_wire::{kind, BlockId, Card};
use std::time::Duration;

#[allow(dead_code)] // The benchmark uses its own part.
pub struct StoppedPeer {
    fabric: Box<dyn Fabric>,
    connection: ConnectionId,
    /// A page that the server may write, offered again and again: this peer looks at no byte.
    page: RemoteRange,
}

#[allow(dead_code)] // See above.
impl StoppedPeer {
    /// Connects to the endpoint of that card. `number` tells peers from each other. `meanwhile` lets the endpoint run, if
    /// it does not by itself.
    pub fn connect(
        choice: FabricChoice,
        number: u128,
        card: &[u8],
        mut meanwhile: impl FnMut(),
    ) -> Self {
        let card = Card::decode(card).unwrap();
        let pool = Pool::new(2 * SLAB_BYTES as u64).unwrap();
        let identity = OwnIdentity::public(0xfa50_0000_0000_0000 + number);
        let page = pool.try_lease(PAGE_BYTES, Purpose::Read).unwrap();
        let (scheme, mut fabric) = fabric_by_hand(choice, identity, Protection::Clear, pool);
        let address = card.addresses.iter().find(|a| a.scheme == scheme).unwrap();
        // No machine is so slow.
        let deadline = clock::now() + Duration::from_secs(3_600);
        let peer = Identity::new(card.endpoint, &card.secret, None, "").unwrap();
        let connection = fabric.connect(&address.location, &peer, deadline).unwrap();
        let mut events = Vec::new();
        while !events.iter().any(|e| matches!(e, Event::Connected { .. })) {
            for event in &events {
                if let Event::Closed { reason, .. } = event {
                    panic!("it does not open: {reason}");
                }
            }
            meanwhile();
            fabric.poll(&mut events, Duration::from_millis(1)).unwrap();
        }
        let exposed = fabric.expose(connection, Exposure::Writable(page));
        let page = exposed.unwrap_or_else(|_| panic!("a page cannot be exposed"));
        Self {
            fabric,
            connection,
            page,
        }
    }

    fn buffers(&self, count: usize) -> Vec<RemoteBuffer> {
        let buffer = RemoteBuffer {
            key: self.page.key.into(),
            offset: self.page.offset.into(),
            length: self.page.length.into(),
            reserved: 0.into(),
        };
        vec![buffer; count]
    }

    /// Asks for blocks, with pages for `pages` pages of them.
    pub fn ask(&mut self, id: u64, blocks: &[BlockId], pages: usize, deadline_ms: u32) {
        let fetch = Fetch {
            deadline_ms,
            writes_only: true,
            reader_verifies: false,
            buffers: self.buffers(pages),
            blocks: blocks.to_vec(),
        };
        self.send(kind::FETCH, id, fetch.encode());
    }

    /// Offers pages.
    pub fn offer(&mut self, id: u64, pages: usize) {
        let more = MoreBuffers {
            buffers: self.buffers(pages),
        };
        self.send(kind::MORE_BUFFERS, id, more.encode());
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: u64) {
        self.send(kind::CANCEL, id, Vec::new());
    }

    /// Hands the fabric what it has not sent yet. A device takes a message at a time and tells when it has gone, so that
    /// this takes what the server sends meanwhile.
    pub fn send_on(&mut self) {
        let mut events = Vec::new();
        self.fabric.poll(&mut events, Duration::ZERO).unwrap();
    }

    /// Sends without taking anything.
    fn send(&mut self, kind: u8, id: u64, body: Vec<u8>) {
        let message = Message { kind, id, body };
        // A connection that the server has closed takes nothing.
        let _ = self.fabric.send(self.connection, message);
        self.fabric.flush();
    }
}
