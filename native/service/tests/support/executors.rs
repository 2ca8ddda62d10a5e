//! Executors that register with a host's service and hand outputs over, and readers of other hosts.
#![allow(clippy::unwrap_used, dead_code)] // Test code; each file of tests uses some.

use crate::host::{id, Host};
use crate::support::{block, config, fetch, write_output, TIMEOUT};
use faro_endpoint::{Endpoint, FabricChoice};
use faro_service::{Client, ClientError, Hello, Options, Token};
use std::fs;
use std::sync::Arc;

impl Host {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::small(tempfile::tempdir().unwrap(), change)
    }

    pub fn again(dir: tempfile::TempDir) -> Self {
        Self::small(dir, |_| {})
    }

    /// A quota of 1 MiB, which tests fill.
    pub fn small(dir: tempfile::TempDir, change: impl FnOnce(&mut Options)) -> Self {
        Self::at(dir, |options| {
            options.quota = 1 << 20;
            change(options);
        })
    }

    pub fn client(&self, application: u8) -> Result<Client, ClientError> {
        let socket = self.dir.path().join("socket");
        Client::connect(&socket, hello(application), TIMEOUT)
    }

    /// An executor that wrote an output of two partitions, handed it over, and whose files are gone.
    pub fn handed(&self, client: &Client, map: i64, text: &str) -> Result<(), ClientError> {
        let spark = tempfile::tempdir_in(self.dir.path()).unwrap();
        let files = write_output(spark.path(), id(map), &[text.into(), b"rest".to_vec()]);
        client.hand_over(id(map), &files.index, &files.data)
    }

    pub fn kept_names(&self) -> usize {
        let applications = fs::read_dir(self.dir.path().join("data/applications")).unwrap();
        let all = applications.map(|one| fs::read_dir(one.unwrap().path()).unwrap().count());
        all.sum()
    }
}

pub fn hello(application: u8) -> Hello {
    Hello {
        application: format!("app-{application}"),
        executor: "1".to_owned(),
        sealed: false,
        token: Token::new([application; 32]),
        secret: Default::default(),
    }
}

/// An executor of that application on another host.
pub fn reader(application: u8) -> Arc<Endpoint> {
    let mut config = config("reader", FabricChoice::Tcp);
    config.security.application = format!("app-{application}");
    Endpoint::start(config).unwrap()
}

pub fn read(reader: &Endpoint, card: &[u8], map: i64) -> Vec<(u32, Vec<u8>)> {
    let peer = reader.add_peer(card).unwrap();
    fetch(reader, peer, &[block(1, map, 0, 1), block(1, map, 1, 2)]).blocks
}
