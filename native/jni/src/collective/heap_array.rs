//! Arrays on Java's heap as [`Array`]s.
//!
//! JNI copies a region of such an array in or out. A sum therefore goes through a tile that fits the
//! core's cache.

use faro_endpoint::collective::{Array, ArrayFault, Element, NotANumber};
use jni::objects::{JDoubleArray, JFloatArray};
use jni::sys::jint;
use jni::Env;
use std::cell::RefCell;
use zerocopy::FromBytes;

/// Values of a tile: 32 KiB of doubles.
const TILE: usize = 4_096;

macro_rules! heap_array {
    ($name:ident, $float:ty, $array:ident, $element:expr) => {
        /// `length` values of an array on Java's heap, from `offset` on.
        pub(super) struct $name<'a, 'local> {
            env: &'a RefCell<&'a mut Env<'local>>,
            array: &'a $array<'local>,
            offset: usize,
            length: usize,
            tile: Vec<$float>,
        }

        impl<'a, 'local> $name<'a, 'local> {
            pub(super) fn new(
                env: &'a RefCell<&'a mut Env<'local>>,
                array: &'a $array<'local>,
                offset: usize,
                length: usize,
            ) -> Self {
                let tile = vec![0.0; TILE.min(length)];
                Self {
                    env,
                    array,
                    offset,
                    length,
                    tile,
                }
            }

            /// Calls `change` for `count` values from `first` on, a tile at a time, with the position of
            /// the tile's first value within the `count`. Writes the tiles back if `write`.
            fn in_tiles(
                &mut self,
                first: usize,
                count: usize,
                write: bool,
                mut change: impl FnMut(usize, &mut [$float]),
            ) -> Result<(), ArrayFault> {
                let env = self.env.borrow();
                let mut done = 0;
                while done < count {
                    let tile = &mut self.tile[..TILE.min(count - done)];
                    let at = (self.offset + first + done) as jint;
                    self.array.get_region(&env, at, tile).map_err(fault)?;
                    change(done, tile);
                    if write {
                        self.array.set_region(&env, at, tile).map_err(fault)?;
                    }
                    done += tile.len();
                }
                Ok(())
            }
        }

        impl Array for $name<'_, '_> {
            fn element(&self) -> Element {
                $element
            }

            fn len(&self) -> usize {
                self.length
            }

            fn load(&mut self, first: usize, bytes: &mut [u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::mut_from_bytes(bytes).map_err(fault)?;
                let at = (self.offset + first) as jint;
                self.array
                    .get_region(&self.env.borrow(), at, values)
                    .map_err(fault)
            }

            fn store(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::ref_from_bytes(bytes).map_err(fault)?;
                let at = (self.offset + first) as jint;
                self.array
                    .set_region(&self.env.borrow(), at, values)
                    .map_err(fault)
            }

            fn add(&mut self, first: usize, bytes: &[u8]) -> Result<(), ArrayFault> {
                let values = <[$float]>::ref_from_bytes(bytes).map_err(fault)?;
                self.in_tiles(first, values.len(), true, |done, tile| {
                    for (value, arrived) in tile.iter_mut().zip(&values[done..]) {
                        *value += arrived;
                    }
                })
            }

            fn divide(&mut self, divisor: u32) -> Result<(), ArrayFault> {
                let divisor = divisor as $float;
                self.in_tiles(0, self.length, true, |_, tile| {
                    for value in tile {
                        *value /= divisor;
                    }
                })
            }

            fn not_numbers(&mut self) -> Result<Option<NotANumber>, ArrayFault> {
                let (mut count, mut first) = (0, None);
                self.in_tiles(0, self.length, false, |done, tile| {
                    for (at, value) in tile.iter().enumerate() {
                        if value.is_nan() {
                            count += 1;
                            first.get_or_insert(done + at);
                        }
                    }
                })?;
                Ok(first.map(|first| NotANumber { count, first }))
            }
        }
    };
}

heap_array!(Floats, f32, JFloatArray, Element::Float);
heap_array!(Doubles, f64, JDoubleArray, Element::Double);

fn fault<E: std::fmt::Display>(error: E) -> ArrayFault {
    ArrayFault(error.to_string())
}
