//! Reads, staging, eviction and giving back, step by step.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use faro_pool::{Lease, Pool, Purpose, FRAME_BYTES};
use faro_region::{
    is_stable, Exits, Region, RegionError, RegionId, Residency, Sleep, CHUNK_BYTES, MAX_SLOTS,
};
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
    residency: Arc<Residency>,
}

impl World {
    fn new(slots: usize) -> Self {
        let pool = Pool::new(LIMIT).unwrap();
        Self {
            dir: tempfile::tempdir().unwrap(),
            residency: Residency::new(Arc::clone(&pool), slots).unwrap(),
            pool,
        }
    }

    fn region(&self, member: i64, bytes: usize) -> Region {
        let path = self.dir.path().join(member.to_string());
        std::fs::write(&path, pattern(member, bytes)).unwrap();
        Region::export(id(member), &path).unwrap()
    }

    /// Leaves the first bytes of a region's file.
    fn cut(&self, member: i64, bytes: u64) {
        let mut options = std::fs::File::options();
        let file = options
            .write(true)
            .open(self.dir.path().join(member.to_string()));
        file.unwrap().set_len(bytes).unwrap();
    }

    fn read(&self, region: &Region, offset: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        let got = self.residency.read(region, offset, &mut out, Sleep::May);
        assert_eq!(got.unwrap(), length);
        out
    }

    fn exits(&self) -> Exits {
        self.residency.counters().exits
    }
}

#[test]
fn a_bad_number_of_slots_is_named() {
    let pool = Pool::new(LIMIT).unwrap();
    for slots in [0, MAX_SLOTS + 1] {
        let error = Residency::new(Arc::clone(&pool), slots).err().unwrap();
        assert!(matches!(error, RegionError::Slots { got, .. } if got == slots));
        assert!(error.to_string().starts_with(&format!("{slots} slots")));
    }
}

#[test]
fn what_is_asked_for_often_becomes_resident_and_stays_right() {
    let world = World::new(4);
    let bytes = 3 * FRAME_BYTES + 100;
    let (region, expected) = (world.region(1, bytes), pattern(1, bytes));
    for round in 0..5u64 {
        for offset in [0, 1_000, 2 * FRAME_BYTES, bytes - 50] {
            let got = world.read(&region, offset as u64, 50);
            assert_eq!(
                got,
                expected[offset..offset + 50],
                "round {round}, {offset}"
            );
        }
    }
    let counters = world.residency.counters();
    assert!(
        counters.exits.resident > 0 && counters.exits.minor > 0,
        "{counters:?}"
    );
    assert_eq!(counters.staged, 3, "chunks 0, 2 and 3");
    assert_eq!(
        counters.staged_hits, 0,
        "all were staged because they were asked for"
    );
    assert_eq!(counters.resident_chunks, 3);
    // Across the border of a resident and an absent chunk.
    let (from, to) = (FRAME_BYTES - 10, FRAME_BYTES + 10);
    assert_eq!(world.read(&region, from as u64, 20), expected[from..to]);
    world.residency.check();
}

#[test]
fn what_is_read_once_is_never_staged() {
    let world = World::new(4);
    let region = world.region(1, 20 * FRAME_BYTES);
    for chunk in 0..20 {
        world.read(&region, chunk * CHUNK_BYTES, 4_096);
    }
    assert_eq!(world.residency.counters().staged, 0);
    assert_eq!(world.residency.counters().held_bytes, 0);
}

#[test]
fn a_read_that_may_not_sleep_brings_what_is_in_memory_and_stages_nothing() {
    let world = World::new(4);
    let (region, expected) = (world.region(1, 10_000), pattern(1, 10_000));
    for _ in 0..5 {
        let mut out = vec![0; 10_000];
        let got = world
            .residency
            .read(&region, 0, &mut out, Sleep::Never)
            .unwrap();
        assert!(got == 10_000 || !region.knows_nowait(), "just written");
        assert_eq!(out[..got], expected[..got]);
    }
    assert_eq!(world.residency.counters().staged, 0);
    assert_eq!(world.exits().major, 0);
    world.residency.stage(&region, 0, true).unwrap();
    let mut out = vec![0; 10_000];
    assert_eq!(
        world
            .residency
            .read(&region, 0, &mut out, Sleep::Never)
            .unwrap(),
        10_000
    );
    assert_eq!(out, expected);
    assert_eq!(world.exits().resident, 1);
    assert_eq!(world.residency.counters().staged_hits, 1);
}

