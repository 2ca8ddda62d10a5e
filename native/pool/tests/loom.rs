//! Models of the arena's protocol, explored exhaustively (up to three preemptions) by loom.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p faro-pool --test loom --release`
//!
//! A lost wake-up shows as loom's "deadlock", a page with two owners as a failed assertion. Each
//! model was tried without the line that it guards, and failed (see the comment on each).
#![cfg(loom)]

use faro_pool::arena::{Allocation, Arena, Geometry, MapSlab};
use faro_pool::{PoolError, Purpose, SIZE_CLASSES};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::time::{Duration, Instant};

/// The class of whole pages, and the largest one below.
const PAGE: u8 = SIZE_CLASSES.len() as u8 - 1;
const SMALL: u8 = PAGE - 1;

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// An arena of tiny slabs, with an owner for each page and a count of the mappings.
struct World {
    arena: Arena,
    taken: Vec<AtomicBool>,
    maps: AtomicU32,
}

impl World {
    /// Returns an arena of one-page slabs.
    fn new(pages: u32, reserve_pages: u32) -> Arc<Self> {
        Self::of_slabs(pages, 1, reserve_pages)
    }

    fn of_slabs(slabs: u32, pages_per_slab: u32, reserve_pages: u32) -> Arc<Self> {
        Arc::new(Self {
            arena: Arena::new(Geometry {
                slabs,
                pages_per_slab,
                reserve_pages,
            }),
            taken: (0..slabs * pages_per_slab)
                .map(|_| AtomicBool::new(false))
                .collect(),
            maps: AtomicU32::new(0),
        })
    }

    fn with<T>(&self, attempt: impl FnOnce(MapSlab<'_>) -> T) -> T {
        attempt(&|slab| {
            assert_eq!(
                self.maps.fetch_add(1, Ordering::Relaxed),
                slab,
                "in order, once each"
            );
            Ok(())
        })
    }

    /// Checks that a whole page has no other owner, and takes it.
    fn own(&self, allocation: Allocation) -> Allocation {
        if allocation.class == PAGE {
            let taken = self.taken[allocation.page as usize].swap(true, Ordering::Relaxed);
            assert!(!taken, "page {} has two owners", allocation.page);
        }
        allocation
    }

    fn attempt(&self, class: u8, purpose: Purpose) -> Result<Allocation, PoolError> {
        self.with(|map| self.arena.attempt(class, purpose, map))
            .map(|allocation| self.own(allocation))
    }

    fn wait(&self, class: u8, purpose: Purpose) -> Allocation {
        let allocation = self.with(|map| self.arena.attempt_before(class, purpose, far(), map));
        self.own(allocation.expect("the deadline is far"))
    }

    fn give(&self, allocation: Allocation) {
        if allocation.class == PAGE {
            self.taken[allocation.page as usize].store(false, Ordering::Relaxed);
        }
        self.arena.give(allocation);
    }
}

/// Two readers and an owner share two pages. Fails if a page is listed before it is released, or if
/// an owner finds the reserve used (`PageAdmission::enter` without the reader's bound).
#[test]
fn a_page_has_one_owner_and_the_reserve_is_there() {
    model(|| {
        let world = World::new(2, 1);
        let reader = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                if let Ok(allocation) = world.attempt(PAGE, Purpose::Read) {
                    world.give(allocation);
                }
                if let Ok(allocation) = world.attempt(PAGE, Purpose::Read) {
                    world.give(allocation);
                }
            })
        };
        let allocation = world.attempt(PAGE, Purpose::Serve).expect("the reserve");
        world.give(allocation);
        let allocation = world
            .attempt(PAGE, Purpose::Serve)
            .expect("the reserve, again");
        reader.join().unwrap();
        world.give(allocation);
        assert_eq!(world.arena.pages().held().total(), 0);
        let (a, b) = (
            world.attempt(PAGE, Purpose::Serve),
            world.attempt(PAGE, Purpose::Serve),
        );
        assert!(a.is_ok() && b.is_ok(), "all came back");
    });
}

/// Two threads that find nothing must map one slab, not two. Fails if `grow` does not look again
/// after it has the lock.
#[test]
fn a_slab_is_mapped_for_all_who_wait_for_it() {
    model(|| {
        let world = World::of_slabs(2, 2, 1);
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.attempt(PAGE, Purpose::Read).expect("room for both"))
        };
        let mine = world.attempt(PAGE, Purpose::Read).expect("room for both");
        let other_lease = other.join().unwrap();
        assert_ne!(mine.page, other_lease.page);
        assert_eq!(world.maps.load(Ordering::Relaxed), 1);
    });
}

