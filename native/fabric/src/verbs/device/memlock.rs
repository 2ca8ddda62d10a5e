//! Checks that the arena may be locked in memory, before the device refuses.

use super::error::VerbsError;
use std::path::Path;

/// Bit of `CAP_IPC_LOCK` in a capability mask (linux/capability.h): no limit applies.
const CAP_IPC_LOCK: u32 = 14;

/// Locked memory of the queues of 256 connections. Drivers of NICs lock the queues' memory as well:
/// 64 bytes for each entry of a completion queue and of a queue pair, in whole pages.
pub(crate) const QUEUE_BYTES: u64 = 16 << 20;

/// Amount of memory that this process may lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockableMemory {
    /// The limit in bytes; `None` stands for no limit.
    pub(crate) limit: Option<u64>,
    /// The limit does not hold.
    pub(crate) privileged: bool,
}

impl LockableMemory {
    /// # Errors
    /// `Memlock` if less than `needed` bytes may be locked.
    pub(crate) fn judge(self, needed: u64) -> Result<(), VerbsError> {
        match self.limit {
            Some(limit) if limit < needed && !self.privileged => {
                Err(VerbsError::Memlock { limit, needed })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether an arena of this size leaves too little for the device's queues.
    pub(crate) fn is_tight(self, arena: u64) -> bool {
        self.judge(arena.saturating_add(QUEUE_BYTES)).is_err()
    }
}

/// Returns the amount that the process may lock whose `/proc/self` is below `root`.
pub(crate) fn locked(root: &Path) -> LockableMemory {
    let of = |name| std::fs::read_to_string(root.join("proc/self").join(name)).unwrap_or_default();
    LockableMemory {
        limit: limit(&of("limits")),
        privileged: may_lock(&of("status")) && counts_outside(&of("uid_map")),
    }
}

/// # Errors
/// `Memlock` if less than `needed` bytes may be locked.
pub(crate) fn check_memlock(needed: u64) -> Result<(), VerbsError> {
    let locked = locked(Path::new("/"));
    locked.judge(needed)?;
    if locked.is_tight(needed) {
        log::warn!(
            "verbs: this process may lock hardly more memory than the arena's {needed} bytes; the \
             device's queues need some too ({QUEUE_BYTES} bytes for 256 connections), and \
             connections that get none use TCP; raise the limit (ulimit -l)"
        );
    }
    Ok(())
}

/// Returns the soft limit in `/proc/self/limits`: `Max locked memory  65536  65536  bytes`.
fn limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn may_lock(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1)
}

/// Returns whether `/proc/self/uid_map` is that of the machine: the kernel asks for the capability
/// there, and root of a rootless container has it only in its own user namespace.
fn counts_outside(uid_map: &str) -> bool {
    let words: Vec<&str> = uid_map.split_whitespace().collect();
    // Kernels without user namespaces have no map.
    matches!(words[..], [] | ["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_limit_is_named_with_what_is_needed() {
        let judge = |limit, privileged, needed| LockableMemory { limit, privileged }.judge(needed);
        assert!(judge(None, false, u64::MAX).is_ok());
        assert!(judge(Some(65_536), true, 1 << 30).is_ok());
        assert!(judge(Some(65_536), false, 65_536).is_ok());
        let tight = |limit| {
            LockableMemory {
                limit,
                privileged: false,
            }
            .is_tight(1 << 28)
        };
        assert!(tight(Some(1 << 28)) && tight(Some((1 << 28) + QUEUE_BYTES - 1)));
        assert!(!tight(Some((1 << 28) + QUEUE_BYTES)) && !tight(None));
        let text = judge(Some(65_536), false, 1 << 28).unwrap_err().to_string();
        assert!(
            text.contains("65536") && text.contains("268435456"),
            "{text}"
        );
    }

    #[test]
    fn the_soft_limit_is_read() {
        let line = "Max locked memory         65536                unlimited            bytes     ";
        assert_eq!(limit(&format!("Limit  Soft Limit\n{line}\n")), Some(65_536));
        assert_eq!(
            limit("Max locked memory  unlimited  unlimited  bytes"),
            None
        );
        assert_eq!(limit(""), None);
    }

    #[test]
    fn the_capability_is_one_bit() {
        assert!(may_lock("Name:\tx\nCapEff:\t0000000000004000\n"));
        assert!(may_lock("CapEff:\t000001ffffffffff\n"));
        assert!(!may_lock("CapEff:\t00000000a80425fb\n"));
        assert!(!may_lock(""));
    }

    #[test]
    fn root_of_a_rootless_container_has_a_limit() {
        assert!(counts_outside("         0          0 4294967295\n"));
        assert!(counts_outside(""));
        assert!(!counts_outside("         0       1000          1\n"));
        assert!(!counts_outside(
            "0 1000 1\n         1     100000      65536\n"
        ));
    }
}
