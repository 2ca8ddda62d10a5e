//! The arena as the endpoint's services use it.
//!
//! A resident chunk is worth keeping only while no request needs its page: a lease that the arena
//! refuses because all of it is taken makes the chunk cache release a few pages, and is tried again. A
//! lease for reading that is refused because readers have their share does not: the pages would go to
//! other purposes.

use crate::limits::{PEER_SHARE, PEER_SHARE_OF_FREE, PIPED_SHARE};
use faro_fabric::{EndpointId, FilePipe, FilePipes, PIPE_BYTES};
use faro_pool::{
    lease_sizes, Account, Charge, Lease, Pool, PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES,
};
use faro_region::ChunkCache;
use faro_sync::{lock, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Pages that the chunk cache releases for one refusal: enough that the next few leases succeed at
/// once, few enough that one large request does not empty the cache.
const RELEASED_AT_ONCE: usize = 8;

/// Way in which the bytes of map outputs reach a peer's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RegionMode {
    /// Their server writes them, from pages of the chunk cache or through other pages of the arena.
    #[default]
    Unpinned,
    /// Like `Unpinned`, but what is all in the chunk cache its peer reads, and checks afterwards whether it was still
    /// there (NP-RDMA's optimistic read).
    Optimistic,
    /// Each is mapped and registered as a whole, on demand: the device faults pages in.
    #[cfg(feature = "research")]
    Odp,
    /// Each is mapped and registered as a whole, which pins all of it.
    #[cfg(feature = "research")]
    Pinned,
}

impl RegionMode {
    /// Returns whether peers may read the server's memory.
    pub(crate) fn offers_reads(self) -> bool {
        self != Self::Unpinned
    }

    /// Returns whether map outputs are mapped as a whole.
    #[cfg(feature = "research")]
    pub(crate) fn maps_files(self) -> bool {
        matches!(self, Self::Odp | Self::Pinned)
    }

    /// The modes of this build, by name.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("unpinned", Self::Unpinned),
        ("optimistic", Self::Optimistic),
        #[cfg(feature = "research")]
        ("odp", Self::Odp),
        #[cfg(feature = "research")]
        ("pinned", Self::Pinned),
    ];
}

/// Reason why there is no lease for a peer's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoLease {
    /// Pages on their way to this peer take its share of the arena.
    HasItsShare,
    /// The arena has none.
    Arena(PoolError),
}

/// The arena, the chunk cache in it, and the modes that both are used in.
pub(crate) struct Memory {
    pub(crate) pool: Arc<Pool>,
    pub(crate) cache: Arc<ChunkCache>,
    /// For bytes of files that are sent as they are.
    pub(crate) pipes: Arc<FilePipes>,
    pub(crate) regions: RegionMode,
    /// See `Config`.
    pub(crate) stages_outputs: bool,
    /// Bytes beside the arena, of the requests that all progress threads hold for their clients, and their bound.
    pub(crate) request_bytes: Arc<AtomicU64>,
    pub(crate) request_limit: u64,
    /// Bytes that have arrived for requests, over all fabrics.
    arrived: AtomicU64,
    /// Refusals when the cache had nothing left to release but pages that peers may be reading.
    shortages: AtomicU64,
    /// Number of times that everything exposed was recalled.
    #[cfg(feature = "research")]
    recalls: AtomicU64,
    /// Bytes on their way to each peer, on all fabrics together; as long as a request of the peer is served or bytes
    /// are on their way.
    accounts: Mutex<HashMap<EndpointId, Arc<Account>>>,
}

