//! Packs a column in the best of the modes MASK, FOR, FORZ and DELTA.

use super::body_writer::{BodyWriter, OutOfSpace};
use crate::format::bits::{bits, code_bytes, value_bytes, width};
use crate::format::mode::ColumnMode;
use crate::format::stats::ColumnStats;
use crate::kernels::Kernels;

/// The mode that takes the fewest bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModeChoice {
    /// Size of the whole column, in bytes.
    pub bytes: usize,
    pub width: u32,
    mode: ColumnMode,
}

impl ModeChoice {
    /// Chooses the mode for `count` values with these statistics.
    pub fn of(stats: &ColumnStats, count: usize) -> Self {
        let mask = stats.mask();
        let mask_bytes = mask.to_le_bytes().iter().filter(|byte| **byte != 0).count();
        let mut best = Self {
            bytes: 2
                + mask_bytes
                + value_bytes(stats.first & !mask)
                + code_bytes(count, mask.count_ones()),
            width: mask.count_ones(),
            mode: ColumnMode::Mask,
        };
        let mut consider = |mode, range: u64, base: u64, more: usize, codes: usize| {
            let width = width(bits(range));
            let bytes = 2 + value_bytes(base) + more + code_bytes(codes, width);
            if bytes < best.bytes {
                best = Self { bytes, width, mode };
            }
        };
        let range = stats.max.wrapping_sub(stats.min) as u64;
        consider(ColumnMode::For, range, stats.min as u64, 0, count);
        if stats.unsigned_max != 0 {
            let range = stats.unsigned_max.wrapping_sub(stats.below_nonzero);
            consider(ColumnMode::ForZ, range, stats.below_nonzero, 0, count);
        }
        if count > 1 {
            let range = stats.max_step.wrapping_sub(stats.min_step) as u64;
            consider(
                ColumnMode::Delta,
                range,
                stats.min_step as u64,
                8,
                count - 1,
            );
        }
        best
    }
}

/// Appends the column. `codes` is scratch memory for at least as many values.
pub(crate) fn put_plain(
    kernels: Kernels,
    values: &[u64],
    stats: &ColumnStats,
    choice: ModeChoice,
    codes: &mut [u64],
    out: &mut BodyWriter,
) -> Result<(), OutOfSpace> {
    let ModeChoice { mode, width, .. } = choice;
    let codes = &mut codes[..values.len()];
    match mode {
        ColumnMode::Mask => {
            let mask = stats.mask();
            put_mask(stats.first & !mask, mask, out)?;
            if mask == 0 {
                return Ok(());
            }
            codes.copy_from_slice(values);
            kernels.extract(codes, mask);
        }
        ColumnMode::Delta => {
            let base = stats.min_step as u64;
            put_head(mode, width, base, out)?;
            out.put(&stats.first.to_le_bytes())?;
            let steps = &mut codes[..values.len() - 1];
            for ((code, before), value) in steps.iter_mut().zip(values).zip(&values[1..]) {
                *code = value.wrapping_sub(*before).wrapping_sub(base);
            }
            return put_codes(kernels, steps, width, out);
        }
        ColumnMode::ForZ => {
            put_head(mode, width, stats.below_nonzero, out)?;
            codes.copy_from_slice(values);
            kernels.add_to_nonzero(codes, stats.below_nonzero.wrapping_neg());
        }
        _ => {
            put_head(ColumnMode::For, width, stats.min as u64, out)?;
            codes.copy_from_slice(values);
            kernels.add(codes, (stats.min as u64).wrapping_neg());
        }
    }
    put_codes(kernels, codes, width, out)
}

pub(crate) fn put_codes(
    kernels: Kernels,
    codes: &[u64],
    width: u32,
    out: &mut BodyWriter,
) -> Result<(), OutOfSpace> {
    kernels.pack(codes, width, out.space(code_bytes(codes.len(), width))?);
    Ok(())
}

fn put_head(
    mode: ColumnMode,
    width: u32,
    base: u64,
    out: &mut BodyWriter,
) -> Result<(), OutOfSpace> {
    let bytes = value_bytes(base);
    out.put(&[mode.first_byte(bytes), width as u8])?;
    out.put(&base.to_le_bytes()[..bytes])
}

fn put_mask(base: u64, mask: u64, out: &mut BodyWriter) -> Result<(), OutOfSpace> {
    let base_bytes = value_bytes(base);
    let (mut head, mut end) = (
        [
            ColumnMode::Mask.first_byte(base_bytes),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ],
        2,
    );
    for (index, byte) in mask.to_le_bytes().into_iter().enumerate() {
        if byte != 0 {
            head[1] |= 1 << index;
            head[end] = byte;
            end += 1;
        }
    }
    out.put(&head[..end])?;
    out.put(&base.to_le_bytes()[..base_bytes])
}
