//! The executor's endpoint: client and server of blocks, collectives, progress threads, arena.
//!
//! ```text
//!   endpoint     the public face: start, fetch, completions, close
//!   progress     the event loop of one fabric's thread
//!   fetch        client: requests, attempts, pulls        ┐
//!   serve        server: jobs, I/O threads, read offers   ├ services; none uses another
//!   collective   all-reduce of a team                     ┘
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

pub mod collective;
mod config;
mod counters;
mod deadlines;
mod endpoint;
mod fabrics;
#[cfg(feature = "faults")]
mod faults;
mod fetch;
mod files;
pub mod limits;
mod local;
mod memory;
mod net;
mod payer;
mod progress;
#[cfg(test)]
mod progress_test;
mod schedule;
mod serve;
mod services;

pub use config::{Config, FabricChoice, Security};
pub use endpoint::{Endpoint, EndpointError};
#[cfg(feature = "simulation")]
pub use endpoint::{Stepped, Turn};
pub use faro_fabric::verbs::VerbsOptions;
pub use faro_region::StagedFile;
pub use faro_secure::{Protection, SharedSecret};
pub use fetch::{BufferSlice, Completion, Delivery, FetchFailure, MAX_COMPLETION_QUEUES};
pub use files::OutputFiles;
pub use local::{LocalBlock, LocalError};
pub use memory::{RegionMode, Staging};
pub use schedule::{ExchangeConfig, ExchangePolicy, UNBOUNDED_MEMBERS};
