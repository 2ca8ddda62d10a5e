//! What the daemon is started with.

use faro_endpoint::FabricChoice;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The socket's name in its directory.
pub const SOCKET: &str = "faro-serve.sock";

/// Connections of executors of this host, of all applications.
pub const CONNECTIONS: usize = 1_024;

/// Whose executors are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Users {
    /// Of the daemon's own user.
    Own,
    /// Of these user ids.
    These(Vec<u32>),
    /// Of every user who may open the socket.
    Any,
}

/// `memory` for each map output that may be kept, in bytes. An output takes a tenth of it at most.
const MEMORY_OF_OUTPUT: u64 = 2 << 10;

impl Options {
    /// Bound of the bytes that all applications have in tables and requests.
    pub(crate) fn table_bytes(&self) -> u64 {
        self.memory / 2
    }

    /// Each application's part of them.
    pub(crate) fn table_bytes_of_each(&self) -> u64 {
        self.table_bytes() / self.applications.max(1) as u64
    }

    /// Most map outputs of all applications together.
    pub(crate) fn outputs(&self) -> usize {
        (self.memory / MEMORY_OF_OUTPUT) as usize
    }
}

/// What the daemon is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the socket is.
    pub socket_directory: PathBuf,
    /// Where links to map outputs are; on the file system of `spark.local.dir`, so that there can be some.
    pub data_directory: PathBuf,
    /// What the daemon listens on for readers.
    pub bind: IpAddr,
    /// What readers connect to.
    pub advertise: IpAddr,
    /// The TCP port for readers of all applications. 0: any.
    pub port: u16,
    pub fabric: FabricChoice,
    /// For blocks in transfer of all applications together, in bytes; at least 32 MiB for each. Half as much beside it
    /// is for tables and requests, in equal parts for each application that may come.
    pub memory: u64,
    /// Most connections of executors; of one user of several half.
    pub connections: usize,
    /// Most applications at a time.
    pub applications: usize,
    /// Most bytes of an application's outputs.
    pub quota: u64,
    /// After so long without an executor and without a reader an application's outputs go.
    pub idle: Duration,
    pub users: Users,
    /// Most bytes a second that are copied from other services, of all applications.
    pub replica_bandwidth: u64,
}
