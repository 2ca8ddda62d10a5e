//! Models of the version protocol and of the chunk cache's table, explored by loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p faro-region --test loom --release`
//!
//! Each model was tried without the line that it guards, and failed (the comment on each names the
//! line).
#![cfg(loom)]

use faro_region::table::{NoSlot, Table};
use faro_region::version::{begin, publish, still};
use faro_region::RegionId;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

const CHUNKS: [(RegionId, u64); 2] = [
    (
        RegionId {
            group: 0,
            member: 0,
        },
        0,
    ),
    (
        RegionId {
            group: 0,
            member: 1,
        },
        0,
    ),
];

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// A slot of two words, published under version 2 with the value 1 in both.
struct Slot {
    version: AtomicU64,
    words: [AtomicU64; 2],
}

impl Slot {
    fn new() -> Arc<Self> {
        let slot = Self {
            version: AtomicU64::new(1),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
        };
        slot.fill(1);
        assert_eq!(publish(&slot.version), 2);
        Arc::new(slot)
    }

    fn fill(&self, value: u64) {
        for word in &self.words {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn read(&self) -> [u64; 2] {
        [0, 1].map(|i| self.words[i].load(Ordering::Relaxed))
    }
}

/// An evictor overwrites while a reader reads: bytes that the reader accepts must be complete and
/// those that it was told of. Fails without the fence in `begin`, without the fence in `still`, and
/// if `begin` comes after the overwrite.
#[test]
fn a_reader_believes_no_byte_of_an_overwrite() {
    model(|| {
        let slot = Slot::new();
        let evictor = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                begin(&slot.version);
                slot.fill(9);
                publish(&slot.version);
            }
        });
        let seen = slot.read();
        if still(&slot.version, 2) {
            assert_eq!(seen, [1, 1]);
        }
        evictor.join().unwrap();
        assert!(!still(&slot.version, 2), "a version is never used again");
    });
}

/// The same bytes are written again, twice: a reader that accepts them must have read before the
/// first overwrite. Fails if `publish` restores the old version.
#[test]
fn equal_bytes_do_not_bring_an_old_version_back() {
    model(|| {
        let slot = Slot::new();
        let evictor = thread::spawn({
            let slot = Arc::clone(&slot);
            move || {
                begin(&slot.version);
                slot.fill(9);
                assert_eq!(publish(&slot.version), 4);
                begin(&slot.version);
                slot.fill(1);
                assert_eq!(publish(&slot.version), 6);
            }
        });
        let seen = slot.read();
        if still(&slot.version, 2) {
            assert_eq!(seen, [1, 1]);
        }
        evictor.join().unwrap();
        assert!(still(&slot.version, 6));
    });
}

/// Local readers hold a slot and an evictor fills it: both must never access the bytes at once
/// (loom's cell panics if they do). Fails if `begin_fill` takes held slots.
#[test]
fn a_pinned_slot_is_not_overwritten() {
    model(|| {
        let world = Arc::new((Mutex::new(Table::new(1)), UnsafeCell::new(0u64)));
        {
            let mut table = world.0.lock().unwrap();
            table.add_page();
            let slot = table.begin_fill(CHUNKS[0]).unwrap();
            // SAFETY: no other thread has the cell yet.
            world.1.with_mut(|bytes| unsafe { *bytes = 10 });
            table.publish(slot, 8);
            table.release(slot);
        }
        let evictor = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                let slot = world.0.lock().unwrap().begin_fill(CHUNKS[1]);
                match slot {
                    Ok(slot) => {
                        // SAFETY: the slot is being filled, which is what the model proves to be
                        // enough: loom's cell panics if another thread accesses it.
                        world.1.with_mut(|bytes| unsafe { *bytes = 11 });
                        let mut table = world.0.lock().unwrap();
                        table.publish(slot, 8);
                        table.release(slot);
                    }
                    Err(error) => assert_eq!(error, NoSlot::AllHeld),
                }
            }
        });
        for (chunk, expected) in [(CHUNKS[0], 10), (CHUNKS[1], 11)] {
            let held = world.0.lock().unwrap().acquire(chunk);
            if let Some(slot) = held {
                // SAFETY: the slot is held; as above.
                world
                    .1
                    .with(|bytes| assert_eq!(unsafe { *bytes }, expected));
                world.0.lock().unwrap().release(slot);
            }
        }
        evictor.join().unwrap();
        world.0.lock().unwrap().check();
    });
}

/// Two threads want the same chunk: one fills it, the other is told so or finds it. Fails if
/// `begin_fill` does not list the chunk at once.
#[test]
fn a_chunk_is_filled_once() {
    model(|| {
        let table = Arc::new(Mutex::new(Table::new(2)));
        table.lock().unwrap().add_page();
        table.lock().unwrap().add_page();
        let claim = |table: &Mutex<Table>| {
            let slot = table.lock().unwrap().begin_fill(CHUNKS[0]);
            match slot {
                Ok(slot) => {
                    thread::yield_now();
                    table.lock().unwrap().publish(slot, 1);
                    table.lock().unwrap().release(slot);
                    1
                }
                Err(NoSlot::Filling | NoSlot::Resident) => 0,
                Err(NoSlot::AllHeld | NoSlot::NotWorth) => panic!("one of two slots is free"),
            }
        };
        let other = thread::spawn({
            let table = Arc::clone(&table);
            move || claim(&table)
        });
        let here = claim(&table);
        assert_eq!(here + other.join().unwrap(), 1);
        assert_eq!(table.lock().unwrap().residents(), 1);
    });
}

