//! Tracks the pages that each peer may read.
//!
//! A page is exposed to a peer once and stays exposed while its contents change: the versions tell
//! the peer which bytes to accept, not the exposure. So nothing is exposed or revoked per request. An
//! exposed page cannot return to the arena; when the arena is short, those with the least used chunks are
//! revoked, a few at a time.

use super::offer::ResidentSlice;
use crate::limits::{MAX_EXPOSED, RECALLED_PAGES};
use crate::memory::Memory;
use crate::net::Net;
use faro_fabric::{ConnectionId, Exposure, RemoteRange};
use faro_pool::Lease;
use faro_sync::HashMap;
use faro_wire::message::{OfferedSlice, ReadOffer, RemoteBuffer};
use std::sync::Arc;

/// Pages that one peer may read.
#[derive(Default)]
struct PeerExposures {
    versions: Option<RemoteRange>,
    /// The exposed ranges by the address of the page (or mapping), which is kept as long as it is exposed.
    pages: HashMap<usize, RemoteRange>,
}

/// The exposed pages of one progress thread, by connection.
pub(super) struct ExposedPages {
    memory: Arc<Memory>,
    peers: HashMap<ConnectionId, PeerExposures>,
    /// The shortage of the arena for which pages were last revoked.
    shortage: u64,
    /// The recall of everything for which everything was last revoked.
    #[cfg(feature = "research")]
    recall: u64,
    /// The log has a line about a device that does not register what it is asked to.
    warned: bool,
}

impl ExposedPages {
    pub(super) fn new(memory: Arc<Memory>) -> Self {
        Self {
            peers: HashMap::default(),
            shortage: memory.shortages(),
            #[cfg(feature = "research")]
            recall: memory.recalls(),
            memory,
            warned: false,
        }
    }

    /// Exposes `slices` so that the peer can read them; returns `None` if not all of them can be
    /// exposed.
    pub(super) fn offer(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        slices: &[ResidentSlice],
    ) -> Option<ReadOffer> {
        let versions = self.memory.cache.versions()?;
        let to = self.peers.entry(connection).or_default();
        let versions = match to.versions {
            Some(range) => range,
            None => *to.versions.insert(expose(net, connection, versions)?),
        };
        let mut offered = Vec::with_capacity(slices.len());
        for slice in slices {
            #[cfg(feature = "research")]
            if slice.needs_device && !net.kind().is_by_device() {
                return None;
            }
            let address = slice.page.start().as_ptr() as usize;
            let range = match to.pages.get(&address) {
                Some(range) => *range,
                None if to.pages.len() >= MAX_EXPOSED => return None,
                None => {
                    if let Err(error) = net.register(&slice.page) {
                        if !std::mem::replace(&mut self.warned, true) {
                            log::warn!("map outputs go through the arena, as if unpinned: {error}");
                        }
                        return None;
                    }
                    let range = expose(net, connection, &slice.page)?;
                    to.pages.insert(address, range);
                    range
                }
            };
            offered.push(OfferedSlice {
                key: range.key.into(),
                offset: (range.offset + slice.offset).into(),
                length: slice.length.into(),
                slot: (slice.slot as u32).into(),
                version: slice.version.into(),
                crc: slice.crc.into(),
                reserved: 0.into(),
            });
        }
        Some(ReadOffer {
            versions: RemoteBuffer {
                key: versions.key.into(),
                offset: versions.offset.into(),
                length: versions.length.into(),
                reserved: 0.into(),
            },
            slices: offered,
        })
    }

    /// Revokes all that a peer may read.
    pub(super) fn revoke(&mut self, net: &mut Net, connection: ConnectionId) {
        let Some(to) = self.peers.remove(&connection) else {
            return;
        };
        for range in to.pages.into_values().chain(to.versions) {
            // If the result is `RevokeStatus::Later`, the fabric keeps the lease until no peer can reach
            // it.
            drop(net.revoke(range.key));
        }
    }

    /// Revokes what was recalled since the last call: pages with the least used chunks, if the arena is
    /// short.
    pub(super) fn recall(&mut self, net: &mut Net) {
        #[cfg(feature = "research")]
        if self.recall != self.memory.recalls() {
            self.recall = self.memory.recalls();
            self.revoke_all(net);
        }
        let shortages = self.memory.shortages();
        if shortages != self.shortage {
            self.shortage = shortages;
            let pages = self.memory.cache.shown_pages(RECALLED_PAGES);
            self.revoke_pages(net, &pages);
        }
    }

    /// Revokes everything. Posted reads end `Refused`, and their bytes are written instead.
    #[cfg(feature = "research")]
    fn revoke_all(&mut self, net: &mut Net) {
        for connection in self.peers.keys().copied().collect::<Vec<_>>() {
            self.revoke(net, connection);
        }
    }

    /// Revokes the pages at these addresses for all peers. Posted reads end `Refused`, and their
    /// bytes are written instead.
    fn revoke_pages(&mut self, net: &mut Net, addresses: &[usize]) {
        for to in self.peers.values_mut() {
            for address in addresses {
                if let Some(range) = to.pages.remove(address) {
                    drop(net.revoke(range.key));
                }
            }
        }
    }
}

fn expose(net: &mut Net, connection: ConnectionId, lease: &Arc<Lease>) -> Option<RemoteRange> {
    net.expose(connection, Exposure::Readable(Arc::clone(lease)))
}
