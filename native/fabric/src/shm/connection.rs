//! State that the same-host fabric keeps for one connection, and the frames that fill it.

use super::directory::View;
use super::exported::{ExportedFiles, DIRECTORY};
use super::slabs::PeerMapping;
use crate::frame::bodies::{Layout, SlabReply, SlabRequest};
use crate::frame::outgoing::Frame;
use crate::session::context::Context;
use crate::{CloseReason, WriteSource};
use faro_wire::{kind, WireError};
use std::collections::{HashMap, HashSet, VecDeque};
use std::os::fd::OwnedFd;
use zerocopy::IntoBytes;

/// Slabs of one peer that are mapped: 64 GiB.
const MAX_SLABS: usize = 4_096;
/// Descriptors that came before the frames they belong to.
pub(super) const MAX_DESCRIPTORS: usize = 16;

/// A write that waits for its verdict.
pub(super) struct UnackedWrite {
    pub(super) sequence: u64,
    pub(super) token: u64,
    pub(super) bytes: usize,
    pub(super) source: WriteSource,
}

/// A read that waits for a mapping.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnmappedRead {
    pub(super) sequence: u64,
    pub(super) key: u64,
    pub(super) offset: u64,
}

/// State that this fabric keeps for one connection.
#[derive(Default)]
pub(crate) struct ShmPeer {
    /// The peer's slabs, mapped, by number.
    pub(super) slabs: HashMap<u32, PeerMapping>,
    /// The peer's directory, mapped.
    pub(super) directory: Option<View>,
    /// Slabs that the peer was asked for and has not sent.
    requested: HashSet<u32>,
    /// Slabs that the peer said it does not have.
    pub(super) missing: HashSet<u32>,
    /// This side's slabs that the peer was given.
    announced: HashSet<u32>,
    /// Descriptors whose SLAB_REPLY has not come.
    pub(super) descriptors: VecDeque<OwnedFd>,
    /// Writes without a verdict, oldest first.
    pub(super) unacked: VecDeque<UnackedWrite>,
    /// Reads that wait for a mapping, oldest first.
    pub(super) wanted: VecDeque<UnmappedRead>,
}

impl ShmPeer {
    /// Gives the peer one of this side's files, once.
    pub(super) fn announce(&mut self, cx: &mut Context<'_>, files: &ExportedFiles, slab: u32) {
        if !self.announced.insert(slab) {
            return;
        }
        let (bytes, file) = files.file(slab);
        let reply = SlabReply {
            slab: slab.into(),
            found: u32::from(file.is_some()).into(),
            bytes: bytes.into(),
        };
        cx.push(Frame::small(kind::SLAB_REPLY, 0, reply.as_bytes()).with_descriptor(file));
    }

    pub(super) fn on_slab_request(
        &mut self,
        cx: &mut Context<'_>,
        files: &ExportedFiles,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let slab = SlabRequest::decode(body)?.slab.get();
        // Each number is answered once, so this bounds what a peer can cause to be queued.
        if self.announced.len() > 2 * MAX_SLABS {
            return Err(CloseReason::Bound {
                what: "slabs requested",
                limit: 2 * MAX_SLABS as u64,
            });
        }
        self.announce(cx, files, slab);
        Ok(())
    }

    /// Handles the answer to a request for a file: the file, or that there is none. Reads that wait
    /// for it continue.
    pub(super) fn on_slab_reply(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        let reply = SlabReply::decode(body)?;
        let slab = reply.slab.get();
        let wrong = |what, got| Err(WireError::BadValue { what, got }.into());
        self.requested.remove(&slab);
        match reply.found.get() {
            0 => {
                if self.missing.len() >= MAX_SLABS {
                    return wrong("number of missing slabs", self.missing.len() as u64);
                }
                self.missing.insert(slab);
            }
            1 => {
                let Some(file) = self.descriptors.pop_front() else {
                    return wrong("SLAB_REPLY without a descriptor, slab", u64::from(slab));
                };
                if self.slabs.len() >= MAX_SLABS {
                    return Err(CloseReason::Bound {
                        what: "slabs mapped",
                        limit: MAX_SLABS as u64,
                    });
                }
                let mapping = PeerMapping::new(&file, reply.bytes.get())?;
                if slab == DIRECTORY {
                    let Some(view) = View::new(mapping) else {
                        return wrong("directory's length", reply.bytes.get());
                    };
                    if self.directory.replace(view).is_some() {
                        return wrong("second directory", u64::from(slab));
                    }
                } else if self.slabs.insert(slab, mapping).is_some() {
                    return wrong("slab that was given before", u64::from(slab));
                }
                cx.shared.counters.slabs_mapped += 1;
            }
            got => return wrong("SLAB_REPLY's found", u64::from(got)),
        }
        Ok(())
    }

    /// Asks for a file of the peer's, once.
    pub(super) fn request(&mut self, cx: &mut Context<'_>, slab: u32) {
        if self.requested.insert(slab) {
            let request = SlabRequest {
                slab: slab.into(),
                reserved: 0.into(),
            };
            cx.push(Frame::small(kind::SLAB_REQUEST, 0, request.as_bytes()));
        }
    }
}
