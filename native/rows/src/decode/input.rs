//! Reads a body's columns and checks each read against the columns' end.

use crate::format::bits::{code_bytes, is_width};
use crate::format::fault::RowBlockFault;
use crate::format::mode::ColumnMode;
use crate::kernels::Kernels;

#[derive(Clone)]
pub(crate) struct Input<'a> {
    /// The body up to the columns' end.
    columns: &'a [u8],
    at: usize,
    kernels: Kernels,
}

impl<'a> Input<'a> {
    pub fn new(columns: &'a [u8], at: usize, kernels: Kernels) -> Self {
        debug_assert!(at <= columns.len());
        Self {
            columns,
            at,
            kernels,
        }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.columns.len() - self.at
    }

    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    pub fn peek<const BYTES: usize>(&self) -> Option<&'a [u8; BYTES]> {
        self.columns[self.at..].first_chunk()
    }

    pub fn take(&mut self, needed: usize) -> Result<&'a [u8], RowBlockFault> {
        let (at, left) = (self.at, self.left());
        if needed > left {
            return Err(RowBlockFault::ShortColumn { at, needed, left });
        }
        self.at += needed;
        Ok(&self.columns[at..at + needed])
    }

    pub fn byte(&mut self) -> Result<u8, RowBlockFault> {
        Ok(self.take(1)?[0])
    }

    /// Takes an integer of `bytes` bytes, at most 8.
    pub fn integer(&mut self, bytes: usize) -> Result<u64, RowBlockFault> {
        debug_assert!(bytes <= 8);
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(word))
    }

    /// Takes a column's first byte. Returns its mode, at most `max`, and the number of bytes of its
    /// base.
    pub fn mode(&mut self, max: ColumnMode) -> Result<(ColumnMode, usize), RowBlockFault> {
        let at = self.at;
        let found = self.byte()?;
        let mode = match found & 15 {
            0 => ColumnMode::Mask,
            1 => ColumnMode::For,
            2 => ColumnMode::ForZ,
            3 => ColumnMode::Delta,
            4 => ColumnMode::Dict,
            5 => ColumnMode::Runs,
            6 => ColumnMode::Text,
            7 => ColumnMode::Wide,
            _ => return Err(RowBlockFault::Mode { at, found }),
        };
        let base_bytes = usize::from(found >> 4);
        let max_base = if mode <= ColumnMode::Delta { 8 } else { 0 };
        if mode > max || base_bytes > max_base {
            return Err(RowBlockFault::Mode { at, found });
        }
        Ok((mode, base_bytes))
    }

    /// Takes a code of `width` bits for each value.
    pub fn codes(&mut self, width: u32, values: &mut [u64]) -> Result<(), RowBlockFault> {
        if !is_width(width) {
            return Err(RowBlockFault::Width {
                at: self.at,
                found: width,
            });
        }
        let bytes = self.take(code_bytes(values.len(), width))?;
        self.kernels.unpack(bytes, width, values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::body_writer::BodyWriter;

    #[test]
    fn no_read_passes_the_columns_end_and_no_write_the_room() {
        let mut room = [0; 9];
        let mut out = BodyWriter::new(&mut room);
        out.put(&7_u32.to_le_bytes()).unwrap();
        assert!(out.put(&[1; 6]).is_err());
        assert_eq!(out.at(), 4);
        Kernels::detect().pack(&[1, 2, 3, 4], 10, out.space(5).unwrap());
        for kernels in [Kernels::portable(), Kernels::detect()] {
            let mut input = Input::new(&room, 0, kernels);
            assert_eq!(input.integer(4), Ok(7));
            let mut codes = [0; 5];
            let short = RowBlockFault::ShortColumn {
                at: 4,
                needed: 7,
                left: 5,
            };
            assert_eq!(input.codes(10, &mut codes), Err(short));
            let found = 57;
            assert_eq!(
                input.codes(found, &mut codes),
                Err(RowBlockFault::Width { at: 4, found })
            );
            assert_eq!(input.codes(10, &mut codes[..4]), Ok(()));
            assert_eq!(codes, [1, 2, 3, 4, 0]);
            assert_eq!(
                input.byte(),
                Err(RowBlockFault::ShortColumn {
                    at: 9,
                    needed: 1,
                    left: 0
                })
            );
        }
    }
}
