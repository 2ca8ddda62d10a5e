//! A barrier that orders stores for devices.

use crate::atomic::{fence, Ordering};

/// Makes stores before the call visible before stores after it, to the other processors and to
/// devices that read memory coherently (a NIC that serves a remote READ). It has no effect on
/// loads, and it orders this processor's stores only: a reader must order its own reads.
///
/// `fence(Release)` alone is enough between threads, but not for a device:
///
/// - x86-64. All ordinary stores become visible in program order, to devices too, so that the
///   fence is an order for the compiler only. Non-temporal stores are the exception: `memcpy` and
///   the kernel's copies may use them, and they may overtake earlier stores. `sfence` orders them.
/// - aarch64. The fence is `dmb ish`, which orders for the inner shareable domain: the processors.
///   A device may be outside of it, in the outer shareable domain, for which `dmb oshst` orders
///   stores. Linux uses the same instruction for `dma_wmb()`.
/// - Other architectures get a full fence, which was not checked against a device there.
///
/// It costs some nanoseconds; Faro calls it twice for each 256 KiB that it overwrites.
#[inline]
pub fn device_write_barrier() {
    // For the memory model of the language (and for loom), which knows no devices: a thread that
    // reads a later store after an acquire fence sees the earlier ones.
    fence(Ordering::Release);
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    // SAFETY: `sfence` changes no register and no memory. Without `nomem` the compiler moves no
    // access to memory across it.
    unsafe {
        std::arch::asm!("sfence", options(nostack, preserves_flags));
    }
    #[cfg(all(target_arch = "aarch64", not(loom), not(miri)))]
    // SAFETY: `dmb` changes no register and no memory. Without `nomem` the compiler moves no
    // access to memory across it.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64", loom, miri)))]
    fence(Ordering::SeqCst);
}
