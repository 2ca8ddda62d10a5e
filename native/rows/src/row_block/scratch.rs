//! Memory that is used again and again.

use super::fault::RowBlockFault;

/// Values of which each use writes those that it reads.
pub(crate) struct Scratch<T> {
    values: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Copy + Default> Scratch<T> {
    /// `count` values, each from an earlier use or the default.
    pub fn sized(&mut self, count: usize) -> Result<&mut [T], RowBlockFault> {
        if let Some(more) = count.checked_sub(self.values.len()) {
            self.values
                .try_reserve_exact(more)
                .map_err(|_| RowBlockFault::NoMemory {
                    bytes: count * size_of::<T>(),
                })?;
            self.values.resize(count, T::default());
        }
        Ok(&mut self.values[..count])
    }

    /// What the last use wrote, as far as it wrote it.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }

    /// Gives back what is above `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        if self.memory_bytes() > keep {
            self.values.truncate(keep / size_of::<T>());
            self.values.shrink_to_fit();
        }
    }
}
