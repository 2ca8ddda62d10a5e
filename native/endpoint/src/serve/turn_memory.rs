//! The memory that a turn fills.

use crate::limits::AT_ONCE_BYTES;
use crate::memory::{Memory, NoLease};
use faro_fabric::FilePipe;
use faro_pool::{Account, Lease, PoolError};
use faro_region::Sleep;
use std::collections::VecDeque;
use std::sync::Arc;

/// A place for the bytes of one buffer.
pub(super) enum TurnBuffer {
    Lease(Lease),
    /// Empty.
    Pipe(FilePipe),
}

impl TurnBuffer {
    fn has_room(&self, length: usize) -> bool {
        match self {
            Self::Lease(lease) => lease.capacity() >= length,
            Self::Pipe(_) => true,
        }
    }
}

/// RankPlaces for the next buffers of one job.
pub(super) struct TurnMemory {
    /// Account of the bytes on their way to the peer.
    account: Arc<Account>,
    /// RankPlaces for the next buffers, in order. A turn that has none takes memory of the arena only if it `may_lease`.
    reserved: VecDeque<TurnBuffer>,
    /// A turn may take memory of the arena: none waits for it.
    may_lease: bool,
    /// Bytes may be sent from the page cache.
    may_pipe: bool,
}

impl TurnMemory {
    pub(super) fn new(account: Arc<Account>) -> Self {
        Self {
            account,
            reserved: VecDeque::new(),
            may_lease: false,
            may_pipe: false,
        }
    }

    /// Allows or forbids a turn to take memory of the arena beyond what is reserved.
    pub(super) fn may_lease(&mut self, may: bool) {
        self.may_lease = may;
    }

    /// Returns the account of the bytes on their way to the peer.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Returns whether bytes may be sent from the page cache.
    pub(super) fn pipes(&self) -> bool {
        self.may_pipe
    }

    /// Allows or forbids pipes.
    pub(super) fn may_pipe(&mut self, may: bool) {
        self.may_pipe = may;
        if !may {
            self.reserved
                .retain(|buffer| matches!(buffer, TurnBuffer::Lease(_)));
        }
    }

    /// Reserves places for buffers of these lengths in a turn that may sleep, as many as there are now, without those that have some.
    ///
    /// # Errors
    /// There is none at all.
    pub(super) fn reserve(&mut self, lengths: Vec<usize>, memory: &Memory) -> Result<(), NoLease> {
        for length in lengths.into_iter().skip(self.reserved.len()) {
            match self.find(length, memory, self.may_pipe) {
                Ok(buffer) => self.reserved.push_back(buffer),
                Err(_) if !self.reserved.is_empty() => break,
                Err(none) => return Err(none),
            }
        }
        Ok(())
    }

    fn find(&self, length: usize, memory: &Memory, may_pipe: bool) -> Result<TurnBuffer, NoLease> {
        if may_pipe && length as u64 > AT_ONCE_BYTES {
            if let Some(pipe) = memory.try_pipe_for(&self.account)? {
                return Ok(TurnBuffer::Pipe(pipe));
            }
        }
        let lease = memory.try_lease_for(length, &self.account);
        lease.map(TurnBuffer::Lease)
    }

    /// Takes a place for the next buffer; `None` if there is none.
    pub(super) fn take(
        &mut self,
        length: usize,
        memory: &Memory,
        sleep: Sleep,
    ) -> Result<Option<TurnBuffer>, PoolError> {
        // Those of buffers that were sent from the chunk cache are left over.
        let fits = |buffer: &TurnBuffer| buffer.has_room(length);
        let reserved = self.reserved.iter().position(fits);
        if let Some(buffer) = reserved.and_then(|at| self.reserved.remove(at)) {
            return Ok(Some(buffer));
        }
        if !self.may_lease {
            return Ok(None);
        }
        // Filling a pipe may wait for a disk.
        let may_pipe = self.may_pipe && sleep == Sleep::May;
        match self.find(length, memory, may_pipe) {
            Ok(buffer) => Ok(Some(buffer)),
            Err(NoLease::HasItsShare | NoLease::Arena(PoolError::Exhausted { .. })) => Ok(None),
            Err(NoLease::Arena(error)) => Err(error),
        }
    }

    /// Keeps a lease that was not filled for the next buffer.
    pub(super) fn keep(&mut self, lease: Option<Lease>) {
        self.reserved.extend(lease.map(TurnBuffer::Lease));
    }

    /// Returns what is reserved.
    pub(super) fn clear(&mut self) {
        self.reserved.clear();
    }
}
