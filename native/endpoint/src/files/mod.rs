//! Map output files as Spark wrote them; their bytes are regions.

mod cache;
mod catalog;
mod descriptors;
mod identity;
mod index;
#[cfg(feature = "research")]
mod mapped;
mod offsets;
mod output;
mod position_hint;
mod questions;
mod stores;

pub(crate) use catalog::{Catalog, Lookup};
pub(crate) use descriptors::open_file_bound;
pub use identity::OutputFiles;
pub(crate) use index::LocateError;
pub(crate) use output::{FileRange, Output};
pub(crate) use questions::OutputAnswer;

/// Opens the files of an output outside of a catalog.
#[cfg(test)]
pub(crate) fn open_for_test(files: &OutputFiles) -> Output {
    let id = faro_wire::OutputId {
        shuffle_id: 1,
        map_id: 2,
    };
    Output::open(&stores::Stores::new(8, 64 << 20), id, files).unwrap()
}
