//! Accounts count the bytes of leases that are held for one user of the pool, such as a peer.
//!
//! A lease that is charged to an account counts there until it is dropped, wherever it is by then.
//! So an account is bounded without following its leases through queues and devices.

use faro_sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Bytes that are held for one user.
#[derive(Debug)]
pub struct Account(AtomicU64);

impl Account {
    /// Returns an account with nothing held.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(0)))
    }

    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Counts `bytes` more until the charge is dropped. Returns `None` if the sum would be above
    /// `max`. The first charge of an empty account is never refused, so that its user can continue.
    #[must_use]
    pub fn charge(self: &Arc<Self>, bytes: u64, max: u64) -> Option<Charge> {
        let fits = |held: u64| {
            let with = held.saturating_add(bytes);
            (held == 0 || with <= max).then_some(with)
        };
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fits)
            .ok()?;
        Some(Charge {
            account: Arc::clone(self),
            bytes,
        })
    }
}

/// Counts bytes on an account until it is dropped.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Pool, Purpose, MIN_LIMIT_BYTES, PAGE_BYTES};

    #[test]
    fn an_account_has_at_most_its_share_and_one_charge_at_least() {
        let account = Account::new();
        let first = account.charge(5, 4).unwrap();
        assert!(account.charge(1, 4).is_none());
        assert_eq!(account.bytes(), 5);
        drop(first);
        let (one, three) = (account.charge(1, 4), account.charge(3, 4));
        assert!(one.is_some() && three.is_some() && account.charge(1, 4).is_none());
        drop(one);
        assert_eq!(account.bytes(), 3);
    }

    #[test]
    fn a_lease_counts_until_it_is_dropped() {
        let pool = Pool::new(MIN_LIMIT_BYTES).unwrap();
        let account = Account::new();
        let mut lease = pool.try_lease(PAGE_BYTES, Purpose::Serve).unwrap();
        lease.charge_to(account.charge(PAGE_BYTES as u64, 0).unwrap());
        let elsewhere = Arc::new(lease);
        assert_eq!(account.bytes(), PAGE_BYTES as u64);
        drop(elsewhere);
        assert_eq!(account.bytes(), 0);
    }
}