/// The synchronisation of the cache: the table and the versions under one lock, one slot's bytes
/// outside of it. The bytes are atomics, because remote readers read them without any guard; the
/// cell tracks who may access them, and panics if a filler meets a reader or another filler.
struct Cache {
    table: Mutex<Table>,
    slot: Slot,
    in_use: UnsafeCell<()>,
}

/// Returns the value of both words while the slot holds that chunk.
fn content(chunk: usize) -> u64 {
    10 + chunk as u64
}

impl Cache {
    /// Returns a cache of one slot, which holds chunk 0, and the version under which it was
    /// published.
    fn new() -> (Arc<Self>, u64) {
        let cache = Arc::new(Self {
            table: Mutex::new(Table::new(1)),
            slot: Slot {
                version: AtomicU64::new(1),
                words: [AtomicU64::new(0), AtomicU64::new(0)],
            },
            in_use: UnsafeCell::new(()),
        });
        cache.table.lock().unwrap().add_page();
        let version = cache.fill(0, true).expect("the slot is empty");
        (cache, version)
    }

    /// Fills one chunk as `ChunkCache` does: `begin_fill`, the bytes, and `publish` or `abandon`.
    /// Returns the version under which the chunk was published.
    fn fill(&self, chunk: usize, publishes: bool) -> Option<u64> {
        let slot = {
            let mut table = self.table.lock().unwrap();
            let slot = table.begin_fill(CHUNKS[chunk]).ok()?;
            begin(&self.slot.version);
            slot
        };
        self.in_use.with_mut(|_| self.slot.fill(content(chunk)));
        let mut table = self.table.lock().unwrap();
        if !publishes {
            table.abandon(slot);
            return None;
        }
        table.publish(slot, 8);
        let version = publish(&self.slot.version);
        table.release(slot);
        Some(version)
    }

    /// Reads under a guard. Returns whether the chunk was there.
    fn read(&self, chunk: usize) -> bool {
        let guard = self.table.lock().unwrap().acquire(CHUNKS[chunk]);
        let Some(slot) = guard else { return false };
        let seen = self.in_use.with(|_| self.slot.read());
        assert_eq!(seen, [content(chunk); 2]);
        self.table.lock().unwrap().release(slot);
        true
    }

    /// Reads a chunk that was published under `version` remotely. Returns whether the reader
    /// accepted the bytes.
    fn read_remotely(&self, chunk: usize, version: u64) -> bool {
        let seen = self.slot.read();
        let believed = still(&self.slot.version, version);
        assert!(!believed || seen == [content(chunk); 2], "{seen:?}");
        believed
    }

    fn forget(&self, group: u32) {
        let mut table = self.table.lock().unwrap();
        for _ in table.forget(group) {
            begin(&self.slot.version);
        }
    }

    /// Checks the state after all threads have ended: no chunk of the group is left except one that
    /// was filled meanwhile, and no remote reader accepts the first chunk any more.
    fn check_after_forget(&self, version: u64) {
        self.table.lock().unwrap().check();
        assert!(!self.read(0), "it was forgotten, and is not filled again");
        assert!(!self.read_remotely(0, version));
    }
}

/// Another chunk is filled into the slot, or the fill is abandoned, while the group is forgotten
/// and the first chunk is read, under a guard and remotely. Fails if `forget` empties a slot that
/// has readers or is being filled, if it leaves the version unchanged, if `begin_fill` takes slots
/// with readers, or if a fill does not make the version odd first.
#[test]
fn readers_a_fill_and_forget_share_a_slot() {
    for publishes in [true, false] {
        model(move || {
            let (cache, version) = Cache::new();
            let filler = thread::spawn({
                let cache = Arc::clone(&cache);
                move || cache.fill(1, publishes)
            });
            let forgetter = thread::spawn({
                let cache = Arc::clone(&cache);
                move || cache.forget(0)
            });
            cache.read(0);
            cache.read_remotely(0, version);
            let filled = filler.join().unwrap();
            forgetter.join().unwrap();
            cache.check_after_forget(version);
            let found = cache.read(1);
            assert!(publishes || !found);
            if let Some(version) = filled {
                // The chunk was forgotten after it was published, or it is still there.
                assert_eq!(cache.read_remotely(1, version), found);
            }
        });
    }
}

/// A guard is taken before the group is forgotten: its bytes must stay until it is released, even
/// if another thread wants the slot meanwhile, and remote readers must not accept them any more.
/// Fails if `forget` empties a slot that has readers.
#[test]
fn a_guard_keeps_the_bytes_of_a_forgotten_chunk() {
    model(|| {
        let (cache, version) = Cache::new();
        let slot = cache.table.lock().unwrap().acquire(CHUNKS[0]).unwrap();
        let other = thread::spawn({
            let cache = Arc::clone(&cache);
            move || {
                cache.forget(0);
                assert!(!cache.read_remotely(0, version));
                cache.fill(1, true)
            }
        });
        let seen = cache.in_use.with(|_| cache.slot.read());
        assert_eq!(seen, [content(0); 2]);
        cache.table.lock().unwrap().release(slot);
        let filled = other.join().unwrap();
        cache.check_after_forget(version);
        assert_eq!(cache.read(1), filled.is_some());
    });
}
