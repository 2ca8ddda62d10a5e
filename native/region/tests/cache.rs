//! Tests reads, staging, eviction and the return of pages, step by step.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use faro_pool::{Lease, Pool, Purpose, PAGE_BYTES};
use faro_region::{
    is_stable, ChunkCache, ReadSources, Region, RegionError, RegionId, Sleep, StagedFile,
    CHUNK_BYTES, MAX_SLOTS,
};
use std::collections::HashMap;
use std::sync::Arc;
use tempfile::TempDir;

const LIMIT: u64 = 64 << 20;

fn id(member: i64) -> RegionId {
    RegionId { group: 7, member }
}

fn pattern(member: i64, bytes: usize) -> Vec<u8> {
    let seed = member as u32 + 1;
    (0..bytes as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 21) as u8)
        .collect()
}

struct World {
    dir: TempDir,
    pool: Arc<Pool>,
    cache: Arc<ChunkCache>,
}

impl World {
    fn new(slots: usize) -> Self {
        let pool = Pool::new(LIMIT).unwrap();
        Self {
            dir: tempfile::tempdir().unwrap(),
            cache: ChunkCache::new(Arc::clone(&pool), slots).unwrap(),
            pool,
        }
    }

    fn region(&self, member: i64, bytes: usize) -> Region {
        let path = self.dir.path().join(member.to_string());
        std::fs::write(&path, pattern(member, bytes)).unwrap();
        Region::export(id(member), &path).unwrap()
    }

    /// Fills a slot with a chunk, also in place of another one. Returns whether there is a slot.
    fn fill(&self, region: &Region, chunk: u64) -> bool {
        let Some(mut fill) = self.cache.begin_fill(region.id(), chunk) else {
            return false;
        };
        let at = chunk * CHUNK_BYTES;
        let length = CHUNK_BYTES.min(region.bytes() - at) as usize;
        let bytes = &mut fill.bytes_mut()[..length];
        region.open().unwrap().read(at, bytes).unwrap();
        drop(fill.publish(length));
        true
    }

    /// Truncates a region's file to its first `bytes` bytes.
    fn cut(&self, member: i64, bytes: u64) {
        let mut options = std::fs::File::options();
        let file = options
            .write(true)
            .open(self.dir.path().join(member.to_string()));
        file.unwrap().set_len(bytes).unwrap();
    }

    fn read(&self, region: &Region, offset: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        let got = self.cache.read(region, offset, &mut out, Sleep::May);
        assert_eq!(got.unwrap(), length);
        out
    }

    fn exits(&self) -> ReadSources {
        self.cache.counters().exits
    }
}

#[test]
fn a_bad_number_of_slots_is_named() {
    let pool = Pool::new(LIMIT).unwrap();
    for slots in [0, MAX_SLOTS + 1] {
        let error = ChunkCache::new(Arc::clone(&pool), slots).err().unwrap();
        assert!(matches!(error, RegionError::Slots { got, .. } if got == slots));
        assert!(error.to_string().starts_with(&format!("{slots} slots")));
    }
}

#[test]
fn what_is_asked_for_often_becomes_resident_and_stays_right() {
    let world = World::new(4);
    let bytes = 3 * PAGE_BYTES + 100;
    let (region, expected) = (world.region(1, bytes), pattern(1, bytes));
    for round in 0..5u64 {
        for offset in [0, 1_000, 2 * PAGE_BYTES, bytes - 50] {
            let got = world.read(&region, offset as u64, 50);
            assert_eq!(
                got,
                expected[offset..offset + 50],
                "round {round}, {offset}"
            );
        }
    }
    let counters = world.cache.counters();
    assert!(
        counters.exits.resident > 0 && counters.exits.minor > 0,
        "{counters:?}"
    );
    assert_eq!(counters.prefetched, 3, "chunks 0, 2 and 3");
    assert_eq!(
        counters.prefetch_hits, 0,
        "all were staged because they were asked for"
    );
    assert_eq!(counters.cached_chunks, 3);
    // The range crosses from a resident chunk to an absent one.
    let (from, to) = (PAGE_BYTES - 10, PAGE_BYTES + 10);
    assert_eq!(world.read(&region, from as u64, 20), expected[from..to]);
    world.cache.check();
}

