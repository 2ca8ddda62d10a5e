//! The executor's endpoint: client and server of blocks, collectives, progress threads, arena.
//!
//! ```text
//!   endpoint     the public face: start, fetch, completions, close
//!   progress     the event loop of one fabric's thread
//!   fetch        client: requests, attempts, pulls        ┐
//!   serve        server: jobs, I/O threads, read offers   ├ services; none uses another
//!   collective   all-reduce of a team                     │
//!   command      commands to peers and of peers           ┘
//!   net          connections, routes, outbox, peer table: all that services have of the fabric
//!   schedule     grouped exchange: which peers go first, and how many at once
//!   local        own map outputs, read on the caller's thread
//!   files        map outputs as Spark wrote them
//!   memory       arena and chunk cache
//! ```
//! Each module uses only those below it (`tests/setup/check-modules` sees to it). A progress thread
//! owns its fabric and all state of its services, so none of that needs a lock; threads talk by
//! queues. Nothing blocks a progress thread: files are read by I/O threads, arena memory is asked for
//! without waiting, and Java is asked (where a map output is) and told (blocks have arrived) through
//! queues that Java threads take from. No native thread ever attaches to the JVM.
//!
//! One endpoint fetches a block of another one's map output:
//!
//! ```
//! use faro_endpoint::{Config, Endpoint, FabricChoice, OutputFiles};
//! use faro_wire::BlockId;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let file = |name: &str| directory.path().join(name);
//! # let files = OutputFiles { data: file("shuffle_7_3_0.data"), index: file("shuffle_7_3_0.index") };
//! # std::fs::write(&files.data, "the block")?;
//! # std::fs::write(&files.index, [0_u64.to_be_bytes(), 9_u64.to_be_bytes()].concat())?;
//! let timeout = Duration::from_secs(10);
//! let config = |name: &str| Config {
//!     name: name.to_owned(),
//!     fabric: FabricChoice::Tcp,
//!     memory_limit: 64 << 20,
//!     request_timeout: timeout,
//!     ..Config::default()
//! };
//! let (client, server) = (Endpoint::start(config("client"))?, Endpoint::start(config("server"))?);
//! let peer = client.add_peer(&server.card())?;
//! let block = BlockId {
//!     map_id: 3.into(),
//!     shuffle_id: 7.into(),
//!     start_reduce: 0.into(),
//!     end_reduce: 1.into(),
//!     piece: 0.into(),
//! };
//! client.fetch(peer, &[block], timeout)?;
//! // The server asks its owner for the files of the map output.
//! for output in server.unresolved(16, timeout) {
//!     server.resolve(output, Some(files.clone()));
//! }
//! let mut completions = Vec::new();
//! client.completions(16, timeout, &mut completions);
//! let delivery = completions[0].outcome.as_ref().map_err(|failure| failure.detail.clone())?;
//! let slice = &delivery.slices[0];
//! let from = slice.offset as usize;
//! assert_eq!(&slice.lease.bytes()[from..from + slice.length as usize], b"the block");
//! client.close();
//! server.close();
//! # Ok(())
//! # }
//! ```

pub mod collective;
mod command;
mod config;
mod counters;
mod deadlines;
mod endpoint;
#[cfg(feature = "faults")]
mod faults;
mod fetch;
mod files;
pub mod limits;
mod loans;
mod local;
mod memory;
mod net;
mod progress;
#[cfg(test)]
mod progress_test;
mod quota_key;
mod schedule;
mod serve;
mod services;

pub use command::{CommandAnswer, CommandError, CommandHandler, ReplySender};
pub use config::{Config, FabricChoice, Security};
pub use endpoint::{rdma_port_counters, Endpoint, EndpointError};
#[cfg(feature = "simulation")]
pub use endpoint::{ManualEndpoint, Turn};
pub use faro_fabric::verbs::VerbsOptions;
pub use faro_pool::{Budget, PoolError};
pub use faro_region::StagedFile;
pub use faro_secure::{Protection, SharedSecret};
pub use fetch::{BufferSlice, Completion, Delivery, FetchFailure, MAX_COMPLETION_QUEUES};
pub use files::OutputFiles;
pub use loans::LoanError;
pub use local::{LocalBlock, LocalError};
pub use memory::RegionMode;
pub use schedule::{ExchangeConfig, ExchangePolicy};