/// A waiter must not miss a return. Fails without either fence of the event count, if the epoch is
/// read after the attempt, or if a page is uncounted before it is listed: then the waiter maps a
/// slab that readers cannot use.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let world = World::new(2, 1);
        let held = world.attempt(PAGE, Purpose::Read).unwrap();
        let waiter = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let allocation = world.wait(PAGE, Purpose::Read);
                world.give(allocation);
            })
        };
        world.give(held);
        waiter.join().unwrap();
        assert_eq!(world.maps.load(Ordering::Relaxed), 1);
    });
}

/// One return must wake a waiter that can use it among those that cannot: fails with `notify_one`.
#[test]
fn the_right_waiter_wakes_among_several() {
    model(|| {
        let world = World::new(2, 1);
        let reading = world.attempt(PAGE, Purpose::Read).unwrap();
        let serving = world.attempt(PAGE, Purpose::Serve).unwrap();
        let waiters = [Purpose::Read, Purpose::Serve].map(|purpose| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.wait(PAGE, purpose))
        });
        // The reader may not have all of it: only the waiting owner can be helped with certainty.
        world.give(serving);
        world.give(reading);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// Two small leases share one page, and nothing ever returns: both must succeed. Fails without the
/// announcement after a page is split.
#[test]
fn a_waiter_hears_of_a_page_that_was_cut() {
    model(|| {
        let world = World::new(2, 1);
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.wait(SMALL, Purpose::Read))
        };
        let mine = world.wait(SMALL, Purpose::Read);
        let other_lease = other.join().unwrap();
        assert_eq!(mine.page, other_lease.page);
        assert_ne!(mine.index, other_lease.index);
        assert_eq!(world.arena.pages().held().total(), 1);
    });
}

/// Fails if a page is listed as free while a small buffer of it is still listed.
#[test]
fn the_last_buffer_joins_the_page_while_another_is_taken() {
    model(|| {
        let world = World::new(2, 1);
        let first = world.attempt(SMALL, Purpose::Read).unwrap();
        let taker = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.attempt(SMALL, Purpose::Read).ok())
        };
        world.give(first);
        let page = world.attempt(PAGE, Purpose::Read).ok();
        let second = taker.join().unwrap();
        assert!(
            page.is_none() || second.is_none(),
            "one page was both whole and cut: {page:?} {second:?}"
        );
        for allocation in [page, second].into_iter().flatten() {
            world.give(allocation);
        }
        assert_eq!(world.arena.pages().held().total(), 0);
        assert!(world.attempt(PAGE, Purpose::Read).is_ok());
    });
}

/// A refused thread must hear of the next return. Fails if the attempt after arming is left out, or
/// without either fence.
#[test]
fn a_refusal_is_followed_by_a_call() {
    model(|| {
        let world = World::new(2, 1);
        let called = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&called);
        world.arena.listen(std::sync::Arc::new(move || {
            heard.store(true, Ordering::Relaxed);
        }));
        let held = world.attempt(PAGE, Purpose::Read).unwrap();
        let refused = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let tried = world.with(|map| world.arena.attempt_or_arm(PAGE, Purpose::Read, map));
                tried.is_err()
            })
        };
        world.give(held);
        let refused = refused.join().unwrap();
        assert!(
            called.load(Ordering::Relaxed) || !refused,
            "refused and never called"
        );
    });
}

/// A thread that wants a small buffer and a page, of one page, gives back what it took. Threads
/// that looked meanwhile must hear of it, as of any return.
#[test]
fn a_refusal_of_several_is_heard_by_those_who_looked_meanwhile() {
    model(|| {
        let world = World::new(2, 1);
        let called = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&called);
        world.arena.listen(std::sync::Arc::new(move || {
            heard.store(true, Ordering::Relaxed);
        }));
        let several = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let wanted = [SMALL, SMALL - 1];
                let tried =
                    world.with(|map| world.arena.attempt_each_or_arm(&wanted, Purpose::Read, map));
                tried.map_err(drop)
            })
        };
        let one = world.with(|map| world.arena.attempt_or_arm(PAGE, Purpose::Read, map));
        assert_eq!(several.join().unwrap(), Err(()), "there is one page");
        assert!(
            one.is_ok() || called.load(Ordering::Relaxed),
            "refused for what another took for a moment, and never called"
        );
    });
}