#[test]
fn what_is_read_once_is_never_staged() {
    let world = World::new(4);
    let region = world.region(1, 20 * PAGE_BYTES);
    for chunk in 0..20 {
        world.read(&region, chunk * CHUNK_BYTES, 4_096);
    }
    assert_eq!(world.cache.counters().prefetched, 0);
    assert_eq!(world.cache.counters().held_bytes, 0);
}

#[test]
fn a_read_that_may_not_sleep_brings_what_is_in_memory_and_stages_nothing() {
    let world = World::new(4);
    let (region, expected) = (world.region(1, 10_000), pattern(1, 10_000));
    for _ in 0..5 {
        let mut out = vec![0; 10_000];
        let got = world
            .cache
            .read(&region, 0, &mut out, Sleep::Never)
            .unwrap();
        assert!(got == 10_000 || !region.knows_nowait(), "just written");
        assert_eq!(out[..got], expected[..got]);
    }
    assert_eq!(world.cache.counters().prefetched, 0);
    assert_eq!(world.exits().major, 0);
    world.cache.prefetch(&region, 0).unwrap();
    let mut out = vec![0; 10_000];
    assert_eq!(
        world
            .cache
            .read(&region, 0, &mut out, Sleep::Never)
            .unwrap(),
        10_000
    );
    assert_eq!(out, expected);
    assert_eq!(world.exits().resident, 1);
    assert_eq!(world.cache.counters().prefetch_hits, 1);
}

#[test]
fn eviction_changes_the_version_before_the_bytes() {
    let world = World::new(1);
    let (a, b) = (world.region(1, PAGE_BYTES), world.region(2, PAGE_BYTES));
    assert!(world.fill(&a, 0));
    let (slot, version) = {
        let guard = world.cache.get(id(1), 0).unwrap();
        assert_eq!(guard.bytes(), pattern(1, PAGE_BYTES));
        assert!(is_stable(guard.version()));
        (guard.slot(), guard.version())
    };
    assert!(world.cache.is_still(slot, version));
    let mut fill = world.cache.begin_fill(id(2), 0).unwrap();
    assert!(
        !world.cache.is_still(slot, version),
        "nothing was overwritten yet"
    );
    assert!(world.cache.get(id(1), 0).is_none());
    b.open().unwrap().read(0, fill.bytes_mut()).unwrap();
    let guard = fill.publish(PAGE_BYTES);
    assert_eq!(guard.slot(), slot);
    assert!(guard.version() > version && is_stable(guard.version()));
    assert_eq!(guard.bytes(), pattern(2, PAGE_BYTES));
}

#[test]
fn the_same_bytes_under_a_new_version_are_not_the_same() {
    // The bytes must not be mistaken for a version: all of them are equal, like those of an odd
    // version.
    let world = World::new(1);
    let path = world.dir.path().join("ones");
    std::fs::write(&path, vec![1; PAGE_BYTES]).unwrap();
    let regions = [3, 4].map(|member| Region::export(id(member), &path).unwrap());
    assert!(world.fill(&regions[0], 0));
    let (slot, version) = {
        let guard = world.cache.get(id(3), 0).unwrap();
        (guard.slot(), guard.version())
    };
    assert!(world.fill(&regions[1], 0));
    assert!(!world.cache.is_still(slot, version));
}

#[test]
fn what_is_held_is_not_evicted() {
    let world = World::new(2);
    let regions: Vec<_> = (1..=3).map(|member| world.region(member, 5_000)).collect();
    for region in &regions[..2] {
        assert!(world.fill(region, 0));
    }
    let readers: Vec<_> = [1, 2].map(|m| world.cache.get(id(m), 0).unwrap()).into();
    assert!(!world.fill(&regions[2], 0));
    assert_eq!(
        world.read(&regions[2], 17, 1_000),
        pattern(3, 5_000)[17..1_017]
    );
    assert_eq!(readers[0].bytes(), pattern(1, 5_000));
    drop(readers);
    assert!(
        !world.cache.prefetch(&regions[2], 0).unwrap(),
        "not at others' cost"
    );
    assert!(world.fill(&regions[2], 0));
    assert_eq!(world.cache.counters().evictions, 1);
}

