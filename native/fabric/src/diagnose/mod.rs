//! Why RDMA is or is not used on this host, and what mends it.
//!
//! One list of checks with two readers: `faro doctor` prints all of them, and an endpoint that
//! falls back to TCP puts those that found something into the line of its log. What a check says
//! is the [`crate::verbs::VerbsError`] that opening the fabric would end with, so both say the same.
//!
//! What files tell is read below a root, so that tests bring their own `/proc`, `/sys` and `/dev`;
//! what only the library and the device can tell ([`Host::tried`]) is asked of the real ones.

mod memory;
mod mend;
mod rdma;

pub use memory::bytes;

use crate::verbs::VerbsOptions;
use std::net::IpAddr;
use std::path::Path;

/// What a finding means for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Good,
    /// It works, and could be better.
    Note,
    /// RDMA cannot be used; TCP can.
    NoRdma,
    /// An executor fails with this.
    Broken,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which check, in a word or two; the same in every run.
    pub check: &'static str,
    pub level: Level,
    /// What is there, with values.
    pub says: String,
    /// The command that mends it, or what to do where there is none.
    pub mend: Option<String>,
}

impl Finding {
    /// Nothing to mend.
    #[must_use]
    pub fn good(check: &'static str, says: String) -> Self {
        Self {
            check,
            level: Level::Good,
            says,
            mend: None,
        }
    }

    /// Something to mend.
    #[must_use]
    pub fn bad(check: &'static str, level: Level, says: String, mend: String) -> Self {
        Self {
            check,
            level,
            says,
            mend: Some(mend),
        }
    }
}

/// The host as an executor with these settings would find it.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// `/`; a test's own tree.
    pub root: &'a Path,
    /// `spark.faro.verbs.*`.
    pub wishes: &'a VerbsOptions,
    /// The address that the executor tells its peers.
    pub near: IpAddr,
    /// `spark.faro.memory.limit`, bytes.
    pub memory_limit: u64,
}

impl Host<'_> {
    /// What files tell of RDMA: ports, the choice, permission, locked memory.
    #[must_use]
    pub fn rdma(&self) -> Vec<Finding> {
        rdma::seen(self)
    }

    /// What the library and the device tell when they are tried: version, MTU, on-demand paging.
    /// Opens the device and closes it again. Nothing on a host without a device.
    #[must_use]
    pub fn tried(&self) -> Vec<Finding> {
        rdma::tried(self)
    }

    /// Huge pages, and the memory that a container may take.
    #[must_use]
    pub fn memory(&self) -> Vec<Finding> {
        memory::checks(self)
    }

    /// For the log, behind why the fabric did not open: what else keeps it from opening, so that
    /// not every start brings the next reason. Empty if there is nothing else.
    #[must_use]
    pub fn also(&self, error: &str) -> String {
        let mut said: Vec<String> = Vec::new();
        for finding in self.rdma() {
            let known = error.contains(&finding.says) || said.contains(&finding.says);
            if finding.level >= Level::NoRdma && !known {
                said.push(finding.says);
            }
        }
        said.iter().map(|says| format!("; also: {says}")).collect()
    }
}

#[cfg(test)]
mod tests;