impl Memory {
    pub(crate) fn new(
        pool: Arc<Pool>,
        cache: Arc<ChunkCache>,
        (regions, stages_outputs): (RegionMode, bool),
        request_limit: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            cache,
            pipes: FilePipes::of_process(),
            regions,
            stages_outputs,
            request_bytes: Arc::default(),
            request_limit,
            arrived: AtomicU64::new(0),
            shortages: AtomicU64::new(0),
            #[cfg(feature = "research")]
            recalls: AtomicU64::new(0),
            accounts: Mutex::default(),
        })
    }

    /// Like `Pool::try_lease`, at the chunk cache's cost.
    ///
    /// # Errors
    /// The errors of `Pool::try_lease`.
    pub(crate) fn try_lease(&self, bytes: usize, purpose: Purpose) -> Result<Lease, PoolError> {
        self.at_the_caches_cost(1, || self.pool.try_lease(bytes, purpose))
    }

    /// A lease for bytes that are sent to the peer of that account, unless it has its share.
    ///
    /// # Errors
    /// See `NoLease`.
    pub(crate) fn try_lease_for(
        &self,
        bytes: usize,
        account: &Arc<Account>,
    ) -> Result<Lease, NoLease> {
        let class = SIZE_CLASSES.into_iter().find(|class| *class >= bytes);
        let charge = account
            .charge(class.unwrap_or(bytes) as u64, self.share_of_a_peer())
            .ok_or(NoLease::HasItsShare)?;
        let mut lease = self
            .try_lease(bytes, Purpose::Serve)
            .map_err(NoLease::Arena)?;
        lease.charge_to(charge);
        Ok(lease)
    }

    /// A charge for a page of the chunk cache whose bytes are sent to the peer of that account. It has half of its share
    /// for them: a small part of a page counts as the page, which cannot be taken meanwhile.
    pub(crate) fn charge_page(&self, account: &Arc<Account>) -> Option<Charge> {
        account.charge(PAGE_BYTES as u64, self.share_of_a_peer() / 2)
    }

    /// A pipe for bytes that are sent to the peer of that account; `None` if all are in use.
    ///
    /// # Errors
    /// `HasItsShare`.
    pub(crate) fn try_pipe_for(&self, account: &Arc<Account>) -> Result<Option<FilePipe>, NoLease> {
        let Some(mut pipe) = self.pipes.try_take() else {
            return Ok(None);
        };
        let share = self.share_of_a_peer().min(PIPED_SHARE);
        let charge = account.charge(PIPE_BYTES as u64, share);
        pipe.charge_to(charge.ok_or(NoLease::HasItsShare)?);
        Ok(Some(pipe))
    }

    /// Returns the maximum bytes of pages that may be in flight to one peer. A peer that takes none
    /// keeps its pages, so the share is also a part of the free pages: however many such peers
    /// there are, the others find memory.
    fn share_of_a_peer(&self) -> u64 {
        let (whole, serve) = (
            self.pool.reach_bytes(),
            self.pool.held_bytes(Purpose::Serve),
        );
        // The cache's pages are released when a lease is refused, but for those that are on their way.
        let serve = serve.saturating_sub(self.cache.unguarded_bytes());
        let held = self.pool.held_bytes(Purpose::Read) + serve;
        let of_free = whole.saturating_sub(held) / PEER_SHARE_OF_FREE;
        (whole / PEER_SHARE).min(of_free)
    }

    /// Returns the account of the pages in flight to a peer.
    pub(crate) fn account_of(&self, peer: EndpointId) -> Arc<Account> {
        Arc::clone(
            lock(&self.accounts)
                .entry(peer)
                .or_insert_with(Account::new),
        )
    }

    /// Forgets the accounts that no request and no lease has any more.
    pub(crate) fn forget_accounts(&self) {
        lock(&self.accounts).retain(|_, account| Arc::strong_count(account) > 1);
    }

    /// Leases that hold `bytes` bytes together, with at most half as many again: all or none, so that
    /// attempts which each need several never hold some and wait for the others.
    ///
    /// # Errors
    /// As `Pool::try_lease`.
    pub(crate) fn try_lease_all(
        &self,
        bytes: u64,
        purpose: Purpose,
    ) -> Result<Vec<Lease>, PoolError> {
        let whole = usize::try_from(bytes / PAGE_BYTES as u64).unwrap_or(usize::MAX);
        // More than the arena has is refused anyway.
        let whole = whole.min((self.whole() / PAGE_BYTES as u64) as usize + 1);
        let mut lengths = vec![PAGE_BYTES; whole];
        lengths.extend(lease_sizes((bytes % PAGE_BYTES as u64) as usize));
        self.try_lease_each(&lengths, purpose)
    }

    /// A lease for each of these lengths: all or none.
    ///
    /// # Errors
    /// As `Pool::try_lease`.
    pub(crate) fn try_lease_each(
        &self,
        lengths: &[usize],
        purpose: Purpose,
    ) -> Result<Vec<Lease>, PoolError> {
        let pages = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
        self.at_the_caches_cost(pages, || self.pool.try_lease_each(lengths, purpose))
    }

    /// Tries `lease`, which takes up to `pages` pages. If all of the arena is taken, the chunk cache
    /// releases pages and `lease` is tried again; if it has none, those that peers may read are recalled.
    fn at_the_caches_cost<T>(
        &self,
        pages: u32,
        lease: impl Fn() -> Result<T, PoolError>,
    ) -> Result<T, PoolError> {
        let refused = match lease() {
            Err(error @ PoolError::Exhausted { limit, .. }) if limit == self.whole() => error,
            result => return result,
        };
        if self.cache.is_exhausted() {
            return Err(refused);
        }
        if self.cache.release(RELEASED_AT_ONCE.max(pages as usize)) > 0 {
            return lease();
        }
        self.recall();
        Err(refused)
    }

    /// Returns the bytes of the whole arena.
    pub(crate) fn whole(&self) -> u64 {
        self.pool.share_bytes(Purpose::Serve)
    }

    /// Returns whether at least half of the memory for `purpose` is held. Memory that is not needed
    /// yet is then not leased.
    pub(crate) fn is_half_full(&self, purpose: Purpose) -> bool {
        let share = self.pool.share_bytes(purpose).min(self.pool.reach_bytes());
        self.pool.held_bytes(purpose) * 2 >= share
    }

    /// Notes bytes that have arrived for a request.
    pub(crate) fn note_arrived(&self, bytes: u64) {
        self.arrived.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes that have arrived for requests.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Asks for some of the pages that are exposed to peers to be revoked.
    fn recall(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that grows when a lease was refused, so that exposed pages must be revoked.
    pub(crate) fn shortages(&self) -> u64 {
        self.shortages.load(Ordering::Relaxed)
    }

    /// Asks for everything exposed to peers to be revoked, because mapped files are exposed too and
    /// were forgotten.
    #[cfg(feature = "research")]
    pub(crate) fn recall_all(&self) {
        self.recalls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a number that grows when everything exposed must be revoked.
    #[cfg(feature = "research")]
    pub(crate) fn recalls(&self) -> u64 {
        self.recalls.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "memory_test.rs"]
mod tests;
