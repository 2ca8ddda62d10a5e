//! Packs a column in the best mode other than TEXT and WIDE.

use super::body_writer::{BodyWriter, OutOfSpace};
use super::dictionary::{Dictionary, Tries, MIN_VALUES};
use super::plain::{put_codes, put_plain, ModeChoice};
use crate::format::bits::code_bytes;
use crate::format::fault::RowBlockFault;
use crate::format::mode::{dictionary_width, ColumnMode};
use crate::kernels::Kernels;
use crate::scratch::Scratch;

/// Minimum width of codes for which a dictionary is tried, in bits.
const MIN_WIDTH: u32 = 10;
/// Minimum number of values for which runs are tried.
const MIN_FOR_RUNS: usize = 16;

/// The reason that a column was not packed.
pub(crate) enum Stop {
    Full,
    NoMemory,
}

impl From<OutOfSpace> for Stop {
    fn from(_: OutOfSpace) -> Self {
        Self::Full
    }
}

impl From<RowBlockFault> for Stop {
    fn from(_: RowBlockFault) -> Self {
        Self::NoMemory
    }
}

#[derive(Default)]
pub(crate) struct Packer {
    codes: Scratch<u64>,
    runs: Scratch<u64>,
    dictionary: Dictionary,
}

impl Packer {
    /// Appends the column, in the mode RUNS or one below it. `values` must not be empty. A
    /// dictionary may be tried only if `tries` is given.
    pub fn put(
        &mut self,
        kernels: Kernels,
        values: &[u64],
        tries: Option<&mut Tries>,
        out: &mut BodyWriter,
    ) -> Result<(), Stop> {
        let stats = kernels.stats(values);
        let choice = ModeChoice::of(&stats, values.len());
        if choice.width > 1 && values.len() >= MIN_FOR_RUNS && stats.repeats > values.len() / 4 {
            let runs = values.len() - stats.repeats;
            let bytes = 3 + values.len().div_ceil(8) + 10 + runs * choice.width as usize / 8;
            if bytes < choice.bytes && runs <= usize::from(u16::MAX) {
                let start = out.at();
                self.put_runs(kernels, values, runs, out)?;
                if out.at() - start < choice.bytes {
                    return Ok(());
                }
                out.truncate(start);
            }
        }
        if let Some(tries) = tries {
            let worth = choice.width >= MIN_WIDTH && values.len() >= MIN_VALUES;
            if worth && tries.is_due() {
                let succeeded = self.put_dictionary(kernels, values, choice.bytes, out)?;
                tries.tell(succeeded);
                if succeeded {
                    return Ok(());
                }
            }
        }
        let codes = self.codes.sized(values.len())?;
        Ok(put_plain(kernels, values, &stats, choice, codes, out)?)
    }

    fn put_runs(
        &mut self,
        kernels: Kernels,
        values: &[u64],
        runs: usize,
        out: &mut BodyWriter,
    ) -> Result<(), Stop> {
        out.put(&[ColumnMode::Runs.first_byte(0)])?;
        out.put(&(runs as u16).to_le_bytes())?;
        let bitmap = out.space(values.len().div_ceil(8))?;
        let of_runs = self.runs.sized(runs)?;
        let (mut before, mut run) = (values[0], 0);
        for (byte, values) in bitmap.iter_mut().zip(values.chunks(8)) {
            *byte = 0;
            for (bit, value) in values.iter().enumerate() {
                let changed = *value != before;
                run += usize::from(changed);
                // `runs` counts the changes and the first run.
                of_runs[run.min(runs - 1)] = *value;
                *byte |= u8::from(changed) << bit;
                before = *value;
            }
        }
        let of_runs = &self.runs.values()[..runs];
        let stats = kernels.stats(of_runs);
        let choice = ModeChoice::of(&stats, runs);
        let codes = self.codes.sized(runs)?;
        Ok(put_plain(kernels, of_runs, &stats, choice, codes, out)?)
    }

    /// Appends a dictionary. Returns false and appends nothing if the column would take `max` bytes
    /// or more.
    fn put_dictionary(
        &mut self,
        kernels: Kernels,
        values: &[u64],
        max: usize,
        out: &mut BodyWriter,
    ) -> Result<bool, Stop> {
        let codes = self.codes.sized(values.len())?;
        if !self.dictionary.code(values, codes) {
            return Ok(false);
        }
        let entries = self.dictionary.entries();
        let start = out.at();
        let stats = kernels.stats(entries);
        let choice = ModeChoice::of(&stats, entries.len());
        let width = dictionary_width(entries.len());
        let bytes = 2 + choice.bytes + code_bytes(values.len(), width);
        if bytes >= max {
            return Ok(false);
        }
        out.put(&[ColumnMode::Dict.first_byte(0), entries.len() as u8])?;
        let mut scratch = [0; 256];
        put_plain(kernels, entries, &stats, choice, &mut scratch, out)?;
        put_codes(kernels, codes, width, out)?;
        debug_assert_eq!(out.at() - start, bytes);
        Ok(true)
    }

    pub fn memory_bytes(&self) -> usize {
        self.codes.memory_bytes() + self.runs.memory_bytes() + self.dictionary.memory_bytes()
    }
}
