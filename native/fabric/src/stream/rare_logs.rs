//! The lines of the log that strangers can cause, one of each kind in a minute.

use crate::rare_log::RareLog;

/// Of a reactor, by what a connection met before it was one.
#[derive(Debug, Default)]
pub(crate) struct RareLogs {
    /// The listener refused it.
    pub(crate) refused: RareLog,
    /// The kernel did not hand it over.
    pub(crate) not_accepted: RareLog,
    /// epoll did not take it.
    pub(crate) not_watched: RareLog,
}
