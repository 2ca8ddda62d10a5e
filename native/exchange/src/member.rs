//! A member of a schedule. All endpoints have the same value for it.

/// An endpoint: its identity and where it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Unique among members and never used again for another endpoint. Ids are ordered by UTF-8
    /// bytes.
    pub id: String,
    /// The host. Members of one host share a group if the plane has room.
    pub host: String,
}

impl Member {
    pub fn new(id: impl Into<String>, host: impl Into<String>) -> Self {
        Member {
            id: id.into(),
            host: host.into(),
        }
    }
}
