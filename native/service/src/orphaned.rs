//! What an application has left here when the service before this one ended.

use crate::disk::Disk;
use crate::record::Record;
use crate::store::Store;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// The outputs of an application that a service before this one has left.
pub(crate) struct OrphanedOutputs {
    pub(crate) record: Record,
    pub(crate) store: Arc<Store>,
    /// Looks at them, and removes them.
    pub(crate) disk: Arc<Disk>,
    /// When they were found.
    pub(crate) since: Instant,
}

/// The reason that what an application has left is not served.
#[derive(Debug, Error)]
pub(crate) enum OrphanError {
    /// It stays: the system says no more than that it cannot be looked at now.
    #[error("it cannot be read now: {0}")]
    Unread(#[from] io::Error),
    #[error("its record is damaged")]
    Damaged,
    #[error("it is of an earlier boot of this machine")]
    EarlierBoot,
}
