//! A member of a schedule: the same value at every endpoint.

/// An endpoint: its identity and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Unique among members and never used again for another endpoint. Ordered by UTF-8 bytes.
    pub id: String,
    /// Members of one host share a group if the plane has room.
    pub host: String,
    /// The same for racks, after hosts; empty if unknown.
    pub rack: String,
}

impl Member {
    pub fn new(id: impl Into<String>, host: impl Into<String>, rack: impl Into<String>) -> Self {
        Member {
            id: id.into(),
            host: host.into(),
            rack: rack.into(),
        }
    }
}
