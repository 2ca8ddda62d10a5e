//! Arrays that can be reduced: what a round does with its caller's memory.

/// Type of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Element {
    /// 32-bit floats.
    Float = 1,
    /// 64-bit floats.
    Double = 2,
}

impl Element {
    /// Returns the size of one element in bytes.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Float => 4,
            Self::Double => 8,
        }
    }

    /// Returns the name for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "floats",
            Self::Double => "doubles",
        }
    }
}

/// Values that are not numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotANumber {
    /// Number of elements.
    pub count: usize,
    /// Position of the first one.
    pub first: usize,
}

/// The caller's memory cannot be reached any more (an array of Java's, say).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayFault(pub String);

/// A caller's array. Positions and counts are in elements, `bytes` hold whole elements, and what is
/// named is within the array.
pub trait Array {
    /// Returns the type of the elements.
    fn element(&self) -> Element;
    /// Returns the number of elements.
    fn len(&self) -> usize;
    /// Returns whether there are no values.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies elements from `first` on into `bytes`.
    ///
    /// # Errors
    /// The array cannot be reached; also below.
    fn load(&mut self, first: usize, bytes: &mut [u8]) -> Result<(), ArrayFault>;
    /// Replaces elements from `first` on.
    ///
    /// # Errors
    /// See `load`.
    fn store(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault>;
    /// Adds to elements from `first` on.
    ///
    /// # Errors
    /// See `load`.
    fn add(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault>;
    /// Divides every element by `divisor`.
    ///
    /// # Errors
    /// See `load`.
    fn divide(&mut self, divisor: u32) -> Result<(), ArrayFault>;
    /// The values that are not numbers, if there are any.
    ///
    /// # Errors
    /// See `load`.
    fn not_numbers(&mut self) -> Result<Option<NotANumber>, ArrayFault>;
}

macro_rules! array_of {
    ($float:ty, $element:expr) => {
        impl Array for &mut [$float] {
            fn element(&self) -> Element {
                $element
            }

            fn len(&self) -> usize {
                <[$float]>::len(self)
            }

            fn load(&mut self, first: usize, bytes: &mut [u8]) -> Result<(), ArrayFault> {
                let size = size_of::<$float>();
                for (out, value) in bytes.chunks_exact_mut(size).zip(&self[first..]) {
                    out.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            }

            fn store(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                for (value, arrived) in self[first..].iter_mut().zip(values::<$float>(bytes)) {
                    *value = arrived;
                }
                Ok(())
            }

            fn add(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                for (value, arrived) in self[first..].iter_mut().zip(values::<$float>(bytes)) {
                    *value += arrived;
                }
                Ok(())
            }

            fn divide(&mut self, divisor: u32) -> Result<(), ArrayFault> {
                let divisor = divisor as $float;
                for value in self.iter_mut() {
                    *value /= divisor;
                }
                Ok(())
            }

            fn not_numbers(&mut self) -> Result<Option<NotANumber>, ArrayFault> {
                let count = self.iter().filter(|value| value.is_nan()).count();
                let first = self.iter().position(|value| value.is_nan());
                Ok(first.map(|first| NotANumber { count, first }))
            }
        }

        impl FromBytes for $float {
            const BYTES: usize = size_of::<$float>();
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<$float>()];
                value.copy_from_slice(bytes);
                <$float>::from_le_bytes(value)
            }
        }
    };
}

trait FromBytes {
    const BYTES: usize;
    /// Decodes a value. `bytes` must have exactly `BYTES` bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

fn values<'a, T: FromBytes + 'a>(bytes: &'a [u8]) -> impl Iterator<Item = T> + 'a {
    bytes.chunks_exact(T::BYTES).map(T::from_bytes)
}

array_of!(f32, Element::Float);
array_of!(f64, Element::Double);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_out_and_come_in_where_they_belong() {
        let mut values = [1.0f32, 2.0, 3.0, 4.0];
        let mut array: &mut [f32] = &mut values;
        let mut bytes = [0; 8];
        array.load(1, &mut bytes).unwrap();
        assert_eq!(bytes[..4], 2.0f32.to_le_bytes());
        array.add(2, &bytes).unwrap();
        array.store(0, &bytes[4..]).unwrap();
        array.divide(2).unwrap();
        assert_eq!(values, [1.5, 1.0, 2.5, 3.5]);
    }

    #[test]
    fn what_is_not_a_number_is_counted() {
        let mut values = [1.0f64, f64::INFINITY, f64::NAN, -f64::NAN];
        let mut array: &mut [f64] = &mut values;
        let expected = NotANumber { count: 2, first: 2 };
        assert_eq!(array.not_numbers(), Ok(Some(expected)));
        let mut numbers: &mut [f64] = &mut [f64::MAX, 0.0];
        assert_eq!(numbers.not_numbers(), Ok(None));
    }
}
