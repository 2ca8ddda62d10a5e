//! The memory that a turn fills.

use crate::memory::{Memory, NoLease};
use faro_pool::{Account, Lease, PoolError};
use std::collections::VecDeque;
use std::sync::Arc;

/// Leases for the next buffers of one job.
pub(super) struct TurnMemory {
    /// Account of the bytes on their way to the peer.
    account: Arc<Account>,
    /// Memory for the next buffers, in order. A turn that has none takes memory of the arena only if it `may_lease`.
    reserved: VecDeque<Lease>,
    /// A turn may take memory of the arena: none waits for it.
    may_lease: bool,
}

impl TurnMemory {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self {
            account,
            reserved: VecDeque::new(),
            may_lease: false,
        }
    }

    /// Allows or forbids a turn to take memory of the arena beyond what is reserved.
    pub(super) fn may_lease(&mut self, may: bool) {
        self.may_lease = may;
    }

    /// Leases memory for buffers of these lengths, as much as there is now, without those that have some.
    ///
    /// # Errors
    /// There is none at all.
    pub(super) fn reserve(&mut self, lengths: Vec<usize>, memory: &Memory) -> Result<(), NoLease> {
        for length in lengths.into_iter().skip(self.reserved.len()) {
            match memory.try_lease_for(length, &self.account) {
                Ok(lease) => self.reserved.push_back(lease),
                Err(_) if !self.reserved.is_empty() => break,
                Err(none) => return Err(none),
            }
        }
        Ok(())
    }

    /// Leases memory for the next buffer.
    pub(super) fn lease(
        &mut self,
        length: usize,
        memory: &Memory,
    ) -> Result<Option<Lease>, PoolError> {
        let reserved = self.reserved.pop_front();
        if let Some(lease) = reserved.filter(|lease| lease.capacity() >= length) {
            return Ok(Some(lease));
        }
        if !self.may_lease {
            return Ok(None);
        }
        match memory.try_lease_for(length, &self.account) {
            Ok(lease) => Ok(Some(lease)),
            Err(NoLease::HasItsShare | NoLease::Arena(PoolError::Exhausted { .. })) => Ok(None),
            Err(NoLease::Arena(error)) => Err(error),
        }
    }

    /// Keeps a lease that was not filled for the next buffer.
    pub(super) fn keep(&mut self, lease: Lease) {
        self.reserved.push_front(lease);
    }

    /// Returns what is reserved to the arena.
    pub(super) fn clear(&mut self) {
        self.reserved.clear();
    }
}
