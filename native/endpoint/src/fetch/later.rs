//! Requests that are sent again at a certain time, at the latest.

use super::Request;
use std::collections::BTreeMap;
use std::time::Instant;

/// Requests by the time at which they are to be sent again.
#[derive(Default)]
pub(super) struct Later(BTreeMap<(Instant, u64), Request>);

impl Later {
    /// Sends it again at that time.
    pub(super) fn put(&mut self, at: Instant, request: Request) {
        self.0.insert((at, request.id), request);
    }

    /// Removes and returns the first one whose time has come.
    pub(super) fn due(&mut self, now: Instant) -> Option<Request> {
        let entry = self.0.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Removes and returns the caller's request of that id.
    pub(super) fn withdraw(&mut self, id: u64) -> Option<Request> {
        let at = *self.0.keys().find(|(_, request)| *request == id)?;
        self.0.remove(&at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns all.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Request> {
        std::mem::take(&mut self.0).into_values()
    }
}
