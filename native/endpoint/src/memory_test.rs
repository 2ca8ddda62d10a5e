use super::*;
use faro_region::{Region, RegionId, CHUNK_BYTES};

#[test]
fn a_refusal_of_several_leases_wakes_nobody() {
    let pool = Pool::new(2 * faro_pool::SLAB_BYTES as u64).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 8).unwrap();
    let memory = Memory::new(
        Arc::clone(&pool),
        cache,
        (RegionMode::Unpinned, false),
        1 << 20,
    );
    let woken = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&woken);
    pool.on_release(Box::new(move || {
        counts.fetch_add(1, Ordering::Relaxed);
    }));
    let page = || memory.try_lease(PAGE_BYTES, Purpose::Read).ok();
    let mut held: Vec<Lease> = std::iter::from_fn(page).collect();
    let returns = |held: &mut Vec<Lease>| {
        drop(held.pop());
        woken.swap(0, Ordering::Relaxed)
    };
    assert_eq!(returns(&mut held), 1, "a thread was refused");
    // A page is free, which has room for the smaller one of the two leases.
    let bytes = (PAGE_BYTES + 3_000) as u64;
    for _ in 0..3 {
        assert!(memory.try_lease_all(bytes, Purpose::Read).is_err());
        let each = [PAGE_BYTES, 3_000];
        assert!(memory.try_lease_each(&each, Purpose::Read).is_err());
    }
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    assert_eq!(returns(&mut held), 1);
    let leases = memory.try_lease_all(bytes, Purpose::Read);
    assert_eq!(leases.map(|leases| leases.len()).ok(), Some(2));
}

/// Returns a file of so many chunks, in a directory that goes with the first value.
fn exported(chunks: usize) -> (tempfile::TempDir, Region) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![7; chunks * CHUNK_BYTES as usize]).unwrap();
    let id = RegionId {
        group: 0,
        member: 0,
    };
    let region = Region::export(id, &path).unwrap();
    (dir, region)
}

#[test]
fn chunks_stay_when_readers_have_their_share_and_go_when_all_is_taken() {
    let (_dir, region) = exported(8);
    let pool = Pool::new(4 * faro_pool::SLAB_BYTES as u64).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 8).unwrap();
    let memory = Memory::new(
        pool,
        Arc::clone(&cache),
        (RegionMode::Unpinned, false),
        1 << 20,
    );
    for chunk in 0..8 {
        assert!(cache.prefetch(&region, chunk).unwrap());
    }
    let lease = |purpose| memory.try_lease(PAGE_BYTES, purpose).ok();
    let all = |purpose| std::iter::from_fn(|| lease(purpose)).collect::<Vec<_>>();
    let read = all(Purpose::Read);
    assert_eq!(read.len() * PAGE_BYTES, 3 * faro_pool::SLAB_BYTES);
    assert_eq!(
        cache.counters().cached_chunks,
        8,
        "readers may not have them"
    );
    assert_eq!(memory.shortages(), 0);
    let serve = all(Purpose::Serve);
    assert_eq!(cache.counters().cached_chunks, 0);
    // All but the page that has the versions.
    assert_eq!(read.len() + serve.len() + 1, 4 * 64);
    assert_eq!(memory.shortages(), 1, "asked once until something changes");
    memory.cache.look_again();
    assert!(lease(Purpose::Serve).is_none());
    assert_eq!(memory.shortages(), 2);
}

/// All pages but those of the cache are leased, and a write sends from each of these. The end of the write, and no time,
/// gives a page to the one that waits, and wakes it once.
#[test]
fn the_end_of_a_write_gives_its_page_to_a_lease_that_waits() {
    let (_dir, region) = exported(3);
    let pool = Pool::new(2 * faro_pool::SLAB_BYTES as u64).unwrap();
    let cache = ChunkCache::new(Arc::clone(&pool), 3).unwrap();
    let modes = (RegionMode::Unpinned, false);
    let memory = Memory::new(Arc::clone(&pool), Arc::clone(&cache), modes, 1 << 20);
    for chunk in 0..3 {
        assert!(cache.prefetch(&region, chunk).unwrap());
    }
    let mut guards: Vec<_> = (0..3)
        .map(|chunk| cache.get(region.id(), chunk).unwrap())
        .collect();
    // Two writes of one page.
    guards.push(cache.get(region.id(), 2).unwrap());
    let woken = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&woken);
    pool.on_release(Box::new(move || {
        counts.fetch_add(1, Ordering::Relaxed);
    }));
    let page = || memory.try_lease(PAGE_BYTES, Purpose::Serve).ok();
    let mut held: Vec<Lease> = std::iter::from_fn(page).collect();
    assert_eq!(cache.counters().cached_chunks, 3, "they are on their way");
    drop(guards.pop());
    assert_eq!(
        woken.load(Ordering::Relaxed),
        0,
        "another write sends from it"
    );
    drop(guards.pop());
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    held.extend(page());
    assert_eq!(cache.counters().cached_chunks, 2);
    // No lease waits when the next write ends, so its page stays in the cache.
    drop(guards.pop());
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert_eq!(cache.counters().cached_chunks, 2);
    held.extend(page());
    assert_eq!(cache.counters().cached_chunks, 1, "taken from the cache");
    assert!(page().is_none());
    woken.store(0, Ordering::Relaxed);
    drop(guards);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    assert!(page().is_some());
}
