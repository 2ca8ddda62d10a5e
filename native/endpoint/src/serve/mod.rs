//! The server's side of a fetch: from a request to the last write.
//!
//! A [`ServeJob`](job::ServeJob) travels: the progress thread takes the `FETCH`, an I/O thread looks the files up and
//! fills pages for a few remote buffers (a *turn*), the progress thread posts the writes, and so on
//! until the bytes are out. Only one thread has the job at a time, so it needs no lock, and only I/O
//! threads wait for a disk: a small job whose bytes are in memory is done at once, without the detour.
//! What lies in the chunk cache is sent from its pages ([`content`]). With `RegionMode::Optimistic` a reply
//! that lies there as a whole is not sent at all: the client is offered to read it ([`offer`](offer::offer)).

mod budget;
mod content;
mod exposed;
mod io;
mod job;
mod lookup;
mod memory_queue;
mod offer;
mod remote_buffers;
mod response;
mod served_fetches;
mod service;
mod stage;
mod turn_memory;
mod work;

pub(crate) use io::IoPool;
#[cfg(feature = "simulation")]
pub(crate) use io::Worker;
pub(crate) use service::ServeService;
pub(crate) use work::ReturnedWork;
