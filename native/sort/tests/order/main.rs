//! The order of rows against an oracle.

mod property;
mod sorts;
mod support;
