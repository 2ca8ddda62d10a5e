//! The messages between an executor and the service: one message is one packet, with its descriptors beside it.
//!
//! ```text
//!  request | u8 kind | body                              numbers are little-endian
//!   HELLO    versions | u8 sealed | text application | text executor | 32 token | bytes secret
//!   OUTPUT   u32 shuffle | i64 map | u8 has data          descriptors: the index, then the data file if it has one
//!   FORGET   u32 shuffle
//!   END      (nothing)
//!   LEND     u32 shuffle | u8 files | u16 n | n i64 map   which outputs there are; with files, their descriptors too
//!   STATUS   versions | u16 from                          not from executors: what the service has, see `status`
//!   HOST     u8 replicas | u32 at | u32 of | bytes card   service `at` of the application's `of` services
//!   BEHIND   (nothing)                                    how many copies the application's outputs of here lack
//!  answer  | u8 kind | body
//!   WELCOME  u16 version | bytes card
//!   DONE     (nothing)
//!   LENT     u16 n | n u8                                 0: not here, 1: all empty, 2: has data; descriptors as OUTPUT's
//!   REFUSED  u8 why | text
//!   STATUS   see `status`
//!   BEHIND   u64 copies
//!  text, bytes: u16 length, then as many bytes
//! ```
//! HELLO and STATUS begin with the versions that the sender speaks: "faro" | u16 oldest | u16 newest. Both sides then speak the
//! newest one that they share. Without one the service refuses, with a line that says what to upgrade first. This beginning,
//! WELCOME's version and REFUSED are the same in all versions.
//!
//! `request` and `reply` have the two enums and their layouts, `token` the proof of an application, `body` the fields
//! that all of them consist of.

mod body;
mod reply;
mod request;
mod token;

pub(crate) use body::{put, Body};
pub use body::{MessageError, MAX_LEND, MAX_MESSAGE, VERSIONS};
pub use reply::{LoanState, Refusal, Reply};
pub use request::{Hello, Request, MAX_LEND_FILES};
pub use token::{Key, Token};
