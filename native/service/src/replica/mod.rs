//! Copies of map outputs on the services of other hosts. Each service copies what is placed on it; nothing is sent to one.
//!
//! ```text
//!   hosts       the services of the application, as its executors say: a list that only grows
//!   placement   which of them have the copies of an output; readers ask by `order`
//!   names       ids that no output of Spark has: pages of the list below, and the index of an output
//!   pages       what a service has, as pages that the others read like map outputs
//!   pull        bytes of another service, by the application's own endpoint
//!   throttle    bytes a second, of all applications
//!   answers     where the files of outputs, indexes and pages are
//!   scratch     a file without an output's name
//!   state       what the copier and the executors' connections share
//!   followed    another service whose list the copier reads
//!   copier      the thread of an application: writes its pages, follows those of the others, copies
//! ```
//! So there is no message between services but the fetch that readers use, no port, no memory and no proof of membership
//! but the application's, and a service that was away reads on where it stopped.

mod answers;
mod copier;
mod hosts;
mod missed;
mod names;
mod pages;
mod placement;
mod pull;
mod replica_source;
mod scratch;
mod state;
mod throttle;

pub(crate) use answers::answer;
pub(crate) use copier::Copier;
pub(crate) use names::indexes_of;
pub(crate) use pages::Pages;
pub use placement::order;
pub(crate) use state::{CopyCounts, Replicas};
pub(crate) use throttle::Throttle;
