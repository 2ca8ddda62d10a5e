//! The collectives of one progress thread: what members here send, and what arrives for them.
//!
//! No function here waits or computes. A `CLEAR_TO_SEND` takes the best connection, as a `FETCH`
//! does; what answers it takes the same one.

use super::dispatch::{CollectiveCommand, Dispatch};
use super::joins::Joins;
use super::members::{unknown_member, MemberEvent, MemberTable, ReplyPath};
use super::pending::{PendingKind, PendingSend, PostedWrite};
use super::receives::PostedReceives;
use crate::counters::EndpointCounters;
use crate::limits::CONNECT_TIMEOUT;
use crate::net::{
    ClosedConnection, LinkState, MessageSource, Net, ProgressService, Route, UNTRACKED,
};
use crossbeam_channel::Receiver;
use faro_fabric::{CloseReason, ConnectionId, EndpointId, Write, WriteSource};
use faro_sync::HashMap;
use faro_wire::message::{Abort, ClearToSend, DataReady, Join, ToMember};
use faro_wire::WireError;
use std::sync::Arc;

/// Number of times that a JOIN is repeated because its connection ended, before its member counts as
/// lost.
const MAX_JOINS: u8 = 5;

/// Carries the parts of all teams of one progress thread.
pub(crate) struct CollectiveService {
    dispatch: Arc<Dispatch>,
    commands: Receiver<CollectiveCommand>,
    counters: Arc<EndpointCounters>,
    /// Sends that wait for a connection to open, each with the route that was chosen for it.
    waiting: HashMap<EndpointId, Vec<(PendingSend, Route)>>,
    receives: PostedReceives,
    joins: Joins,
    unsent: UnsentChunks,
}

impl CollectiveService {
    pub(crate) fn new(
        dispatch: Arc<Dispatch>,
        commands: Receiver<CollectiveCommand>,
        counters: Arc<EndpointCounters>,
    ) -> Self {
        Self {
            dispatch,
            commands,
            counters,
            waiting: HashMap::default(),
            receives: PostedReceives::default(),
            joins: Joins::default(),
            unsent: UnsentChunks::default(),
        }
    }

    fn members(&self) -> &MemberTable {
        &self.dispatch.members
    }

    fn start(&mut self, net: &mut Net, pending: PendingSend, route: Route) {
        match net.open_to(&route, CONNECT_TIMEOUT) {
            LinkState::Open(connection) => self.issue(net, connection, pending),
            LinkState::Opening => {
                let waiting = self.waiting.entry(route.peer.endpoint).or_default();
                waiting.push((pending, route));
            }
            LinkState::None => self.dispatch.resend(pending),
        }
    }

    fn issue(&mut self, net: &mut Net, connection: ConnectionId, pending: PendingSend) {
        // The member may have ended while this waited; then its leases would never be revoked.
        if !pending.outlives_its_member() && self.members().find(pending.member).is_err() {
            return;
        }
        let (member, to) = (pending.member, pending.to);
        match pending.what {
            PendingKind::Join { join, tries } => {
                let again = PendingSend {
                    what: PendingKind::Join { join, tries },
                    ..pending
                };
                self.joins.sent(connection, again);
                net.send(connection, to.member, ToMember::Join(join));
            }
            PendingKind::ClearToSend { head, leases } => {
                let rank = to.rank;
                let place = (member, rank);
                let posted = self.receives.post(net, connection, place, &head, leases);
                let Some(buffers) = posted else {
                    let detail = "no memory can be exposed to it".to_owned();
                    let lost = MemberEvent::Lost { rank, detail };
                    return self.members().tell(member, lost);
                };
                let head = *head;
                let clear = ClearToSend { head, buffers };
                net.send(connection, to.member, ToMember::ClearToSend(clear));
            }
        }
    }

    fn write(&mut self, net: &mut Net, posted: PostedWrite) {
        let connection = posted.connection;
        self.unsent.sent(connection, posted.member);
        let write = Write {
            // A write that is lost shows in its receiver.
            token: UNTRACKED,
            source: WriteSource::part(posted.source, 0, posted.target.length as usize),
            target: posted.target,
            immediate: None,
            last: true,
        };
        net.write(connection, write);
        net.send(connection, posted.to, ToMember::DataReady(posted.ready));
    }

