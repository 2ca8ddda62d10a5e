//! Which members have joined each other: JOINs that were sent, and JOINs that came.

use super::pending::PendingSend;
use faro_exchange::MAX_MEMBERS;
use faro_fabric::ConnectionId;
use faro_sync::HashMap;
use faro_wire::WireError;

/// The JOINs of all members here.
#[derive(Default)]
pub(super) struct Joins {
    /// JOINs that were sent, by own and other member, and the connection that they took.
    sent: HashMap<(u64, u64), (ConnectionId, PendingSend)>,
    /// Members of peers that joined a member here: the connection, and their id.
    accepted: HashMap<u64, Vec<(ConnectionId, u64)>>,
}

impl Joins {
    /// Notes a JOIN that a connection took. It is sent again if that connection ends.
    pub(super) fn sent(&mut self, connection: ConnectionId, join: PendingSend) {
        let members = (join.member, join.to.member);
        self.sent.insert(members, (connection, join));
    }

    /// Notes that the member `other` of a peer has joined `member`.
    ///
    /// # Errors
    /// Returns `BadValue` if more members have joined than a team can have.
    pub(super) fn accept(
        &mut self,
        connection: ConnectionId,
        member: u64,
        other: u64,
    ) -> Result<(), WireError> {
        let accepted = self.accepted.entry(member).or_default();
        accepted.retain(|(_, known)| *known != other);
        if accepted.len() >= MAX_MEMBERS {
            let what = "member that joins beyond the largest team";
            return Err(WireError::BadValue { what, got: other });
        }
        accepted.push((connection, other));
        Ok(())
    }

    /// Forgets a member that leaves. Returns the members that have joined it, which must hear of it.
    pub(super) fn leave(&mut self, member: u64) -> Vec<(ConnectionId, u64)> {
        self.sent.retain(|(own, _), _| *own != member);
        self.accepted.remove(&member).unwrap_or_default()
    }

    /// Forgets a connection that has ended. Returns the JOINs that it took.
    pub(super) fn lose(&mut self, connection: ConnectionId) -> Vec<PendingSend> {
        for accepted in self.accepted.values_mut() {
            accepted.retain(|(at, _)| *at != connection);
        }
        let sent = self.sent.iter();
        let lost = sent.filter(|(_, (at, _))| *at == connection);
        let lost: Vec<_> = lost.map(|(members, _)| *members).collect();
        let joins = lost.iter().filter_map(|members| self.sent.remove(members));
        joins.map(|(_, join)| join).collect()
    }
}
