//! Map output files as Spark wrote them, opened on the first request; their bytes are regions.

mod catalog;
mod mapped;
mod output;

pub(crate) use catalog::{Answer, Catalog, Lookup};
pub use output::OutputFiles;
pub(crate) use output::{FileRange, Output};
