//! Memory that is overwritten after use.
//!
//! A library's state that contains a key is boxed, so that a move leaves no copy, and overwritten after
//! its drop. The stack that the library used is overwritten after the call.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use zeroize::Zeroize;

/// Bytes of the stack that are overwritten. The deepest calls, a handshake's message without optimization, take less.
const STACK_BYTES: usize = 64 << 10;

/// Overwrites the stack below the caller, which the functions that it called have used.
#[inline(never)]
pub(crate) fn wipe_stack() {
    let mut area = [0_u64; STACK_BYTES / 8];
    area.zeroize();
    black_box(&area);
}

/// A value whose memory is overwritten when it is dropped.
pub(crate) struct ZeroizingBox<T>(Box<MaybeUninit<T>>);

impl<T> ZeroizingBox<T> {
    /// Boxes the value that `make` returns. The caller must wipe the stack.
    ///
    /// # Errors
    /// Returns the error of `make`.
    #[inline(never)]
    pub(crate) fn try_new<E>(make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        let mut memory = Box::new(MaybeUninit::uninit());
        memory.write(make()?);
        Ok(Self(memory))
    }
}

impl<T> Deref for ZeroizingBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: `try_new`, the only constructor, wrote a value; only `drop` takes it out.
        unsafe { self.0.assume_init_ref() }
    }
}

impl<T> DerefMut for ZeroizingBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { self.0.assume_init_mut() }
    }
}

impl<T> Drop for ZeroizingBox<T> {
    fn drop(&mut self) {
        // SAFETY: as in `deref`; nothing reads the value after its owner's `drop`.
        unsafe { self.0.assume_init_drop() };
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_value_is_dropped_once_and_its_memory_overwritten() {
        let count = Arc::new(());
        let mut wiped =
            ZeroizingBox::try_new(|| Ok::<_, ()>((Arc::clone(&count), [7_u8; 32]))).unwrap();
        wiped.1[0] = 8;
        assert_eq!((wiped.1[0], wiped.1[31]), (8, 7));
        assert_eq!(Arc::strong_count(&count), 2);
        drop(wiped);
        assert_eq!(Arc::strong_count(&count), 1);
        assert!(ZeroizingBox::<u8>::try_new(|| Err(5)).is_err_and(|error| error == 5));
    }
}
