//! Stand-ins for types that loom cannot model.

use crate::{lock, Mutex};
use std::collections::VecDeque;

/// Stands in for crossbeam's `ArrayQueue`, with the same bound, as a locked `VecDeque`. Loom cannot
/// look into crossbeam's queue, and the models do not test that queue.
pub struct ArrayQueue<T> {
    items: Mutex<VecDeque<T>>,
    capacity: usize,
}

impl<T> ArrayQueue<T> {
    /// Returns an empty queue for at most `capacity` items.
    pub fn new(capacity: usize) -> Self {
        Self {
            items: Mutex::new(VecDeque::new()),
            capacity,
        }
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// Returns `item` if the queue is full.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = lock(&self.items);
        if items.len() == self.capacity {
            return Err(item);
        }
        items.push_back(item);
        Ok(())
    }

    /// Takes the oldest item.
    pub fn pop(&self) -> Option<T> {
        lock(&self.items).pop_front()
    }

    pub fn len(&self) -> usize {
        lock(&self.items).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
