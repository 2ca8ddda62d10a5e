//! The pool without its memory: which frames and pieces are free, who may take them, who waits.
//!
//! Kept apart from the slabs so that models and oracles can explore it at any size: three frames
//! in a loom model, thousands in a pool. The caller gives the function that maps a slab.
//!
//! Order is all that matters here (see `admission`): *count, then take* on the way out, *list,
//! then uncount, then announce* on the way back.

use crate::admission::{Admission, Held, Refused};
use crate::frames::{FrameIndex, FreeFrames};
use crate::gate::{Gate, Listener};
use crate::pieces::Shelf;
use crate::sync::{lock, spin_loop, Mutex};
use crate::{PoolError, Purpose, FRAME_BYTES, SIZE_CLASSES};
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
    /// Counted over all slabs.
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
    gate: Gate,
    /// Slabs mapped so far, ≤ `geometry.slabs`. Held while one is being mapped.
    mapped: Mutex<u32>,
}

/// Maps the slab of that index.
pub type MapSlab<'a> = &'a dyn Fn(u32) -> Result<(), PoolError>;

impl Arena {
    /// Nothing mapped yet.
    pub fn new(geometry: Geometry) -> Self {
        let frames = geometry.slabs * geometry.frames_per_slab;
        let shelves =
            || std::array::from_fn(|class| Shelf::new((FRAME_BYTES / SIZE_CLASSES[class]) as u32));
        Self {
            geometry,
            admission: Admission::new(frames, geometry.reserve_frames),
            free: FreeFrames::new(frames),
            shelves: [shelves(), shelves()],
            gate: Gate::new(),
            mapped: Mutex::new(0),
        }
    }

    /// The smallest class that holds `bytes`.
    pub fn class_of(bytes: usize) -> Result<u8, PoolError> {
        if bytes == 0 || bytes > FRAME_BYTES {
            return Err(PoolError::BadSize {
                got: bytes,
                max: FRAME_BYTES,
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
        if let Some((frame, piece)) = shelf.take() {
            return Ok(place(frame, piece));
        }
        let frame = self.take_frame(purpose, map)?;
        let piece = shelf.cut(frame);
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
            Some(shelf) => shelf.give(place.frame, place.piece),
            None => true,
        };
        if whole {
            self.free.give(place.purpose, place.frame);
            self.admission.leave(place.purpose);
        }
        self.gate.announce();
    }

    /// See `Gate`.
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
                held: u64::from(held) * FRAME_BYTES as u64,
                limit: u64::from(limit) * FRAME_BYTES as u64,
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

    /// A frame of a new slab, whose others are listed; `None` if there is no slab left to map.
    fn grow(&self, purpose: Purpose, map: MapSlab<'_>) -> Result<Option<FrameIndex>, PoolError> {
        let mut mapped = lock(&self.mapped);
        // Whoever held the lock may have mapped enough for all who waited for it.
        if let Some(frame) = self.free.take(purpose) {
            return Ok(Some(frame));
        }
        let slab = *mapped;
        if slab == self.geometry.slabs {
            return Ok(None);
        }
        map(slab)?;
        *mapped += 1;
        let first = slab * self.geometry.frames_per_slab;
        for frame in first + 1..first + self.geometry.frames_per_slab {
            self.free.give_cold(frame);
        }
        Ok(Some(first))
    }
}
