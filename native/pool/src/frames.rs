//! The free frames: a few recently returned ones per purpose in front of one bounded queue.
//!
//! A plain queue over a large arena hands out the frame that was returned longest ago: by then
//! none of its 256 KiB is in any cache, and every copy into it first misses on every line. So
//! each purpose keeps its last [`HOT_FRAMES`] returns in a small stack (2 MiB, about one core's
//! L2), newest first; when it is full its *oldest* frame moves to the queue. One stack for each
//! purpose, because serving and reading run on different threads and so warm different caches.
//! Measured with one thread that fills a frame and reads it again, over 128 MiB: 2.3 GB/s first in,
//! first out; 7.7 to 11.4 GB/s with the stack (a busy virtual Xeon, 2 MiB of L2 for each core).
//!
//! The stack is guarded by a lock that the common path only ever tries: who finds it taken uses
//! the queue instead, so nobody waits there for a thread that lost its processor. Only a taker
//! that found the queue empty as well waits for the locks, of its own stack and then the other
//! purpose's, whose frames are as good as any before another slab gets mapped.
//!
//! The queue is crossbeam's `ArrayQueue`: bounded by construction at the number of frames there can be,
//! never allocates, no epochs (a device in flight cannot be pinned by an epoch).

use crate::sync::{lock, try_lock, ArrayQueue, AtomicU64, Mutex, Ordering};
use crate::Purpose;
use crossbeam_utils::CachePadded;

/// Frames in a hot stack.
pub const HOT_FRAMES: usize = 8;

/// A frame, counted over all slabs.
pub type FrameIndex = u32;

/// A stack that loses its oldest entry when full.
struct Hot {
    /// Slots; the newest entry is at `top - 1`, all positions modulo the length.
    slots: [FrameIndex; HOT_FRAMES],
    /// Entries, ≤ `HOT_FRAMES`.
    count: usize,
    /// Position after the newest entry, < `HOT_FRAMES`.
    top: usize,
    /// Frames taken from here since the start. RegistrationCount here because the lock is held anyway: an
    /// atomic of its own would cost a lease a tenth of its time.
    taken: u64,
}

impl Hot {
    /// Puts `frame` on top; returns the oldest entry if it had to make room.
    fn push(&mut self, frame: FrameIndex) -> Option<FrameIndex> {
        // In a full ring the slot after the newest entry is the oldest one's.
        let oldest = (self.count == HOT_FRAMES).then(|| self.slots[self.top]);
        self.slots[self.top] = frame;
        self.top = (self.top + 1) % HOT_FRAMES;
        self.count = (self.count + 1).min(HOT_FRAMES);
        oldest
    }

    fn take(&mut self) -> Option<FrameIndex> {
        let frame = self.pop()?;
        self.taken += 1;
        Some(frame)
    }

    fn pop(&mut self) -> Option<FrameIndex> {
        if self.count == 0 {
            return None;
        }
        self.count -= 1;
        self.top = (self.top + HOT_FRAMES - 1) % HOT_FRAMES;
        Some(self.slots[self.top])
    }

    /// Takes out those that are `wanted`; the others stay in their order.
    fn withdraw(&mut self, wanted: impl Fn(FrameIndex) -> bool, out: &mut Vec<FrameIndex>) {
        let newest_first: Vec<_> = std::iter::from_fn(|| self.pop()).collect();
        for frame in newest_first.into_iter().rev() {
            if wanted(frame) {
                out.push(frame);
            } else {
                self.push(frame);
            }
        }
    }
}

/// All frames that nobody holds; each exactly once.
pub(crate) struct FreeFrames {
    /// Last returns of each purpose.
    hot: [CachePadded<Mutex<Hot>>; 2],
    /// The rest; its capacity is the number of frames there can be, so that a push cannot fail.
    cold: ArrayQueue<FrameIndex>,
    /// Frames taken from `cold` since the start.
    cold_taken: AtomicU64,
}

impl FreeFrames {
    pub(crate) fn new(most: u32) -> Self {
        let hot = || {
            CachePadded::new(Mutex::new(Hot {
                slots: [0; HOT_FRAMES],
                count: 0,
                top: 0,
                taken: 0,
            }))
        };
        Self {
            hot: [hot(), hot()],
            cold: ArrayQueue::new(most as usize),
            cold_taken: AtomicU64::new(0),
        }
    }

    /// Frames taken since the start.
    pub(crate) fn taken(&self) -> u64 {
        let hot: u64 = self.hot.iter().map(|hot| lock(hot).taken).sum();
        hot + self.cold_taken.load(Ordering::Relaxed)
    }

    fn hot(&self, purpose: Purpose) -> &Mutex<Hot> {
        &self.hot[purpose as usize]
    }

