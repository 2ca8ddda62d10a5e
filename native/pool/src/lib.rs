//! The arena: a bounded set of large slabs of memory, which are leased to the rest of Faro.
//!
//! Registered memory is scarce. So a setting bounds it, the arena takes it from the system rarely
//! (16 MiB at a time), and leases recycle it:
//!
//! ```text
//!   Pool ── Arena ── admission          pages that each purpose holds; the limit and the reserve
//!    │        ├───── pages              free pages: small stacks before a bounded queue
//!    │        ├───── small_buffers      pages split into buffers of 2, 4, 16 or 64 KiB
//!    │        ├───── slabs              mapped, idle and released slabs; external memory's part
//!    │        ├───── registration_pins  whether a slab's pages must stay
//!    │        └───── event_count        tells refused threads that memory has returned
//!    ├── Slab × n ── mapping            memfd and its mapping
//!    ├── Account                        bytes of leases that are held for one user
//!    ├── Budget                         the bound that several pools have together
//!    ├── ExternalMemory                 memory outside the slabs: wrapped, or registered lazily
//!    └── counters
//! ```
//! The arena knows numbers, not memory, so that a loom model and a property test can explore it.
//! The pool adds the slabs. Dropping a lease returns it, on any thread. Slabs stay mapped until the
//! pool and its last lease are dropped, so that no pointer into a slab ever dangles. An idle slab
//! gives up its registration and then its pages (`registration_pins`).
//!
//! The pool registers nothing; fabrics do. They find new slabs with [`Pool::slab`], idle ones with
//! [`Pool::idle_epoch`] and [`Pool::is_idle`], and external memory with [`Lease::external`]. They
//! report registrations to the pool with [`RegistrationPin`] and [`RegistrationCount`].
//!
//! `examples/arena.rs` shows more.

mod budget;
mod counters;
mod error;
mod mapping;
mod pool;
mod slab;
mod slabs;

// These modules are public only for the loom model.
#[cfg(not(loom))]
mod admission;
#[cfg(loom)]
pub mod admission;
#[cfg(not(loom))]
mod arena;
#[cfg(loom)]
pub mod arena;
#[cfg(not(loom))]
mod event_count;
#[cfg(loom)]
pub mod event_count;
#[cfg(not(loom))]
mod pages;
#[cfg(loom)]
pub mod pages;
#[cfg(not(loom))]
mod registration_pins;
#[cfg(loom)]
pub mod registration_pins;
mod small_buffers;

pub use budget::Budget;
pub use counters::PoolCounters;
pub use error::{PoolError, Purpose};
pub use pool::{
    Access, Account, Attachment, Charge, CleanUp, ExternalMemory, Lease, Pool, PoolOptions,
    RegistrationCount, RegistrationPin, WrapRefused, MAX_EXTERNAL_BYTES,
};
pub use slab::Slab;

/// Size of a slab in bytes.
pub const SLAB_BYTES: usize = 16 << 20;
/// Size of a page in bytes: the largest lease of a slab.
pub const PAGE_BYTES: usize = 256 << 10;
/// Size classes of leases in bytes, ascending; the last is a page.
pub const SIZE_CLASSES: [usize; 5] = [2 << 10, 4 << 10, 16 << 10, 64 << 10, PAGE_BYTES];
/// Returns the maximum bytes that the leases for `bytes` bytes may have together: one and a half
/// times as many, or 4 KiB.
const fn allowance(bytes: usize) -> usize {
    let half_more = bytes + bytes / 2;
    if half_more < SIZE_CLASSES[1] {
        SIZE_CLASSES[1]
    } else {
        half_more
    }
}

/// Returns the sizes of the leases that hold `bytes` bytes with little waste: whole pages and at
/// most five others, together at most one and a half times as many bytes from 4 KiB on. One lease
/// of the next size class may have four times the bytes.
pub fn lease_sizes(bytes: usize) -> Vec<usize> {
    let (mut left, mut allowed) = (bytes, allowance(bytes));
    let mut sizes = Vec::with_capacity(bytes / PAGE_BYTES + 1);
    while left > 0 {
        let above = SIZE_CLASSES.into_iter().find(|class| *class >= left);
        let below = SIZE_CLASSES.into_iter().rev().find(|class| *class < left);
        let size = match (above, below) {
            (Some(above), _) if above <= allowed => above,
            (_, Some(below)) => below,
            (Some(above), None) => above,
            (None, None) => PAGE_BYTES,
        };
        sizes.push(size);
        (left, allowed) = (left.saturating_sub(size), allowed.saturating_sub(size));
    }
    sizes
}

/// Minimum limit of a pool: one slab for each purpose.
pub const MIN_LIMIT_BYTES: u64 = 2 * SLAB_BYTES as u64;
/// Maximum limit of a pool. Its lists are allocated for the limit when it is made.
pub const MAX_LIMIT_BYTES: u64 = 1 << 40;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn leases_for_any_size_waste_at_most_a_third_of_their_bytes() {
        for bytes in (0..3 * PAGE_BYTES).step_by(97).chain(SIZE_CLASSES) {
            let sizes = lease_sizes(bytes);
            let (total, small): (usize, _) = (
                sizes.iter().sum(),
                sizes.iter().filter(|size| **size < PAGE_BYTES).count(),
            );
            assert!(total >= bytes, "{bytes} in {sizes:?}");
            assert!(total <= allowance(bytes), "{bytes} in {sizes:?}");
            assert!(small <= 5, "{bytes} in {sizes:?}");
        }
        assert_eq!(lease_sizes(20 << 10), [16 << 10, 4 << 10]);
        assert_eq!(lease_sizes(48 << 10), [64 << 10]);
    }
}
