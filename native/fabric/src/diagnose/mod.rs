//! Explains why RDMA is or is not used on this host, and names the command that changes it.
//!
//! One list of checks with two readers: `faro doctor` prints all of them, and an endpoint that
//! falls back to TCP adds those that found something to its log line. What a check says is the
//! [`crate::verbs::VerbsError`] that opening the fabric would end with, so both say the same.
//!
//! Files are read below a root, so that tests bring their own `/proc`, `/sys` and `/dev`;
//! [`Host::tried`] uses the real library and device.

mod fix;
mod memory;
mod rdma;

pub use memory::bytes;

use crate::verbs::VerbsOptions;
use std::net::IpAddr;
use std::path::Path;

/// Severity of a finding for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing needs to change.
    Good,
    /// It works, and could be better.
    Note,
    /// This host has no RDMA device and uses TCP.
    NoDevice,
    /// Map outputs are lost with their executors; all else works.
    NoService,
    /// RDMA cannot be used; TCP can.
    NoRdma,
    /// An executor fails with this.
    Broken,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the check, in a word or two; the same in every run.
    pub check: &'static str,
    pub level: Severity,
    /// The finding, with values.
    pub message: String,
    /// The command that mends it, or instructions if no command does.
    pub fix: Option<String>,
}

impl Finding {
    /// Returns a finding that needs no fix.
    #[must_use]
    pub fn good(check: &'static str, message: String) -> Self {
        Self {
            check,
            level: Severity::Good,
            message,
            fix: None,
        }
    }

    /// Returns a finding that needs a fix.
    #[must_use]
    pub fn bad(check: &'static str, level: Severity, message: String, fix: String) -> Self {
        Self {
            check,
            level,
            message,
            fix: Some(fix),
        }
    }
}

/// The user's names of the settings that a `mend` may name. The default describes them in words.
#[derive(Debug, Clone, Copy)]
pub struct SettingNames {
    /// [`Host::memory_limit`].
    pub memory_limit: &'static str,
    /// Setting for the memory that the resource manager gives the process besides its heap.
    pub memory_overhead: &'static str,
    /// [`VerbsOptions::device`].
    pub device: &'static str,
    /// [`VerbsOptions::gid_index`].
    pub gid_index: &'static str,
}

impl Default for SettingNames {
    fn default() -> Self {
        Self {
            memory_limit: "the memory limit",
            memory_overhead: "the memory overhead",
            device: "the RDMA device",
            gid_index: "the GID index",
        }
    }
}

/// The host as an executor with these settings would find it.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// `/`; a test's own tree.
    pub root: &'a Path,
    /// The user's settings for RDMA.
    pub options: &'a VerbsOptions,
    /// The address that the executor tells its peers.
    pub near: IpAddr,
    /// Maximum bytes of the arena.
    pub memory_limit: u64,
    /// For `mend`.
    pub names: SettingNames,
}

impl Host<'_> {
    /// Checks RDMA by files alone: ports, the choice, permission, locked memory.
    #[must_use]
    pub fn rdma(&self) -> Vec<Finding> {
        rdma::seen(self)
    }

    /// Checks the library and the device: version, MTU, on-demand paging. Opens the device and
    /// closes it again; empty but for the library on a host without a device.
    #[must_use]
    pub fn tried(&self) -> Vec<Finding> {
        rdma::tried(self)
    }

    /// Checks huge pages, and the memory that a container may take.
    #[must_use]
    pub fn memory(&self) -> Vec<Finding> {
        memory::checks(self)
    }

    /// Returns the other reasons that the fabric cannot open, to follow `error` in the log, so that
    /// a user does not find them one start after the other. Empty if there are none.
    #[must_use]
    pub fn also(&self, error: &str) -> String {
        let mut said: Vec<String> = Vec::new();
        for finding in self.rdma() {
            let known = error.contains(&finding.message) || said.contains(&finding.message);
            if finding.level >= Severity::NoRdma && !known {
                said.push(finding.message);
            }
        }
        said.iter()
            .map(|message| format!("; also: {message}"))
            .collect()
    }
}

#[cfg(test)]
mod hosts_test;
#[cfg(test)]
mod tests;