    /// Handles the end of a member of this endpoint.
    fn leave(&mut self, net: &mut Net, member: u64, abort: &Abort) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|(p, _)| p.member != member || p.outlives_its_member());
            !waiting.is_empty()
        });
        self.unsent.leave(member);
        self.receives.leave(net, member);
        for (connection, other) in self.joins.leave(member) {
            net.send(connection, other, ToMember::Abort(abort.clone()));
        }
    }

    /// Sends a JOIN again, which finds out whether the member still exists.
    fn join_again(&self, mut pending: PendingSend, reason: &CloseReason) {
        if let PendingKind::Join { tries, .. } = &mut pending.what {
            *tries += 1;
            if *tries > MAX_JOINS {
                return self.members().lost(&pending, reason.to_string());
            }
        }
        self.dispatch.resend(pending);
    }

    /// Delivers an event to a member. Returns false if the member has ended; its partners learn
    /// that by its ABORT.
    fn deliver(&self, member: u64, event: MemberEvent) -> Result<bool, WireError> {
        let Ok(mailbox) = self.members().find(member) else {
            self.counters.late_messages.add(1);
            return Ok(false);
        };
        if mailbox.is_full() {
            return Err(WireError::BadValue {
                what: "messages that wait for member",
                got: member,
            });
        }
        mailbox.push(event);
        Ok(true)
    }

    fn joined(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        member: u64,
        join: Join,
    ) -> Result<(), WireError> {
        let other = join.from_member.get();
        match self.members().find(member) {
            Ok(_) => {
                self.joins.accept(connection, member, other)?;
                self.deliver(member, MemberEvent::Joined(join)).map(drop)
            }
            Err(abort) => {
                let abort = abort.unwrap_or_else(|| unknown_member(join.to_rank.get()));
                net.send(connection, other, ToMember::Abort(abort));
                Ok(())
            }
        }
    }

    fn ready(
        &mut self,
        net: &mut Net,
        connection: ConnectionId,
        member: u64,
        ready: &DataReady,
    ) -> Result<(), WireError> {
        let Ok(mailbox) = self.members().find(member) else {
            self.counters.late_messages.add(1);
            return Ok(());
        };
        for buffer in &ready.buffers {
            let lease = self.receives.take(net, connection, member, ready, buffer)?;
            mailbox.push(MemberEvent::Arrived {
                rank: ready.from_rank,
                buffer: *buffer,
                lease,
            });
        }
        Ok(())
    }
}

impl ProgressService for CollectiveService {
    type Message = ToMember;

    fn on_message(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        member: u64,
        message: ToMember,
    ) -> Result<(), WireError> {
        let connection = source.connection;
        match message {
            ToMember::Join(join) => self.joined(net, connection, member, join),
            ToMember::ClearToSend(clear) => {
                let chunks = clear.head.buffers.get();
                let reply = ReplyPath {
                    fabric: net.kind(),
                    connection,
                };
                if self.deliver(member, MemberEvent::Cleared(reply, clear))? && chunks > 0 {
                    self.unsent.cleared(connection, member, chunks);
                }
                Ok(())
            }
            ToMember::DataReady(ready) => self.ready(net, connection, member, &ready),
            ToMember::Abort(abort) => self.deliver(member, MemberEvent::Aborted(abort)).map(drop),
        }
    }

    fn on_commands(&mut self, net: &mut Net) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                CollectiveCommand::Send(pending, route) => self.start(net, pending, route),
                CollectiveCommand::Write(posted) => self.write(net, posted),
                CollectiveCommand::Leave(member, abort) => self.leave(net, member, &abort),
            }
        }
    }

    fn on_open(&mut self, net: &mut Net, endpoint: EndpointId) {
        for (pending, route) in self.waiting.remove(&endpoint).unwrap_or_default() {
            self.start(net, pending, route);
        }
    }

    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>) {
        let (gone, reason) = (closed.connection, closed.reason);
        self.unsent.lose(gone);
        let members = &self.dispatch.members;
        self.receives.lose(net, gone, |member, rank| {
            let detail = reason.to_string();
            members.tell(member, MemberEvent::Lost { rank, detail });
        });
        for pending in self.joins.lose(gone) {
            self.join_again(pending, reason);
        }
        let Some(endpoint) = closed.endpoint else {
            return;
        };
        match net.link(endpoint) {
            LinkState::Opening => {}
            LinkState::Open(_) => self.on_open(net, endpoint),
            LinkState::None => {
                for (pending, _) in self.waiting.remove(&endpoint).unwrap_or_default() {
                    self.dispatch.resend(pending);
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        // The service has no deadlines of its own: its callers have them.
        true
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        self.receives.use_connection(connection) || self.unsent.use_connection(connection)
    }

    /// Returns whether this endpoint has members. A round is not repeated after a loss, so no
    /// connection is closed while a team may be about to use it.
    fn keeps(&self, _connection: ConnectionId) -> bool {
        self.members().has_any()
    }

    fn close(&mut self, _net: &mut Net) {
        // The callers hear of it by their mailboxes, from `MemberTable::close`.
        while self.commands.try_recv().is_ok() {}
    }

    fn redirect_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                CollectiveCommand::Send(pending, _) => self.dispatch.resend(pending),
                // Its receiver has lost the connection, and says so.
                CollectiveCommand::Write(_) | CollectiveCommand::Leave(..) => {}
            }
        }
    }
}

/// Chunks that members here were cleared to send and have not sent: their number, by connection and
/// member. None is 0.
#[derive(Default)]
struct UnsentChunks(HashMap<(ConnectionId, u64), u32>);

impl UnsentChunks {
    /// Notes that a member was cleared to send `chunks` chunks, at least one.
    fn cleared(&mut self, connection: ConnectionId, member: u64, chunks: u32) {
        *self.0.entry((connection, member)).or_default() += chunks;
    }

    /// Notes that a member has sent a chunk.
    fn sent(&mut self, connection: ConnectionId, member: u64) {
        if let Some(unsent) = self.0.get_mut(&(connection, member)) {
            *unsent = unsent.saturating_sub(1);
            if *unsent == 0 {
                self.0.remove(&(connection, member));
            }
        }
    }

    /// Forgets a member that leaves.
    fn leave(&mut self, member: u64) {
        self.0.retain(|(_, own), _| *own != member);
    }

    /// Forgets a connection that has ended.
    fn lose(&mut self, connection: ConnectionId) {
        self.0.retain(|(at, _), _| *at != connection);
    }

    /// Returns whether chunks are to be sent on a connection.
    fn use_connection(&self, connection: ConnectionId) -> bool {
        self.0.keys().any(|(at, _)| *at == connection)
    }
}
