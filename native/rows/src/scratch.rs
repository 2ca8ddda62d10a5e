//! Memory that is reused.

use crate::format::fault::RowBlockFault;

/// Reused values. Each user writes the values before it reads them.
pub(crate) struct Scratch<T> {
    values: Vec<T>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Copy + Default> Scratch<T> {
    /// Returns `count` values, whose content is undefined: each is the default or from an earlier
    /// use.
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

    /// Returns the values of the last use, and those of earlier ones after them.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    pub fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }

    /// Shrinks the memory to at most `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        if self.memory_bytes() > keep {
            self.values.truncate(keep / size_of::<T>());
            self.values.shrink_to_fit();
        }
    }
}
