//! Map output files as Spark wrote them, opened on the first request and read with `pread`.
//!
//! `pread` and not `mmap`: a file that is truncated or deleted under a mapping ends the JVM with
//! SIGBUS, while a short `pread` is an error of one request. The copy it costs lands in the frame
//! that has to be filled anyway.

mod catalog;
mod output;

pub(crate) use catalog::{Answer, Catalog, Lookup};
pub use output::OutputFiles;
pub(crate) use output::{Output, Run};
