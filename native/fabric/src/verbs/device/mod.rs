//! Everything that calls libibverbs: the rest of the fabric is free of it.
//!
//! Idea: one file per object, each object holds what it was made from (`Arc`), so that nothing is
//! destroyed before what depends on it: a queue pair before its completion queue, a region before
//! its memory, all before the device. Setup (`library`, `survey`, `choice`, `context`) is apart
//! from what the datapath calls (`completion`, `queue_pair`), which goes through the context's
//! table of operations as the headers' inline functions do.
//!
//! Types and constants are in `sys`, the functions are looked up when a device is first wanted: no
//! program that is built with this depends on libibverbs (`make check` looks).

mod addresses;
mod async_event;
mod choice;
mod completion;
mod context;
mod error;
mod hardware_counters;
mod library;
mod memlock;
#[cfg(test)]
mod on_device;
mod open;
mod probe;
mod process_place;
mod queue_pair;
mod registration;
mod selection;
mod survey;
mod sys;
#[cfg(test)]
mod tests;
mod work_request;

pub(crate) use addresses::HostAddresses;
pub(crate) use async_event::AsyncEvent;
pub use choice::VerbsOptions;
pub(crate) use choice::{
    candidates, first_usable, DeviceChoice, LinkLayer, OwnAddress, PortAddress,
};
pub(crate) use completion::{
    Channel, CompletionKind, CompletionQueue, CompletionStatus, WorkCompletion,
};
pub(crate) use context::{Device, Limits};
pub use error::VerbsError;
pub use hardware_counters::port_counters;
pub(crate) use hardware_counters::HardwareCounters;
pub(crate) use memlock::{check_memlock, locked, QUEUE_BYTES};
pub(crate) use open::check_file;
pub(crate) use probe::{library_file, try_device, ProbedDevice};
pub(crate) use process_place::ProcessPlace;
pub(crate) use queue_pair::{Depth, QueuePair, Remote};
pub(crate) use registration::Registration;
pub use selection::{BadSelection, DeviceSelection};
pub(crate) use survey::{survey, DevicePort};
pub(crate) use work_request::{MemoryPieces, ReceiveRequest, WorkOperation, WorkRequest};
