//! Compares random exports, reads, stagings, evictions, forgets, releases and pulls with the files
//! themselves.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use faro_pool::{Pool, PAGE_BYTES};
use faro_region::{ChunkCache, ReadGuard, Region, RegionId, Sleep, CHUNK_BYTES};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

const REGIONS: usize = 5;
const BYTES: usize = 2 * PAGE_BYTES + 777;

#[derive(Debug, Clone)]
enum Step {
    Read {
        region: usize,
        offset: usize,
        length: usize,
        sleep: bool,
    },
    Prefetch {
        region: usize,
        chunk: u64,
        evict: bool,
    },
    Hold {
        region: usize,
        chunk: u64,
    },
    LetGo,
    /// A read by a peer that learned its slot and version some time ago.
    Pull,
    Abandon {
        region: usize,
        chunk: u64,
    },
    Forget {
        group: u32,
    },
    Release {
        pages: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (region, chunk) = (0..REGIONS, 0..3u64);
    prop_oneof![
        4 => (region.clone(), 0..BYTES, 1..PAGE_BYTES, any::<bool>())
            .prop_map(|(region, offset, length, sleep)| Step::Read { region, offset, length, sleep }),
        4 => (region.clone(), chunk.clone(), any::<bool>())
            .prop_map(|(region, chunk, evict)| Step::Prefetch { region, chunk, evict }),
        2 => (region.clone(), chunk.clone()).prop_map(|(region, chunk)| Step::Hold { region, chunk }),
        2 => Just(Step::LetGo),
        3 => Just(Step::Pull),
        1 => (region, chunk).prop_map(|(region, chunk)| Step::Abandon { region, chunk }),
        1 => (0..2u32).prop_map(|group| Step::Forget { group }),
        1 => (1..4usize).prop_map(|pages| Step::Release { pages }),
    ]
}

fn id(region: usize) -> RegionId {
    RegionId {
        group: region as u32 % 2,
        member: region as i64,
    }
}

fn chunk_of(data: &[u8], chunk: u64) -> &[u8] {
    let from = (chunk * CHUNK_BYTES) as usize;
    &data[from..data.len().min(from + PAGE_BYTES)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn every_byte_that_is_believed_is_the_files(
        slots in 1..6usize,
        steps in proptest::collection::vec(step(), 1..80),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let data: Vec<Vec<u8>> = (0..REGIONS)
            .map(|r| (0..BYTES).map(|i| (i * 31 + i / 251 + r * 97) as u8).collect())
            .collect();
        let regions: Vec<Region> = data.iter().enumerate().map(|(r, bytes)| {
            let path = dir.path().join(r.to_string());
            std::fs::write(&path, bytes).unwrap();
            Region::export(id(r), &path).unwrap()
        }).collect();
        let pool = Pool::new(32 << 20).unwrap();
        let cache = ChunkCache::new(Arc::clone(&pool), slots).unwrap();
        let mut held: Vec<(usize, u64, ReadGuard)> = Vec::new();
        // Slot, version, page, region and chunk, as an owner sends them to a peer.
        let mut announced = Vec::new();
        for step in steps {
            match step {
                Step::Read { region, offset, length, sleep } => {
                    let length = length.min(BYTES - offset);
                    let mut out = vec![0; length];
                    let sleep = if sleep { Sleep::May } else { Sleep::Never };
                    let got = cache.read(&regions[region], offset as u64, &mut out, sleep).unwrap();
                    prop_assert!(got == length || sleep == Sleep::Never);
                    prop_assert!(out[..got] == data[region][offset..offset + got]);
                }
                Step::Prefetch { region, chunk, evict } => {
                    if !evict {
                        cache.prefetch(&regions[region], chunk).unwrap();
                    } else if let Some(mut fill) = cache.begin_fill(id(region), chunk) {
                        let bytes = chunk_of(&data[region], chunk);
                        fill.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                        drop(fill.publish(bytes.len()));
                    }
                }
                Step::Hold { region, chunk } => if let Some(guard) = cache.get(id(region), chunk) {
                    prop_assert!(guard.bytes() == chunk_of(&data[region], chunk));
                    // A page that was shown to a peer stays; others may be wanted back.
                    if guard.slot() % 2 == 0 {
                        announced.push((guard.slot(), guard.version(), Arc::clone(guard.page()), region, chunk));
                    }
                    held.push((region, chunk, guard));
                },
                Step::LetGo => { held.pop(); }
                Step::Pull => for (slot, version, page, region, chunk) in &announced {
                    let expected = chunk_of(&data[*region], *chunk);
                    // One thread means that nothing is overwritten meanwhile: first a copy, then
                    // the version.
                    let copy = page.bytes()[..expected.len()].to_vec();
                    if cache.is_still(*slot, *version) {
                        prop_assert!(copy == expected, "believed and wrong");
                    }
                },
                Step::Abandon { region, chunk } => if let Some(mut fill) = cache.begin_fill(id(region), chunk) {
                    fill.bytes_mut().fill(0xee);
                },
                Step::Forget { group } => cache.forget(group),
                Step::Release { pages } => { cache.release(pages); }
            }
            cache.check();
            let guarded: BTreeSet<usize> = held.iter().map(|(.., guard)| guard.slot()).collect();
            let versions = cache.versions().map_or(0, |versions| versions.capacity());
            let unguarded = cache.counters().held_bytes - (guarded.len() * PAGE_BYTES + versions) as u64;
            prop_assert_eq!(cache.unguarded_bytes(), unguarded);
            prop_assert_eq!(pool.counters().leased_bytes, cache.counters().held_bytes);
            for (region, chunk, guard) in &held {
                prop_assert!(guard.bytes() == chunk_of(&data[*region], *chunk), "changed under a guard");
            }
        }
        drop((held, announced));
        cache.release(slots);
        prop_assert!(cache.counters().held_bytes <= 4096, "the versions");
        drop(cache);
        prop_assert_eq!(pool.counters().leased_bytes, 0);
    }
}