/// A slab's memory as a device and a processor see it: pages of a generation.
struct Memory {
    /// Incremented when the pages are released.
    generation: AtomicU32,
    /// True while a device has the slab registered.
    registered: AtomicBool,
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            generation: AtomicU32::new(0),
            registered: AtomicBool::new(false),
        })
    }

    fn release(&self) -> bool {
        assert!(
            !self.registered.load(Ordering::Relaxed),
            "pages went from under a device"
        );
        self.generation.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Returns an arena of two slabs of one page; both were used, so that one can become idle.
fn two_slabs() -> Arc<World> {
    let world = World::new(2, 1);
    let both = [Purpose::Read, Purpose::Serve].map(|purpose| world.attempt(PAGE, purpose));
    for allocation in both {
        world.give(allocation.unwrap());
    }
    world
}

/// Leases are taken while idle slabs are withdrawn and released: an admitted thread must get a
/// page, no slab may be mapped again, and no page of a leased page may be released. Fails if
/// `mark_idle` lists no page of a slab that is in use again, if `grow` does not activate idle
/// slabs, or if the pages are released without the lock of slabs.
#[test]
fn a_slab_rests_or_is_leased() {
    model(|| {
        let world = two_slabs();
        let memory = Memory::new();
        let idler = {
            let (world, memory) = (Arc::clone(&world), Arc::clone(&memory));
            thread::spawn(move || {
                world.arena.pages().mark_idle(1, 0);
                world.arena.pages().release_one(&|_| memory.release());
            })
        };
        let first = world.attempt(PAGE, Purpose::Serve).expect("room");
        let second = world.attempt(PAGE, Purpose::Serve).expect("room for both");
        let seen = memory.generation.load(Ordering::Relaxed);
        idler.join().unwrap();
        assert_eq!(
            memory.generation.load(Ordering::Relaxed),
            seen,
            "pages of a lease went"
        );
        assert_eq!(world.maps.load(Ordering::Relaxed), 2);
        world.give(first);
        world.give(second);
        assert_eq!(world.arena.pages().held().total(), 0);
    });
}

/// A fabric registers a slab that another thread marks as idle and releases. Fails if an idle slab
/// can be pinned, or if its pages are released while it is pinned.
#[test]
fn pages_do_not_go_from_under_a_device() {
    model(|| {
        let world = two_slabs();
        let memory = Memory::new();
        let idler = {
            let (world, memory) = (Arc::clone(&world), Arc::clone(&memory));
            thread::spawn(move || {
                world.arena.pages().mark_idle(1, 0);
                world.arena.pages().release_one(&|_| memory.release());
            })
        };
        // The slab with the higher index becomes idle.
        let pins = world.arena.pages().registration_pins(1).expect("a slab");
        if pins.pin() {
            memory.registered.store(true, Ordering::Relaxed);
            // A thread with a lease may use the device now; an idle slab is de-registered.
            memory.registered.store(false, Ordering::Relaxed);
            pins.unpin();
        }
        idler.join().unwrap();
        world.arena.pages().release_one(&|_| memory.release());
        assert_eq!(memory.generation.load(Ordering::Relaxed), 1);
    });
}

/// A lease's slab can always be registered again, even if it was just idle. Fails if `activate`
/// comes after the pages are listed.
#[test]
fn whoever_has_a_lease_can_pin_its_slab() {
    model(|| {
        let world = two_slabs();
        let idler = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.arena.pages().mark_idle(1, 0);
            })
        };
        let places = [(); 2].map(|()| world.attempt(PAGE, Purpose::Serve).expect("room"));
        for allocation in &places {
            let pins = world
                .arena
                .pages()
                .registration_pins(allocation.page)
                .expect("a slab");
            assert!(pins.pin(), "slab {} rests under a lease", allocation.page);
            pins.unpin();
        }
        idler.join().unwrap();
        for allocation in places {
            world.give(allocation);
        }
    });
}

/// External memory and leases compete for the last slab. Fails if the memory is counted after the
/// check for room.
#[test]
fn outside_memory_and_leases_share_the_cap() {
    const SLAB: u64 = faro_pool::SLAB_BYTES as u64;
    model(|| {
        let world = World::new(2, 1);
        let other = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let wrapped = world.arena.wrap(SLAB).is_ok();
                if wrapped {
                    world.arena.unwrap(SLAB);
                }
            })
        };
        let first = world.attempt(PAGE, Purpose::Serve);
        let second = world.attempt(PAGE, Purpose::Serve);
        other.join().unwrap();
        for allocation in [first, second].into_iter().flatten() {
            world.give(allocation);
        }
        assert_eq!(world.arena.pages().held().total(), 0);
    });
}