#[test]
fn what_was_used_since_the_hand_came_by_stays() {
    let world = World::new(3);
    let regions: Vec<_> = (1..=5).map(|member| world.region(member, 5_000)).collect();
    for region in &regions[..3] {
        world.fill(region, 0);
    }
    // The hand clears all three marks and takes the first slot.
    world.fill(&regions[3], 0);
    assert!(world.cache.get(id(1), 0).is_none());
    drop(world.cache.get(id(2), 0).unwrap());
    world.fill(&regions[4], 0);
    assert!(world.cache.get(id(2), 0).is_some(), "second chance");
    assert!(world.cache.get(id(3), 0).is_none());
}

/// Reads map outputs as reduce tasks do; there are three times as many as slots.
#[test]
fn regions_that_are_read_in_turn_do_not_evict_each_other() {
    let world = World::new(4);
    let regions: Vec<_> = (0..12).map(|member| world.region(member, 5_000)).collect();
    for part in 0..200 {
        for (region, member) in regions.iter().zip(0..) {
            let at = part * 20;
            let bytes = world.read(region, at as u64, 20);
            assert_eq!(bytes, pattern(member, 5_000)[at..at + 20]);
        }
    }
    let counters = world.cache.counters();
    // Chunks are worth a slot after two rounds; a few change places while the counts are small.
    assert!(counters.evictions < 20, "{counters:?}");
    assert!(counters.exits.resident > 180 * 4, "{counters:?}");
    // A chunk that is then asked for by all must still get a slot.
    for _ in 0..400 {
        world.read(&regions[11], 0, 20);
    }
    assert!(world.cache.has(id(11), 0));
}

#[test]
fn what_is_forgotten_cannot_be_believed_and_what_is_held_lasts() {
    let world = World::new(2);
    let region = world.region(1, 5_000);
    world.fill(&region, 0);
    let guard = world.cache.get(id(1), 0).unwrap();
    let (slot, version) = (guard.slot(), guard.version());
    world.cache.forget(8);
    assert!(world.cache.is_still(slot, version), "another group");
    world.cache.forget(7);
    assert!(!world.cache.is_still(slot, version));
    assert!(world.cache.get(id(1), 0).is_none());
    assert_eq!(guard.bytes(), pattern(1, 5_000));
    drop(guard);
    world.cache.check();
    assert!(world.fill(&region, 0));
}

#[test]
fn an_abandoned_fill_leaves_nothing() {
    let world = World::new(1);
    let region = world.region(1, 5_000);
    world.cut(1, 100);
    let error = world.cache.prefetch(&region, 0).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(world.cache.get(id(1), 0).is_none());
    let whole = world.region(2, 5_000);
    assert!(world.cache.prefetch(&whole, 0).unwrap(), "the slot is free");
    world.cache.check();
}

#[test]
fn a_chunk_that_cannot_be_staged_is_read_where_it_can_be() {
    let world = World::new(1);
    let region = world.region(1, 5_000);
    world.cut(1, 4_000);
    for _ in 0..5 {
        assert_eq!(world.read(&region, 0, 100), pattern(1, 5_000)[..100]);
    }
    assert_eq!(world.cache.counters().prefetched, 0);
    world.cache.check();
}

#[test]
fn pages_go_back_when_the_arena_is_short_but_not_those_of_others() {
    let world = World::new(8);
    let regions: Vec<_> = (1..=4).map(|member| world.region(member, 5_000)).collect();
    for region in &regions {
        world.fill(region, 0);
    }
    let exposed: Arc<Lease> = Arc::clone(world.cache.get(id(1), 0).unwrap().page());
    let held = world.cache.get(id(2), 0).unwrap();
    assert_eq!(world.cache.release(10), 2);
    assert!(
        world.cache.get(id(1), 0).is_some(),
        "a peer may be reading it"
    );
    assert_eq!(held.bytes(), pattern(2, 5_000));
    assert!(world.cache.get(id(3), 0).is_none());
    assert_eq!(
        world.cache.counters().held_bytes,
        2 * PAGE_BYTES as u64 + faro_pool::SIZE_CLASSES[0] as u64
    );
    drop((exposed, held));
    assert_eq!(world.cache.release(10), 2);
    world.cache.check();
}