    /// The best free frame for `purpose`; `None` if none was seen (not a proof that there is none:
    /// one may have moved between the places while they were looked at).
    pub(crate) fn take(&self, purpose: Purpose) -> Option<FrameIndex> {
        let other = match purpose {
            Purpose::Read => Purpose::Serve,
            Purpose::Serve => Purpose::Read,
        };
        try_lock(self.hot(purpose))
            .and_then(|mut hot| hot.take())
            .or_else(|| {
                let frame = self.cold.pop()?;
                self.cold_taken.fetch_add(1, Ordering::Relaxed);
                Some(frame)
            })
            .or_else(|| lock(self.hot(purpose)).take())
            .or_else(|| lock(self.hot(other)).take())
    }

    /// Lists a frame that was used last for `purpose`.
    pub(crate) fn give(&self, purpose: Purpose, frame: FrameIndex) {
        let to_cold = match try_lock(self.hot(purpose)) {
            Some(mut hot) => hot.push(frame),
            None => Some(frame),
        };
        if let Some(frame) = to_cold {
            self.give_cold(frame);
        }
    }

    /// Takes out all frames that are `wanted` and seen; the others stay listed. Not seen are those
    /// that move between the lists meanwhile. Whoever looks for a frame at the same time may find
    /// none although there are some, and must look again afterwards.
    pub(crate) fn withdraw(&self, wanted: impl Fn(FrameIndex) -> bool) -> Vec<FrameIndex> {
        let mut out = Vec::new();
        for hot in &self.hot {
            lock(hot).withdraw(&wanted, &mut out);
        }
        for _ in 0..self.cold.len() {
            match self.cold.pop() {
                Some(frame) if wanted(frame) => out.push(frame),
                Some(frame) => self.give_cold(frame),
                None => break,
            }
        }
        out
    }

    /// Lists a frame that is in no cache.
    pub(crate) fn give_cold(&self, frame: FrameIndex) {
        if self.cold.push(frame).is_err() {
            // Only a frame listed twice could get here; to lose one is better than to share one.
            log::error!("frame {frame} returned to a full list and was dropped");
            debug_assert!(false, "frame {frame} was listed twice");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_frame_returned_is_the_first_taken() {
        let free = FreeFrames::new(64);
        for frame in 0..64 {
            free.give_cold(frame);
        }
        let taken: Vec<_> = (0..20).map(|_| free.take(Purpose::Read).unwrap()).collect();
        for frame in &taken {
            free.give(Purpose::Read, *frame);
        }
        let again: Vec<_> = (0..HOT_FRAMES)
            .map(|_| free.take(Purpose::Read).unwrap())
            .collect();
        let newest: Vec<_> = taken.iter().rev().take(HOT_FRAMES).copied().collect();
        assert_eq!(again, newest);
    }

    #[test]
    fn purposes_do_not_mix_while_there_is_a_choice() {
        let free = FreeFrames::new(4);
        free.give(Purpose::Serve, 0);
        free.give(Purpose::Read, 1);
        assert_eq!(free.take(Purpose::Serve), Some(0));
        free.give(Purpose::Serve, 0);
        assert_eq!(free.take(Purpose::Read), Some(1));
        // Nothing of its own and nothing cold: the other purpose's frame, rather than a new slab.
        assert_eq!(free.take(Purpose::Read), Some(0));
        assert_eq!(free.take(Purpose::Read), None);
    }

    #[test]
    fn what_is_withdrawn_is_gone_and_the_rest_keeps_its_order() {
        let free = FreeFrames::new(40);
        for frame in 0..20 {
            free.give(Purpose::Read, frame);
            free.give(Purpose::Serve, 20 + frame);
        }
        let even = |frame: FrameIndex| frame % 2 == 0;
        let mut out = free.withdraw(even);
        out.sort_unstable();
        assert_eq!(out, (0..40).filter(|f| even(*f)).collect::<Vec<_>>());
        assert_eq!(free.take(Purpose::Read), Some(19), "still the hottest");
        assert_eq!(free.take(Purpose::Read), Some(17));
        let rest = std::iter::from_fn(|| free.take(Purpose::Read)).count();
        assert_eq!(rest, 18);
    }

    #[test]
    fn every_frame_comes_out_exactly_once() {
        let free = FreeFrames::new(40);
        for frame in 0..40 {
            free.give(
                if frame % 3 == 0 {
                    Purpose::Read
                } else {
                    Purpose::Serve
                },
                frame,
            );
        }
        let mut out: Vec<_> = std::iter::from_fn(|| free.take(Purpose::Read)).collect();
        out.sort_unstable();
        assert_eq!(out, (0..40).collect::<Vec<_>>());
    }
}
