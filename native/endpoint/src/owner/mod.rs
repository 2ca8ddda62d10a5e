//! The owner's side of a fetch: from a request to the last write.
//!
//! A [`Job`] travels: the progress thread takes the `FETCH`, an I/O thread looks the files up and
//! fills frames for a few credits (a *turn*), the progress thread posts the writes, and so on until
//! the bytes are out. Only one thread has the job at a time, so it needs no lock, and only I/O
//! threads wait for a disk: a small job whose bytes are in memory is done at once, without the detour.
//! What lies in frames as a whole is not sent at all: the reader is told where ([`locate`]).

mod io;
mod job;
mod locate;
mod shown;
mod table;

pub(crate) use io::IoPool;
pub(crate) use job::{Job, Turn};
pub(crate) use table::Owner;
