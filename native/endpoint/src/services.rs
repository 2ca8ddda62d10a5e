//! The services that one progress thread drives.

use crate::collective::CollectiveService;
use crate::command::CommandService;
use crate::fetch::FetchService;
use crate::net::ProgressService;
use crate::serve::ServeService;
use faro_fabric::ConnectionId;

/// The services of one progress thread.
pub(crate) struct Services {
    pub(crate) fetch: FetchService,
    pub(crate) serve: ServeService,
    pub(crate) collective: CollectiveService,
    pub(crate) command: CommandService,
}

impl Services {
    pub(crate) fn all(&mut self) -> [&mut dyn ProgressService; 4] {
        [
            &mut self.fetch,
            &mut self.serve,
            &mut self.collective,
            &mut self.command,
        ]
    }

    pub(crate) fn use_connection(&self, connection: ConnectionId) -> bool {
        self.fetch.uses(connection)
            || self.serve.uses(connection)
            || self.collective.uses(connection)
            || self.command.uses(connection)
    }

    pub(crate) fn keep_connection(&self, connection: ConnectionId) -> bool {
        self.fetch.keeps(connection)
            || self.serve.keeps(connection)
            || self.collective.keeps(connection)
            || self.command.keeps(connection)
    }
}