#[test]
fn eviction_changes_the_version_before_the_bytes() {
    let world = World::new(1);
    let (a, b) = (world.region(1, FRAME_BYTES), world.region(2, FRAME_BYTES));
    assert!(world.residency.stage(&a, 0, true).unwrap());
    let (slot, version) = {
        let pin = world.residency.pin(id(1), 0).unwrap();
        assert_eq!(pin.bytes(), pattern(1, FRAME_BYTES));
        assert!(is_stable(pin.version()));
        (pin.slot(), pin.version())
    };
    assert!(world.residency.is_still(slot, version));
    let mut claim = world.residency.claim(id(2), 0).unwrap();
    assert!(
        !world.residency.is_still(slot, version),
        "nothing was overwritten yet"
    );
    assert!(world.residency.pin(id(1), 0).is_none());
    b.read(0, claim.bytes_mut()).unwrap();
    let pin = claim.publish(FRAME_BYTES);
    assert_eq!(pin.slot(), slot);
    assert!(pin.version() > version && is_stable(pin.version()));
    assert_eq!(pin.bytes(), pattern(2, FRAME_BYTES));
}

#[test]
fn the_same_bytes_under_a_new_version_are_not_the_same() {
    // A payload cannot pass for a version: equal bytes, all of them like an odd version's.
    let world = World::new(1);
    let path = world.dir.path().join("ones");
    std::fs::write(&path, vec![1; FRAME_BYTES]).unwrap();
    let regions = [3, 4].map(|member| Region::export(id(member), &path).unwrap());
    assert!(world.residency.stage(&regions[0], 0, true).unwrap());
    let (slot, version) = {
        let pin = world.residency.pin(id(3), 0).unwrap();
        (pin.slot(), pin.version())
    };
    assert!(world.residency.stage(&regions[1], 0, true).unwrap());
    assert!(!world.residency.is_still(slot, version));
}

#[test]
fn what_is_held_is_not_evicted() {
    let world = World::new(2);
    let regions: Vec<_> = (1..=3).map(|member| world.region(member, 5_000)).collect();
    for region in &regions[..2] {
        assert!(world.residency.stage(region, 0, true).unwrap());
    }
    let pins: Vec<_> = [1, 2]
        .map(|m| world.residency.pin(id(m), 0).unwrap())
        .into();
    assert!(!world.residency.stage(&regions[2], 0, true).unwrap());
    assert_eq!(
        world.read(&regions[2], 17, 1_000),
        pattern(3, 5_000)[17..1_017]
    );
    assert_eq!(pins[0].bytes(), pattern(1, 5_000));
    drop(pins);
    assert!(
        !world.residency.stage(&regions[2], 0, false).unwrap(),
        "not at others' cost"
    );
    assert!(world.residency.stage(&regions[2], 0, true).unwrap());
    assert_eq!(world.residency.counters().evictions, 1);
}

#[test]
fn what_was_used_since_the_hand_came_by_stays() {
    let world = World::new(3);
    let regions: Vec<_> = (1..=5).map(|member| world.region(member, 5_000)).collect();
    for region in &regions[..3] {
        world.residency.stage(region, 0, true).unwrap();
    }
    // The hand clears all three and takes the first.
    world.residency.stage(&regions[3], 0, true).unwrap();
    assert!(world.residency.pin(id(1), 0).is_none());
    drop(world.residency.pin(id(2), 0).unwrap());
    world.residency.stage(&regions[4], 0, true).unwrap();
    assert!(world.residency.pin(id(2), 0).is_some(), "second chance");
    assert!(world.residency.pin(id(3), 0).is_none());
}

