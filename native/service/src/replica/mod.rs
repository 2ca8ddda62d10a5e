//! Copies of map outputs on the services of other hosts. Each service copies what is placed on it; nothing is sent to one.
//!
//! ```text
//!   hosts       the services of the application, as its executors say: a list that only grows
//!   placement   which of them have the copies of an output; readers ask by `order`
//!   pages       what a service has, as pages that the others ask for
//!   list_server answers those who ask for pages and indexes of outputs
//!   pull        pages, indexes and data of another service, by the application's own endpoint
//!   throttle    bytes a second, of all applications
//!   scratch     a file without an output's name
//!   state       what the copier and the executors' connections share
//!   followed    another service whose list the copier reads
//!   copier      the thread of an application: writes its pages, follows those of the others, copies
//! ```
//! Services ask for lists and indexes by commands, and for data by the fetch that readers use. So there is no port, no memory
//! and no proof of membership but the application's, and a service that was away reads on where it stopped.

mod copier;
mod hosts;
mod list_server;
mod missed;
mod pages;
mod placement;
mod pull;
mod replica_source;
mod scratch;
mod state;
mod throttle;

pub(crate) use copier::Copier;
pub(crate) use list_server::ListServer;
pub(crate) use pages::Pages;
pub use placement::order;
pub(crate) use state::{CopyCounts, Replicas};
pub(crate) use throttle::Throttle;
