//! The codes of fabrics in records.

use faro_fabric::FabricKind;
use faro_wire::codes::FabricCode;

/// The fabric's code in records.
pub(crate) fn fabric_code(kind: FabricKind) -> FabricCode {
    match kind {
        FabricKind::Tcp => FabricCode::Tcp,
        FabricKind::Shm => FabricCode::Shm,
        FabricKind::Verbs => FabricCode::Verbs,
    }
}
