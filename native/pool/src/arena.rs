//! The pool without its memory: which frames and pieces are free, who may take them, who waits.
//!
//! Kept apart from the slabs so that models and oracles can explore it at any size: three frames
//! in a loom model, thousands in a pool. The caller gives the function that maps a slab.
//!
//! Order is all that matters here (see `admission`): *count, then take* on the way out, *list,
//! then uncount, then announce* on the way back. Slabs that nobody uses rest, with all their frames
//! withdrawn, and are woken before another is mapped (`slabs`, `tenure`).

use crate::admission::{Admission, Held, Refused};
use crate::frames::{FrameIndex, FreeFrames};
use crate::gate::{EventCount, Listener};
use crate::pieces::Shelf;
use crate::slabs::{Slabs, Source};
use crate::sync::{lock, spin_loop, AtomicU32, AtomicU64, Mutex, Ordering};
use crate::tenure::RegistrationPins;
use crate::{PoolError, Purpose, PAGE_BYTES, SIZE_CLASSES};
use crossbeam_utils::CachePadded;
use std::time::Instant;

/// Classes below a frame.
const SMALL_CLASSES: usize = SIZE_CLASSES.len() - 1;

/// How many of what.
#[derive(Debug, Clone, Copy)]
pub struct Geometry {
    /// Slabs that may be mapped.
    pub slabs: u32,
    /// Frames in each.
    pub frames_per_slab: u32,
    /// Frames that readers must leave.
    pub reserve_frames: u32,
}

/// Where a lease is: a frame, or one piece of a cut frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// RegistrationCount over all slabs.
    pub frame: FrameIndex,
    /// Position in the frame, in units of the class; 0 for a whole frame.
    pub piece: u32,
    /// Index into [`SIZE_CLASSES`].
    pub class: u8,
    /// Whose share it counts against.
    pub purpose: Purpose,
}

impl Place {
    /// Bytes.
    pub fn bytes(self) -> usize {
        SIZE_CLASSES[usize::from(self.class)]
    }
}

/// See the module's comment.
pub struct Arena {
    geometry: Geometry,
    admission: Admission,
    free: FreeFrames,
    /// By purpose and class.
    shelves: [[Shelf; SMALL_CLASSES]; 2],
    gate: EventCount,
    /// Held while a slab is mapped, withdrawn, woken or emptied.
    slabs: Mutex<Slabs>,
    /// By slab.
    tenures: Box<[RegistrationPins]>,
    /// By slab: the `clock` when a frame of it came back last.
    last_use: Box<[AtomicU32]>,
    /// What `last_use` is measured by; its unit is the caller's.
    clock: AtomicU32,
    /// Bytes of frames held that are not leased: free pieces of cut frames, and what rounding adds
    /// to memory outside the slabs. So a lease of a whole frame has nothing to count.
    spare: CachePadded<AtomicU64>,
    /// Leases of slabs' first frames: those that `free` never had.
    firsts: AtomicU64,
}

/// What `empty_one` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptied {
    /// Gave a slab's pages back; there may be more.
    One,
    /// Nothing: devices have all that rest registered.
    NoneYet,
    /// Nothing: all that rest are empty.
    All,
}

/// Maps the slab of that index.
pub type MapSlab<'a> = &'a dyn Fn(u32) -> Result<(), PoolError>;

impl Arena {
    /// Nothing mapped yet.
    pub fn new(geometry: Geometry) -> Self {
        let frames = geometry.slabs * geometry.frames_per_slab;
        let shelves =
            || std::array::from_fn(|class| Shelf::new((PAGE_BYTES / SIZE_CLASSES[class]) as u32));
        Self {
            geometry,
            admission: Admission::new(frames, geometry.reserve_frames),
            free: FreeFrames::new(frames),
            shelves: [shelves(), shelves()],
            gate: EventCount::new(),
            slabs: Mutex::new(Slabs::new(geometry.slabs)),
            tenures: (0..geometry.slabs)
                .map(|_| RegistrationPins::new())
                .collect(),
            last_use: (0..geometry.slabs).map(|_| AtomicU32::new(0)).collect(),
            clock: AtomicU32::new(0),
            spare: CachePadded::new(AtomicU64::new(0)),
            firsts: AtomicU64::new(0),
        }
    }

    /// Bytes leased, of slabs and outside of them. While others lease and return it may be off by
    /// what they are at.
    pub fn leased_bytes(&self) -> u64 {
        let held = i64::from(self.held().total()) * PAGE_BYTES as i64;
        // RegistrationCount a moment before or after its frame, a piece must not make more of it than is held.
        (held - self.spare.load(Ordering::Relaxed) as i64).clamp(0, held) as u64
    }

    /// Leases of slabs given since the start.
    pub fn acquisitions(&self) -> u64 {
        let pieces: u64 = self.shelves.iter().flatten().map(Shelf::taken).sum();
        pieces + self.free.taken() + self.firsts.load(Ordering::Relaxed)
    }

