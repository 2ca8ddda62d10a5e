//! Which versions of a protocol two sides have in common.
//!
//! Each side of a connection names the oldest and the newest version that it speaks, and both speak the newest that they share.
//! A build speaks its own version and the one before, so that neighbouring releases work together: hosts are upgraded one after
//! the other. What may change between two versions: docs/design/how-to-add.md.

use std::fmt;
use thiserror::Error;

/// The versions of a protocol that one side speaks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The oldest one.
    pub oldest: u16,
    /// The newest one.
    pub newest: u16,
}

impl VersionRange {
    /// Returns the range from `oldest` to `newest`.
    #[must_use]
    pub const fn new(oldest: u16, newest: u16) -> Self {
        Self { oldest, newest }
    }

    /// Returns the range of this process, which says what a build speaks. With the feature `faults` it is that of the next
    /// release, one version further, where `FARO_FAULTS` has the word `newer`: both versions have this build's layouts.
    #[must_use]
    pub fn spoken(self) -> Self {
        #[cfg(feature = "faults")]
        if is_newer() {
            return Self::new(self.newest, self.newest + 1);
        }
        self
    }

    /// Returns whether `version` is one of them.
    #[must_use]
    pub const fn has(self, version: u16) -> bool {
        self.oldest <= version && version <= self.newest
    }

    /// Returns the newest version that both sides speak.
    ///
    /// ```
    /// use faro_wire::VersionRange;
    ///
    /// let (jar, daemon) = (VersionRange::new(4, 5), VersionRange::new(5, 6));
    /// assert_eq!(daemon.common(jar), Ok(5));
    /// let old = VersionRange::new(3, 4);
    /// assert!(daemon.common(old).unwrap_err().to_string().contains("upgrade the peer first"));
    /// ```
    ///
    /// # Errors
    /// `VersionGap`: they share no version.
    pub fn common(self, peer: Self) -> Result<u16, VersionGap> {
        let newest = self.newest.min(peer.newest);
        if newest >= self.oldest.max(peer.oldest) {
            Ok(newest)
        } else {
            Err(VersionGap { own: self, peer })
        }
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.newest {
            newest if newest == self.oldest => write!(f, "{newest}"),
            newest => write!(f, "{} to {newest}", self.oldest),
        }
    }
}

/// Two sides have no version in common. The text says which of them is the older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "protocol version {peer} is not supported, this side speaks {own}: upgrade {} first",
    if self.is_peer_older() { "the peer" } else { "this side" }
)]
pub struct VersionGap {
    /// The versions of this side.
    pub own: VersionRange,
    /// Those of the other one.
    pub peer: VersionRange,
}

impl VersionGap {
    /// Returns whether the other side is the older one.
    #[must_use]
    pub const fn is_peer_older(&self) -> bool {
        self.peer.newest < self.own.oldest
    }
}

#[cfg(feature = "faults")]
fn is_newer() -> bool {
    static NEWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *NEWER.get_or_init(|| {
        let plan = std::env::var("FARO_FAULTS").unwrap_or_default();
        plan.split(',').any(|word| word == "newer")
    })
}
