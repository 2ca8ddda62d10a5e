//! Unpacks columns of the modes that need no other column: all but TEXT and WIDE.

use super::input::Input;
use crate::format::fault::RowBlockFault;
use crate::format::mode::{dictionary_width, ColumnMode};
use crate::scratch::Scratch;

/// Unpacks columns, with scratch memory for runs.
#[derive(Default)]
pub(crate) struct Columns {
    runs: Scratch<u64>,
}

impl Columns {
    /// Takes the next column, whose mode is `max` or one below it. `values` must not be empty.
    pub fn take(
        &mut self,
        input: &mut Input,
        max: ColumnMode,
        values: &mut [u64],
    ) -> Result<(), RowBlockFault> {
        let at = input.at();
        match input.mode(max.min(ColumnMode::OF_LENGTHS))? {
            (ColumnMode::Dict, _) => dictionary(input, at, values),
            (ColumnMode::Runs, _) => self.runs(input, at, values),
            (mode, base_bytes) => plain(input, mode, base_bytes, values),
        }
    }

    /// Takes the next column if it is one value for all rows, and returns the value.
    pub fn take_constant(input: &mut Input) -> Option<u64> {
        let [first, 0] = *input.peek::<2>()? else {
            return None;
        };
        if first & 15 != ColumnMode::Mask as u8 || first >> 4 > 8 {
            return None;
        }
        let mut taken = input.clone();
        taken.take(2).ok()?;
        let base = taken.integer(usize::from(first >> 4)).ok()?;
        *input = taken;
        Some(base)
    }

    fn runs(
        &mut self,
        input: &mut Input,
        at: usize,
        values: &mut [u64],
    ) -> Result<(), RowBlockFault> {
        let runs = input.integer(2)? as usize;
        let bitmap = input.take(values.len().div_ceil(8))?;
        let changes: usize = bitmap.iter().map(|byte| byte.count_ones() as usize).sum();
        let last = values.len() % 8;
        let behind = last > 0 && bitmap.last().is_some_and(|byte| byte >> last != 0);
        let at_first = bitmap.first().is_some_and(|byte| byte & 1 != 0);
        // This check bounds the runs by the number of values.
        if changes + 1 != runs || behind || at_first {
            return Err(RowBlockFault::Runs {
                at,
                runs,
                values: values.len(),
                changes,
            });
        }
        let of_runs = self.runs.sized(runs)?;
        let inner = input.at();
        match input.mode(ColumnMode::OF_RUNS)? {
            (ColumnMode::Dict, _) => dictionary(input, inner, of_runs)?,
            (mode, base_bytes) => plain(input, mode, base_bytes, of_runs)?,
        }
        let mut run = 0;
        for (values, byte) in values.chunks_mut(8).zip(bitmap) {
            for (bit, value) in values.iter_mut().enumerate() {
                run += usize::from(byte >> bit & 1);
                *value = of_runs[run];
            }
        }
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        self.runs.memory_bytes()
    }

    pub fn clear(&mut self, keep: usize) {
        self.runs.clear(keep);
    }
}

fn plain(
    input: &mut Input,
    mode: ColumnMode,
    base_bytes: usize,
    values: &mut [u64],
) -> Result<(), RowBlockFault> {
    let kernels = input.kernels();
    if mode == ColumnMode::Mask {
        let mask = mask(input)?;
        let base = input.integer(base_bytes)?;
        if mask == 0 {
            values.fill(base);
            return Ok(());
        }
        input.codes(mask.count_ones(), values)?;
        kernels.deposit(values, mask, base);
        return Ok(());
    }
    let width = u32::from(input.byte()?);
    let base = input.integer(base_bytes)?;
    match mode {
        ColumnMode::For => {
            input.codes(width, values)?;
            kernels.add(values, base);
        }
        ColumnMode::ForZ => {
            input.codes(width, values)?;
            kernels.add_to_nonzero(values, base);
        }
        _ => {
            let first = input.integer(8)?;
            if let [value, steps @ ..] = values {
                *value = first;
                input.codes(width, steps)?;
                let mut value = first;
                for step in steps {
                    value = value.wrapping_add(base).wrapping_add(*step);
                    *step = value;
                }
            }
        }
    }
    Ok(())
}

fn mask(input: &mut Input) -> Result<u64, RowBlockFault> {
    let which = input.byte()?;
    let mut bytes = [0; 8];
    for (bit, byte) in bytes.iter_mut().enumerate() {
        if which >> bit & 1 == 1 {
            *byte = input.byte()?;
        }
    }
    Ok(u64::from_le_bytes(bytes))
}

fn dictionary(input: &mut Input, at: usize, values: &mut [u64]) -> Result<(), RowBlockFault> {
    let count = usize::from(input.byte()?);
    let fault = |code| RowBlockFault::Dictionary {
        at,
        entries: count,
        code,
    };
    if count == 0 {
        return Err(fault(0));
    }
    // Codes have at most 8 bits, so each is the index of an entry or of a zero.
    let mut entries = [0; 256];
    let (mode, base_bytes) = input.mode(ColumnMode::OF_ENTRIES)?;
    plain(input, mode, base_bytes, &mut entries[..count])?;
    input.codes(dictionary_width(count), values)?;
    let mut max = 0;
    for value in values {
        max = max.max(*value);
        *value = entries[(*value & 255) as usize];
    }
    if max >= count as u64 {
        return Err(fault(max));
    }
    Ok(())
}