/// A shortage that found no page takes that of the next guard that ends, and only if nobody else has the page.
#[test]
fn a_guard_that_ends_gives_its_page_to_a_shortage() {
    let world = World::new(8);
    let regions: Vec<_> = (1..=3).map(|member| world.region(member, 5_000)).collect();
    for region in &regions {
        world.fill(region, 0);
    }
    let guard = |member| world.cache.get(id(member), 0).unwrap();
    let (first, again, second, third) = (guard(1), guard(1), guard(2), guard(3));
    let exposed = Arc::clone(second.page());
    assert_eq!(world.cache.unguarded_bytes(), 0);
    drop(guard(3));
    assert!(world.cache.has(id(3), 0), "no page was wanted");
    assert_eq!(world.cache.release(10), 0);
    assert!(world.cache.is_exhausted());
    drop((first, second));
    assert!(world.cache.is_exhausted(), "another guard, and a peer");
    drop(again);
    assert!(!world.cache.has(id(1), 0) && !world.cache.is_exhausted());
    // The shortage got one.
    drop(third);
    assert!(world.cache.has(id(3), 0) && world.cache.has(id(2), 0));
    world.cache.check();
    assert_eq!(world.cache.unguarded_bytes(), 2 * PAGE_BYTES as u64);
    assert_eq!(world.cache.counters().pages_released, 1);
    drop(exposed);
    assert_eq!(world.cache.release(10), 2);
}

/// A chunk that was forgotten while a guard held it has its page in an empty slot afterwards, or in none.
#[test]
fn a_forgotten_chunk_gives_its_page_to_a_shortage() {
    let world = World::new(2);
    let region = world.region(1, 5_000);
    world.fill(&region, 0);
    let guard = world.cache.get(id(1), 0).unwrap();
    world.cache.forget(7);
    assert_eq!(world.cache.release(1), 0);
    drop(guard);
    world.cache.check();
    assert_eq!(world.cache.counters().pages_released, 1);
    assert!(world.fill(&region, 0));
}

#[test]
fn the_cache_takes_no_more_than_three_quarters_of_the_arena() {
    let world = World::new(1_000);
    let pages = (LIMIT / 4 * 3 / PAGE_BYTES as u64) as i64;
    for member in 0..pages + 20 {
        world.fill(&world.region(member, 10), 0);
    }
    let counters = world.cache.counters();
    assert!(counters.held_bytes <= LIMIT / 4 * 3 + 4_096, "{counters:?}");
    assert!(counters.evictions >= 20, "{counters:?}");
    assert!(world.pool.try_lease(PAGE_BYTES, Purpose::Serve).is_ok());
}

#[test]
fn ten_thousand_cycles_leave_nothing() {
    let world = World::new(4);
    let region = world.region(1, 2 * PAGE_BYTES);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let run = |cycles: u64| {
        for cycle in 0..cycles {
            let again = Region::export(id(2), &world.dir.path().join("1")).unwrap();
            world.fill(&again, cycle % 2);
            world.read(&again, cycle % 1_000, 64);
            drop(world.cache.begin_fill(id(3), cycle));
            world.cache.forget(7);
        }
        world.cache.release(100);
        (
            world.pool.counters().held_bytes,
            world.pool.counters().leased_bytes,
        )
    };
    drop(region);
    let (before, open) = (run(10), descriptors());
    assert_eq!(run(10_000), before);
    // Other tests of this program open files of their own meanwhile, but not thousands.
    assert!(descriptors() < open + 100);
    world.cache.check();
}

fn staged(cache: &Arc<ChunkCache>, mut bytes: &[u8]) -> StagedFile {
    let mut staged = cache.stage();
    while !bytes.is_empty() {
        let room = staged.room();
        // `room` may be shorter than the rest of the bytes.
        let now = room.len().min(bytes.len()).min(100_000);
        if now == 0 {
            break;
        }
        room[..now].copy_from_slice(&bytes[..now]);
        staged.filled(now);
        bytes = &bytes[now..];
    }
    staged
}

