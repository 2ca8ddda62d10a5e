//! Which frames each peer may read.
//!
//! A frame is shown to a peer once and stays shown while its slot changes hands: what the peer may
//! believe is told by the versions, not by the exposure. So nothing is exposed or revoked per
//! request. A shown frame cannot go back to the arena; when the arena is short, all are taken back.

use super::locate::Place;
use crate::config::limits::MAX_SHOWN;
use faro_fabric::{ConnectionId, Exposure, Fabric, FabricKind, RemoteRange};
use faro_pool::Lease;
use faro_wire::message::{OfferedSlice, ReadOffer, RemoteBuffer};
use std::collections::HashMap;
use std::sync::Arc;

/// What one peer was shown.
#[derive(Default)]
struct ToPeer {
    versions: Option<RemoteRange>,
    /// By the address of the frame (or mapping), which is kept as long as it is shown.
    frames: HashMap<usize, RemoteRange>,
}

/// See the module's comment.
#[derive(Default)]
pub(super) struct Shown {
    peers: HashMap<ConnectionId, ToPeer>,
    /// That the device does not register what it is asked to.
    warned: bool,
}

impl Shown {
    /// `places` as the peer can read them; `None` if it cannot be shown so many.
    pub(super) fn show(
        &mut self,
        fabric: &mut dyn Fabric,
        peer: ConnectionId,
        versions: &Arc<Lease>,
        places: &[Place],
    ) -> Option<ReadOffer> {
        let to = self.peers.entry(peer).or_default();
        let versions = match to.versions {
            Some(range) => range,
            None => *to.versions.insert(expose(fabric, peer, versions)?),
        };
        let mut extents = Vec::with_capacity(places.len());
        for place in places {
            if place.verbs_only && fabric.kind() != FabricKind::Verbs {
                return None;
            }
            let name = place.frame.start().as_ptr() as usize;
            let range = match to.frames.get(&name) {
                Some(range) => *range,
                None if to.frames.len() >= MAX_SHOWN => return None,
                None => {
                    if let Some(error) = fabric.register(&place.frame).err() {
                        if !std::mem::replace(&mut self.warned, true) {
                            log::warn!("map outputs go through the arena, as if unpinned: {error}");
                        }
                        return None;
                    }
                    let range = expose(fabric, peer, &place.frame)?;
                    to.frames.insert(name, range);
                    range
                }
            };
            extents.push(OfferedSlice {
                key: range.key.into(),
                offset: (range.offset + place.offset).into(),
                length: place.length.into(),
                slot: (place.slot as u32).into(),
                version: place.version.into(),
                crc: place.crc.into(),
                reserved: 0.into(),
            });
        }
        let versions = RemoteBuffer {
            key: versions.key.into(),
            offset: versions.offset.into(),
            length: versions.length.into(),
            reserved: 0.into(),
        };
        Some(ReadOffer {
            versions,
            slices: extents,
        })
    }

    /// Takes everything back from a peer.
    pub(super) fn take_back(&mut self, fabric: &mut dyn Fabric, peer: ConnectionId) {
        let Some(to) = self.peers.remove(&peer) else {
            return;
        };
        for range in to.frames.into_values().chain(to.versions) {
            // `Later`: the fabric keeps the lease until the peer has let go of it.
            drop(fabric.revoke(range.key));
        }
    }

    /// Takes everything back from everybody; reads under way end `Refused` and are pushed.
    pub(super) fn take_all_back(&mut self, fabric: &mut dyn Fabric) {
        let peers: Vec<ConnectionId> = self.peers.keys().copied().collect();
        for peer in peers {
            self.take_back(fabric, peer);
        }
    }
}

fn expose(fabric: &mut dyn Fabric, peer: ConnectionId, lease: &Arc<Lease>) -> Option<RemoteRange> {
    fabric
        .expose(peer, Exposure::Readable(Arc::clone(lease)))
        .ok()
}
