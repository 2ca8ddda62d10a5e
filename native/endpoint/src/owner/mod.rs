//! The owner's side of a fetch: from a request to the last write.
//!
//! A [`Job`] travels: the progress thread takes the `FETCH`, an I/O thread looks the files up and
//! fills frames for a few credits (a *turn*), the progress thread posts the writes, and so on until
//! the bytes are out. Only one thread has the job at a time, so it needs no lock, and only I/O
//! threads touch the disk.

mod io;
mod job;
mod table;

pub(crate) use io::IoPool;
pub(crate) use job::{Job, Turn};
pub(crate) use table::Owner;
