//! The order of rows by their keys, as Spark SQL sorts them. Rows stay where they are: an *entry* has
//! a row's normalised key in its upper bits and the row's position in its lower ones, and entries are
//! sorted as numbers. Positions grow in the order in which rows came, so equal keys keep that order.
//!
//! ```text
//!  pages of rows ──survey──▶ KeyColumnStats ──▶ KeyLayout ──encode──▶ entries ──RadixSort or QuickSort──▶ positions in order
//! ```
//!
//! The survey finds which values each column has, so that a key has only the bits in which rows differ:
//! a number is its distance to the least one, a character of a string its number among those that occur.
//! Two integers thus fit mostly into one word together with the position.
//!
//! No I/O, no threads, no memory of its own beyond a few KiB: pages and entries are the caller's.
#![forbid(unsafe_code)]

mod column;
mod encode;
mod error;
mod layout;
mod progress;
mod quick;
mod radix;
mod rows;
mod sorter;
mod survey;

pub use column::{KeyColumn, ValueKind};
pub use error::SortError;
pub use progress::SortProgress;
pub use rows::ROW_HEAD_BYTES;
pub use sorter::{EntryShape, RowSorter};