#[test]
fn what_is_forgotten_cannot_be_believed_and_what_is_held_lasts() {
    let world = World::new(2);
    let region = world.region(1, 5_000);
    world.residency.stage(&region, 0, true).unwrap();
    let pin = world.residency.pin(id(1), 0).unwrap();
    let (slot, version) = (pin.slot(), pin.version());
    world.residency.forget(8);
    assert!(world.residency.is_still(slot, version), "another group");
    world.residency.forget(7);
    assert!(!world.residency.is_still(slot, version));
    assert!(world.residency.pin(id(1), 0).is_none());
    assert_eq!(pin.bytes(), pattern(1, 5_000));
    drop(pin);
    world.residency.check();
    assert!(world.residency.stage(&region, 0, true).unwrap());
}

#[test]
fn an_abandoned_claim_leaves_nothing() {
    let world = World::new(1);
    let region = world.region(1, 5_000);
    world.cut(1, 100);
    let error = world.residency.stage(&region, 0, true).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(world.residency.pin(id(1), 0).is_none());
    let whole = world.region(2, 5_000);
    assert!(
        world.residency.stage(&whole, 0, false).unwrap(),
        "the slot is free"
    );
    world.residency.check();
}

#[test]
fn a_chunk_that_cannot_be_staged_is_read_where_it_can_be() {
    let world = World::new(1);
    let region = world.region(1, 5_000);
    world.cut(1, 4_000);
    for _ in 0..5 {
        assert_eq!(world.read(&region, 0, 100), pattern(1, 5_000)[..100]);
    }
    assert_eq!(world.residency.counters().staged, 0);
    world.residency.check();
}

#[test]
fn frames_go_back_when_the_arena_is_short_but_not_those_of_others() {
    let world = World::new(8);
    let regions: Vec<_> = (1..=4).map(|member| world.region(member, 5_000)).collect();
    for region in &regions {
        world.residency.stage(region, 0, true).unwrap();
    }
    let exposed: Arc<Lease> = Arc::clone(world.residency.pin(id(1), 0).unwrap().frame());
    let held = world.residency.pin(id(2), 0).unwrap();
    assert_eq!(world.residency.give_back(10), 2);
    assert!(
        world.residency.pin(id(1), 0).is_some(),
        "a peer may be reading it"
    );
    assert_eq!(held.bytes(), pattern(2, 5_000));
    assert!(world.residency.pin(id(3), 0).is_none());
    assert_eq!(
        world.residency.counters().held_bytes,
        2 * FRAME_BYTES as u64 + 4_096
    );
    drop((exposed, held));
    assert_eq!(world.residency.give_back(10), 2);
    world.residency.check();
}

#[test]
fn the_cache_takes_no_more_than_three_quarters_of_the_arena() {
    let world = World::new(1_000);
    let frames = (LIMIT / 4 * 3 / FRAME_BYTES as u64) as i64;
    for member in 0..frames + 20 {
        world
            .residency
            .stage(&world.region(member, 10), 0, true)
            .unwrap();
    }
    let counters = world.residency.counters();
    assert!(counters.held_bytes <= LIMIT / 4 * 3 + 4_096, "{counters:?}");
    assert!(counters.evictions >= 20, "{counters:?}");
    assert!(world.pool.try_lease(FRAME_BYTES, Purpose::Serve).is_ok());
}

#[test]
fn ten_thousand_cycles_leave_nothing() {
    let world = World::new(4);
    let region = world.region(1, 2 * FRAME_BYTES);
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let run = |cycles: u64| {
        for cycle in 0..cycles {
            let again = Region::export(id(2), &world.dir.path().join("1")).unwrap();
            world.residency.stage(&again, cycle % 2, true).unwrap();
            world.read(&again, cycle % 1_000, 64);
            drop(world.residency.claim(id(3), cycle));
            world.residency.forget(7);
        }
        world.residency.give_back(100);
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
    world.residency.check();
}
