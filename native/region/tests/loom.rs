//! Models of the version protocol and of readers against claims, explored by loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p faro-region --test loom --release`
//!
//! What each model would miss was tried by removing what it guards (see the comment on each).
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

/// An evictor overwrites while a reader reads: what the reader believes is whole and what it was
/// told. Fails without the fence in `begin`, without the fence in `still`, and with `begin` after
/// the overwrite.
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

/// The same with the same bytes again, twice: a reader that believes must have read before the
/// first overwrite. Fails if `publish` were to restore the old version.
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

/// Local readers guard, an evictor claims: never both in the bytes (loom's cell panics if they are).
/// Fails if `claim` took held slots.
#[test]
fn a_pinned_slot_is_not_overwritten() {
    model(|| {
        let world = Arc::new((Mutex::new(Table::new(1)), UnsafeCell::new(0u64)));
        {
            let mut table = world.0.lock().unwrap();
            table.add_page(0);
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
                        // SAFETY: the slot is claimed, which is what the model proves to be enough:
                        // loom's cell panics if anybody else is in it.
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

/// Two want the same chunk: one fills it, the other is told so or finds it. Fails if `claim` did not
/// list the chunk at once.
#[test]
fn a_chunk_is_filled_once() {
    model(|| {
        let table = Arc::new(Mutex::new(Table::new(2)));
        table.lock().unwrap().add_page(0);
        table.lock().unwrap().add_page(1);
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
                Err(NoSlot::AllHeld) => panic!("one of two slots is free"),
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