    /// Of the bytes of held frames, `more` are not leased any more or newly held, and `fewer` leased
    /// or not held any more.
    fn spare(&self, more: usize, fewer: usize) {
        let change = (more as u64).wrapping_sub(fewer as u64);
        // Modulo 2^64: it can be below zero for a moment.
        self.spare.fetch_add(change, Ordering::Relaxed);
    }

    /// The smallest class that holds `bytes`.
    pub fn class_of(bytes: usize) -> Result<u8, PoolError> {
        if bytes == 0 || bytes > PAGE_BYTES {
            return Err(PoolError::BadSize {
                got: bytes,
                max: PAGE_BYTES,
            });
        }
        // At most four, and `bytes` fits the last.
        Ok(SIZE_CLASSES.iter().filter(|class| **class < bytes).count() as u8)
    }

    /// One try, silent when refused.
    pub fn attempt(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Place, PoolError> {
        let place = |frame, piece| Place {
            frame,
            piece,
            class,
            purpose,
        };
        let Some(shelf) = self.shelf(class, purpose) else {
            return Ok(place(self.take_frame(purpose, map)?, 0));
        };
        let bytes = SIZE_CLASSES[usize::from(class)];
        if let Some((frame, piece)) = shelf.take() {
            self.spare(0, bytes);
            return Ok(place(frame, piece));
        }
        let frame = self.take_frame(purpose, map)?;
        let piece = shelf.cut(frame);
        self.spare(PAGE_BYTES, bytes);
        // Others may have been refused because this frame was already counted but not yet cut.
        self.gate.announce();
        Ok(place(frame, piece))
    }

    /// One try; a refusal is followed by a listener's call as soon as anything returns.
    pub fn attempt_or_arm(
        &self,
        class: u8,
        purpose: Purpose,
        map: MapSlab<'_>,
    ) -> Result<Place, PoolError> {
        match self.attempt(class, purpose, map) {
            Err(PoolError::Exhausted { .. }) => {
                self.gate.arm_and(|| self.attempt(class, purpose, map))
            }
            result => result,
        }
    }

    /// Tries until the deadline.
    pub fn attempt_before(
        &self,
        class: u8,
        purpose: Purpose,
        deadline: Instant,
        map: MapSlab<'_>,
    ) -> Result<Place, PoolError> {
        self.gate.wait_for(
            deadline,
            |error| matches!(error, PoolError::Exhausted { .. }),
            || self.attempt(class, purpose, map),
        )
    }

    /// Takes back what an attempt gave.
    pub fn give(&self, place: Place) {
        let whole = match self.shelf(place.class, place.purpose) {
            Some(shelf) => {
                let whole = shelf.give(place.frame, place.piece);
                let of_frame = if whole { PAGE_BYTES } else { 0 };
                self.spare(place.bytes(), of_frame);
                whole
            }
            None => true,
        };
        if whole {
            // Before it is listed, so that who finds it free knows when it was used.
            self.stamp(self.slab_of(place.frame));
            self.free.give(place.purpose, place.frame);
            self.admission.leave(place.purpose);
        }
        self.gate.announce();
    }

    /// See `EventCount`.
    pub fn listen(&self, listener: Listener) {
        self.gate.listen(listener);
    }

    /// Frames taken, whole or cut.
    pub fn held(&self) -> Held {
        self.admission.held()
    }

    /// Frames that `purpose` may hold at most.
    pub fn share_frames(&self, purpose: Purpose) -> u32 {
        let Geometry {
            slabs,
            frames_per_slab,
            reserve_frames,
        } = self.geometry;
        match purpose {
            Purpose::Read => slabs * frames_per_slab - reserve_frames,
            Purpose::Serve => slabs * frames_per_slab,
        }
    }

    /// `None` for whole frames.
    fn shelf(&self, class: u8, purpose: Purpose) -> Option<&Shelf> {
        self.shelves[purpose as usize].get(usize::from(class))
    }

    fn take_frame(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<FrameIndex, PoolError> {
        self.admission
            .enter(purpose)
            .map_err(|Refused { held, limit }| PoolError::Exhausted {
                purpose,
                held: u64::from(held) * PAGE_BYTES as u64,
                limit: u64::from(limit) * PAGE_BYTES as u64,
            })?;
        loop {
            if let Some(frame) = self.free.take(purpose) {
                return Ok(frame);
            }
            match self.grow(purpose, map) {
                Ok(Some(frame)) => return Ok(frame),
                // All is mapped: a frame was moving between the lists while they were looked at.
                Ok(None) => spin_loop(),
                Err(error) => {
                    self.admission.leave(purpose);
                    self.gate.announce();
                    return Err(error);
                }
            }
        }
    }

    /// A frame of a slab that was woken or mapped, whose others are listed; `None` if there is none.
    fn grow(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<Option<FrameIndex>, PoolError> {
        let mut slabs = lock(&self.slabs);
        // Whoever held the lock may have listed enough for all who waited for it.
        if let Some(frame) = self.free.take(purpose) {
            return Ok(Some(frame));
        }
        let slab = match slabs.next() {
            None => return Ok(None),
            Some(Source::Rest(slab)) => {
                self.tenures[slab as usize].wake();
                slab
            }
            Some(Source::New(slab)) => {
                map(slab)?;
                slab
            }
        };
        slabs.taken();
        self.stamp(slab);
        self.firsts.fetch_add(1, Ordering::Relaxed);
        let first = slab * self.geometry.frames_per_slab;
        for frame in first + 1..first + self.geometry.frames_per_slab {
            self.free.give_cold(frame);
        }
        Ok(Some(first))
    }

    fn slab_of(&self, frame: FrameIndex) -> u32 {
        frame / self.geometry.frames_per_slab
    }

    /// A hint for `rest`, so no ordering; the load keeps the line shared while the clock stands.
    fn stamp(&self, slab: u32) {
        let now = self.clock.load(Ordering::Relaxed);
        let last = &self.last_use[slab as usize];
        if last.load(Ordering::Relaxed) != now {
            last.store(now, Ordering::Relaxed);
        }
    }

    /// Whether that slab's pages must stay.
    pub fn tenure(&self, slab: u32) -> Option<&RegistrationPins> {
        self.tenures.get(slab as usize)
    }

    /// Sets the clock.
    pub fn tick(&self, now: u32) {
        self.clock.store(now, Ordering::Relaxed);
    }

    /// Sets the clock and has slabs rest of which no frame is in use or was for `age`, but never
    /// the last one. How many.
    pub fn rest(&self, now: u32, age: u32) -> u32 {
        self.tick(now);
        let mut slabs = lock(&self.slabs);
        let old: Vec<bool> = (0..slabs.mapped())
            .map(|slab| {
                let last = self.last_use[slab as usize].load(Ordering::Relaxed);
                !slabs.is_resting(slab) && now.wrapping_sub(last) >= age
            })
            .collect();
        let mut most = slabs.awake().saturating_sub(1);
        if most == 0 || !old.contains(&true) {
            return 0;
        }
        let mut frames = self
            .free
            .withdraw(|frame| old[self.slab_of(frame) as usize]);
        frames.sort_unstable();
        let mut rested = 0;
        // The highest first: leases are packed into the lowest.
        for of_one in frames
            .chunk_by(|a, b| self.slab_of(*a) == self.slab_of(*b))
            .rev()
        {
            let slab = self.slab_of(of_one[0]);
            if of_one.len() == self.geometry.frames_per_slab as usize && most > 0 {
                self.tenures[slab as usize].rest();
                slabs.rest(slab);
                (most, rested) = (most - 1, rested + 1);
            } else {
                // Some are in use.
                of_one.iter().for_each(|frame| self.free.give_cold(*frame));
            }
        }
        rested
    }

    /// Has `empty` give back the pages of one slab that rests and that no device has registered.
    pub fn empty_one(&self, empty: &dyn Fn(u32)) -> Emptied {
        let mut slabs = lock(&self.slabs);
        match slabs.choose_to_empty(|slab| self.tenures[slab as usize].is_free()) {
            Some(slab) => {
                empty(slab);
                Emptied::One
            }
            None if slabs.emptied().count() < slabs.resting() as usize => Emptied::NoneYet,
            None => Emptied::All,
        }
    }

    /// Slabs that rest, and which of them are empty.
    pub fn resting(&self) -> (u32, Vec<u32>) {
        let slabs = lock(&self.slabs);
        (slabs.resting(), slabs.emptied().collect())
    }

    /// Counts memory outside the slabs against the cap. It counts in whole slabs, all of it
    /// together, because what a slab has no room for cannot be leased; and like reading, because
    /// it must leave the reserve.
    pub fn wrap(&self, bytes: u64) -> Result<(), Refused> {
        let mut slabs = lock(&self.slabs);
        let more = slabs.wrapped_slabs(bytes) - slabs.wrapped_slabs(0);
        let frames = u32::try_from(more)
            .ok()
            .and_then(|more| more.checked_mul(self.geometry.frames_per_slab))
            .unwrap_or(u32::MAX);
        self.admission.enter_many(Purpose::Read, frames)?;
        // Slabs that are registered but not leased are in the way of it.
        if u64::from(slabs.full()) + slabs.wrapped_slabs(bytes) > u64::from(self.geometry.slabs) {
            self.admission.leave_many(Purpose::Read, frames);
            return Err(Refused {
                held: slabs.full() * self.geometry.frames_per_slab,
                limit: self.geometry.slabs * self.geometry.frames_per_slab,
            });
        }
        slabs.wrap(bytes);
        self.spare(frames as usize * PAGE_BYTES, bytes as usize);
        Ok(())
    }

    /// The reverse.
    pub fn unwrap(&self, bytes: u64) {
        let mut slabs = lock(&self.slabs);
        let before = slabs.wrapped_slabs(0);
        slabs.unwrap(bytes);
        let fewer = before - slabs.wrapped_slabs(0);
        let frames = fewer as u32 * self.geometry.frames_per_slab;
        self.spare(bytes as usize, frames as usize * PAGE_BYTES);
        self.admission.leave_many(Purpose::Read, frames);
        drop(slabs);
        self.gate.announce();
    }
}
