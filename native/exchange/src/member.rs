//! A member of a schedule, as every node knows it.

/// An endpoint: its identity and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Unique among members and never used again for another endpoint. Ordered by UTF-8 bytes.
    pub id: String,
    /// Members of one host share a group where the plane allows.
    pub host: String,
    /// Same for racks, after hosts; empty when unknown.
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
