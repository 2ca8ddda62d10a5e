//! Reads bytes that are in no page: from the page cache, or from the disk.

use super::counters::Counts;
use super::Sleep;
use crate::Region;
use faro_sync::atomic::Ordering;
use std::io;

/// Reads the piece from the page cache, and then from the disk if the read may sleep. Returns
/// the number of bytes read.
pub(super) fn fault(
    counts: &Counts,
    region: &Region,
    offset: u64,
    piece: &mut [u8],
    sleep: Sleep,
) -> io::Result<usize> {
    let file = match sleep {
        Sleep::May => region.open()?,
        // A progress thread does not open files.
        Sleep::Never => match region.opened() {
            Some(file) => file,
            None => return Ok(0),
        },
    };
    let cached = file.read_cached(offset, piece)?;
    if cached == piece.len() {
        counts.minor.fetch_add(1, Ordering::Relaxed);
        return Ok(cached);
    }
    if sleep == Sleep::Never {
        return Ok(cached);
    }
    file.read(offset + cached as u64, &mut piece[cached..])?;
    // Without `RWF_NOWAIT` it is unknown whether the read waited for a disk.
    let exit = match region.knows_nowait() {
        true => &counts.major,
        false => &*counts.minor,
    };
    exit.fetch_add(1, Ordering::Relaxed);
    Ok(piece.len())
}
