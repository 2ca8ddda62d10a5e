//! The order of rows against an oracle.

mod fuzz;
mod property;
mod sorts;
mod support;
