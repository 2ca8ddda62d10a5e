//! Chunks that members here were cleared to send and have not sent.

use faro_fabric::ConnectionId;
use faro_sync::HashMap;

/// Number of chunks, by connection and member. None of them is 0.
#[derive(Default)]
pub(super) struct OwedChunks(HashMap<(ConnectionId, u64), u32>);

impl OwedChunks {
    /// Notes that a member was cleared to send `chunks` chunks, at least one.
    pub(super) fn cleared(&mut self, connection: ConnectionId, member: u64, chunks: u32) {
        *self.0.entry((connection, member)).or_default() += chunks;
    }

    /// Notes that a member has sent a chunk.
    pub(super) fn sent(&mut self, connection: ConnectionId, member: u64) {
        if let Some(owed) = self.0.get_mut(&(connection, member)) {
            *owed = owed.saturating_sub(1);
            if *owed == 0 {
                self.0.remove(&(connection, member));
            }
        }
    }

    /// Forgets a member that leaves.
    pub(super) fn leave(&mut self, member: u64) {
        self.0.retain(|(_, own), _| *own != member);
    }

    /// Forgets a connection that has ended.
    pub(super) fn lose(&mut self, connection: ConnectionId) {
        self.0.retain(|(at, _), _| *at != connection);
    }

    /// Returns whether chunks are to be sent on a connection.
    pub(super) fn use_connection(&self, connection: ConnectionId) -> bool {
        self.0.keys().any(|(at, _)| *at == connection)
    }
}