#[test]
fn a_staged_file_is_resident_without_a_read() {
    let world = World::new(4);
    for bytes in [1, PAGE_BYTES, 2 * PAGE_BYTES + 100] {
        let member = bytes as i64;
        let expected = pattern(member, bytes);
        let mut staged = staged(&world.cache, &expected);
        // The room is asked for twice and not used.
        assert!(!staged.room().is_empty() && !staged.room().is_empty());
        let region = world.region(member, bytes);
        assert_eq!(staged.publish(&region), bytes.div_ceil(PAGE_BYTES));
        // The bytes must not come from the file.
        world.cut(member, 0);
        assert_eq!(world.read(&region, 0, bytes), expected);
        world.cache.forget(7);
        world.cache.check();
    }
    assert_eq!(world.exits().minor + world.exits().major, 0);
}

#[test]
fn what_is_not_staged_is_read_from_the_file() {
    let world = World::new(4);
    let bytes = 3 * PAGE_BYTES;
    let expected = pattern(1, bytes);
    // The second chunk is not complete.
    let mut staged = staged(&world.cache, &expected[..PAGE_BYTES + 10]);
    staged.end();
    assert!(staged.room().is_empty());
    let region = world.region(1, bytes);
    assert_eq!(staged.publish(&region), 1);
    assert_eq!(world.read(&region, 0, bytes), expected);
    // Another file, which is shorter, cannot have these bytes.
    let staged = self::staged(&world.cache, &expected);
    assert_eq!(staged.publish(&world.region(2, 100)), 0);
    assert_eq!(world.read(&world.region(2, 100), 0, 100), pattern(2, 100));
    world.cache.check();
}

#[test]
fn staged_files_take_half_of_the_arena_and_give_it_back() {
    let world = World::new(4);
    let bytes = pattern(1, LIMIT as usize);
    let first = staged(&world.cache, &bytes);
    let held = world.pool.counters().held_bytes;
    assert!(held > 0 && held <= LIMIT / 2, "{held} of {LIMIT}");
    assert!(world.cache.stage().room().is_empty());
    drop(first);
    assert_eq!(world.pool.counters().leased_bytes, 0);
    // Existing empty slots are used, and no slot is evicted for it.
    let region = world.region(1, 6 * PAGE_BYTES);
    let first = staged(&world.cache, &pattern(1, 6 * PAGE_BYTES));
    assert_eq!(first.publish(&region), 4);
    let region = world.region(2, PAGE_BYTES);
    let second = staged(&world.cache, &pattern(2, PAGE_BYTES));
    assert_eq!(second.publish(&region), 0);
    assert_eq!(world.cache.counters().evictions, 0);
    world.cache.forget(7);
    let region = world.region(3, PAGE_BYTES);
    let third = staged(&world.cache, &pattern(3, PAGE_BYTES));
    assert_eq!(third.publish(&region), 1);
    assert_eq!(world.read(&region, 0, PAGE_BYTES), pattern(3, PAGE_BYTES));
    world.cache.check();
}

/// A fabric holds each page that it has shown to a peer until it is told to revoke it. Over
/// shuffles that are staged, shown and forgotten, no page may be lost, and staging must go on.
#[test]
fn pages_that_peers_were_shown_stay_in_their_slots() {
    let world = World::new(128);
    let bytes = 24 * PAGE_BYTES;
    let mut shown = HashMap::new();
    for member in 0..8 {
        let expected = pattern(member, bytes);
        let region = world.region(member, bytes);
        let staged = staged(&world.cache, &expected);
        assert_eq!(staged.publish(&region), 24, "shuffle {member}");
        for chunk in 0..24 {
            let guard = world.cache.get(region.id(), chunk).unwrap();
            let at = chunk as usize * PAGE_BYTES;
            assert!(guard.bytes() == &expected[at..at + PAGE_BYTES]);
            let page = Arc::clone(guard.page());
            shown.insert(page.start().as_ptr() as usize, page);
        }
        world.cache.forget(7);
        world.cache.check();
        assert_eq!(
            world.pool.counters().leased_bytes,
            world.cache.counters().held_bytes,
            "shuffle {member}: all pages are those of slots"
        );
    }
    for address in world.cache.shown_pages(usize::MAX) {
        assert!(shown.remove(&address).is_some());
    }
    assert!(shown.is_empty(), "{} pages are never revoked", shown.len());
    world.cache.release(usize::MAX);
    assert_eq!(world.cache.unguarded_bytes(), 0);
}
