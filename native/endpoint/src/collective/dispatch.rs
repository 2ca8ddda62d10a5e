//! Connects members, on their callers' threads, with the progress threads.

use super::error::CollectiveError;
use super::members::MemberTable;
use super::pending::{PendingSend, PostedWrite};
use crate::net::{Inbox, PeerTable, Route};
use faro_fabric::{EndpointId, FabricKind};
use faro_wire::message::Abort;
use faro_wire::Card;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A members' request to the [`CollectiveService`](super::CollectiveService) of a progress thread.
pub(crate) enum CollectiveCommand {
    Send(PendingSend, Route),
    Write(PostedWrite),
    /// A member is gone; its partners are sent this.
    Leave(u64, Abort),
}

/// The members of one endpoint and the way to its progress threads. Shared by all threads.
pub(crate) struct Dispatch {
    peers: Arc<PeerTable>,
    inboxes: Vec<(FabricKind, Inbox<CollectiveCommand>)>,
    pub(super) members: MemberTable,
    closing: AtomicBool,
}

impl Dispatch {
    pub(crate) fn new(
        peers: Arc<PeerTable>,
        inboxes: Vec<(FabricKind, Inbox<CollectiveCommand>)>,
    ) -> Self {
        Self {
            peers,
            inboxes,
            members: MemberTable::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Makes the endpoint on `card` known.
    ///
    /// # Errors
    /// `NoKey`.
    pub(super) fn add_peer(&self, card: &Card) -> Result<EndpointId, CollectiveError> {
        self.peers.add(card, &[]).map_err(CollectiveError::NoKey)?;
        Ok(card.endpoint)
    }

    /// Sends by the best route that is not in back-off.
    ///
    /// # Errors
    /// What was to be sent, and why it has no route.
    pub(super) fn send(&self, pending: PendingSend) -> Result<(), (PendingSend, String)> {
        if self.closing.load(Ordering::Acquire) {
            return Err((pending, "this endpoint is closing".to_owned()));
        }
        match self.peers.route_to(pending.to.endpoint) {
            Ok(route) => {
                self.command(route.fabric, CollectiveCommand::Send(pending, route));
                Ok(())
            }
            Err(why) => Err((pending, why)),
        }
    }

    /// Sends a message like `send`, but tells the member if there is no route.
    pub(super) fn resend(&self, pending: PendingSend) {
        if let Err((pending, why)) = self.send(pending) {
            self.members.lost(&pending, why);
        }
    }

    /// Writes by the connection that the partner's message came from.
    pub(super) fn write(&self, fabric: FabricKind, posted: PostedWrite) {
        self.command(fabric, CollectiveCommand::Write(posted));
    }

    /// Ends a member and tells all that joined it; once.
    pub(super) fn leave(&self, member: u64, abort: &Abort) {
        if self.members.leave(member, abort) {
            for (_, inbox) in &self.inboxes {
                inbox.send(CollectiveCommand::Leave(member, abort.clone()));
            }
        }
    }

    fn command(&self, fabric: FabricKind, command: CollectiveCommand) {
        if let Some((_, inbox)) = self.inboxes.iter().find(|(kind, _)| *kind == fabric) {
            inbox.send(command);
        }
    }

    /// Ends all members.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.members.close();
    }

    /// Returns the counters of all rounds.
    pub(crate) fn counters(&self) -> [(&'static str, u64); 3] {
        self.members.counters.list()
    }
}
