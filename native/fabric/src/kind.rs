//! The table of the fabrics: the properties that the rest of Faro needs without using a fabric.

use faro_wire::codes::FabricCode;

/// The fabrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FabricKind {
    /// TCP sockets.
    Tcp,
    /// Shared memory of one host.
    Shm,
    /// RDMA verbs.
    Verbs,
}

/// The properties of a fabric.
struct FabricProperties {
    /// The name in cards, counters and logs.
    name: &'static str,
    /// The code in records, which Java's `Fabric` has too.
    code: FabricCode,
    /// The letter in the prologue of a handshake, which is the same at both ends.
    tag: u8,
    /// Its bytes do not leave the host, so they are not sealed, and it reaches no other host.
    stays_on_host: bool,
    /// A device moves the payload, by addresses that the peer has announced.
    by_device: bool,
    /// The advice at the end of a warning that the fabric fails.
    remedy: &'static str,
}

impl FabricKind {
    /// All fabrics, in the order of [`Self::index`].
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Shm, Self::Verbs];

    /// All fabrics, in the order in which a pair of endpoints prefers them.
    pub const BEST_FIRST: [Self; 3] = [Self::Shm, Self::Verbs, Self::Tcp];

    const fn facts(self) -> FabricProperties {
        match self {
            Self::Tcp => FabricProperties {
                name: "tcp",
                code: FabricCode(1),
                tag: b't',
                stays_on_host: false,
                by_device: false,
                remedy: "look at the network between the hosts",
            },
            Self::Shm => FabricProperties {
                name: "shm",
                code: FabricCode(2),
                tag: b's',
                stays_on_host: true,
                by_device: false,
                remedy: "both processes have to run as the same user",
            },
            Self::Verbs => FabricProperties {
                name: "verbs",
                code: FabricCode(3),
                tag: b'v',
                stays_on_host: false,
                by_device: true,
                remedy: "look at the link and its counters on both hosts (`rdma link`, \
                         `rdma statistic`), or set spark.faro.fabric=tcp to use TCP only",
            },
        }
    }

    /// Returns the name in cards, counters and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the code in records.
    #[must_use]
    pub const fn code(self) -> FabricCode {
        self.facts().code
    }

    /// Returns the index in arrays that have one entry for each fabric.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns whether its bytes stay on the host, and it reaches no other host.
    #[must_use]
    pub const fn stays_on_host(self) -> bool {
        self.facts().stays_on_host
    }

    /// Returns whether a device moves the payload: a write ends when the peer's device has answered, and
    /// memory that a peer may write is revoked with its answer.
    #[must_use]
    pub const fn is_by_device(self) -> bool {
        self.facts().by_device
    }

    /// Returns the advice to a user if the fabric fails.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        self.facts().remedy
    }

    /// Returns the letter in the prologue of a handshake.
    pub(crate) const fn tag(self) -> u8 {
        self.facts().tag
    }
}

#[cfg(test)]
mod tests {
    use super::{FabricCode, FabricKind};

    #[test]
    fn each_has_its_place_name_and_tag() {
        for (place, kind) in FabricKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), place);
            assert_ne!(kind.code(), FabricCode::NONE);
            for other in &FabricKind::ALL[..place] {
                assert_ne!(kind.name(), other.name());
                assert_ne!(kind.code(), other.code());
                assert_ne!(kind.tag(), other.tag());
            }
        }
    }
}
