//! The services that one progress thread drives.

use crate::collective::CollectiveService;
use crate::fetch::FetchService;
use crate::net::ProgressService;
use crate::serve::ServeService;
use faro_fabric::ConnectionId;

/// The services of one progress thread.
pub(crate) struct Services {
    pub(crate) fetch: FetchService,
    pub(crate) serve: ServeService,
    pub(crate) collective: CollectiveService,
}

impl Services {
    pub(crate) fn all(&mut self) -> [&mut dyn ProgressService; 3] {
        [&mut self.fetch, &mut self.serve, &mut self.collective]
    }

    pub(crate) fn use_connection(&self, connection: ConnectionId) -> bool {
        self.fetch.uses(connection)
            || self.serve.uses(connection)
            || self.collective.uses(connection)
    }

    pub(crate) fn keep_connection(&self, connection: ConnectionId) -> bool {
        self.fetch.keeps(connection)
            || self.serve.keeps(connection)
            || self.collective.keeps(connection)
    }
}
