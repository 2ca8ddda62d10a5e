//! The names and codes of fabrics, as cards, counters, records and logs have them.

use faro_fabric::FabricKind;
use faro_wire::codes::FabricCode;

/// The fabric's code in records and counters.
pub(crate) fn fabric_code(kind: FabricKind) -> FabricCode {
    match kind {
        FabricKind::Tcp => FabricCode::Tcp,
        FabricKind::Shm => FabricCode::Shm,
        FabricKind::Verbs => FabricCode::Verbs,
    }
}

/// The fabric's name in cards, counters and logs.
pub(crate) fn fabric_name(kind: FabricKind) -> &'static str {
    match kind {
        FabricKind::Tcp => "tcp",
        FabricKind::Shm => "shm",
        FabricKind::Verbs => "verbs",
    }
}
