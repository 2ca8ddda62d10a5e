//! Whether the arena may be locked in memory, asked before the device refuses.

use super::error::VerbsError;

/// Bit of `CAP_IPC_LOCK` in a capability mask (linux/capability.h): no limit applies.
const CAP_IPC_LOCK: u32 = 14;

/// # Errors
/// `Memlock` if less than `needed` bytes may be locked.
pub(crate) fn check_memlock(needed: u64) -> Result<(), VerbsError> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let privileged =
        may_lock(&read("/proc/self/status")) && counts_outside(&read("/proc/self/uid_map"));
    judge(limit, privileged, needed)
}

fn judge(limit: Option<u64>, privileged: bool, needed: u64) -> Result<(), VerbsError> {
    match limit {
        Some(limit) if limit < needed && !privileged => Err(VerbsError::Memlock { limit, needed }),
        _ => Ok(()),
    }
}

/// Whether `/proc/self/status` shows the capability.
fn may_lock(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> CAP_IPC_LOCK & 1 == 1)
}

/// Whether `/proc/self/uid_map` is that of the machine: the kernel asks for the capability there,
/// and root of a rootless container has it only in its own user namespace.
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
        assert!(judge(None, false, u64::MAX).is_ok());
        assert!(judge(Some(65_536), true, 1 << 30).is_ok());
        assert!(judge(Some(65_536), false, 65_536).is_ok());
        let text = judge(Some(65_536), false, 1 << 28).unwrap_err().to_string();
        assert!(
            text.contains("65536") && text.contains("268435456"),
            "{text}"
        );
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
