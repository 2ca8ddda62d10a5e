//! Reads regions: from slots, or from the page cache or the disk, and fills slots with the chunks that
//! are asked for often.

use super::counters::Counts;
use super::guards::ReadGuard;
use super::state::FillCause;
use super::ChunkCache;
use crate::{Region, CHUNK_BYTES};
use faro_sync::atomic::Ordering;
use faro_sync::lock;
use std::io;
use std::sync::Arc;

/// Whether a read may wait for a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleep {
    /// It may not (a progress thread): it returns the bytes that are in memory.
    Never,
    /// It may (an I/O thread).
    May,
}

impl ChunkCache {
    /// Fills a slot with a chunk before a read asks for it; may sleep. It evicts no other chunk. Returns
    /// `false` if a slot has it or is being filled with it, or if there is no slot for it.
    ///
    /// # Errors
    /// Returns the error of reading the file.
    pub fn prefetch(self: &Arc<Self>, region: &Region, chunk: u64) -> io::Result<bool> {
        Ok(self.fill(region, chunk, FillCause::Prefetch)?.is_some())
    }

    /// Fills the front of `out` with the bytes of `region` from `offset`, and returns their number.
    /// If the read may sleep, it fills all of `out`, and also fills slots with chunks that are
    /// asked for often.
    ///
    /// # Errors
    /// Returns the error of reading the file, and `UnexpectedEof` if it has become shorter.
    pub fn read(
        self: &Arc<Self>,
        region: &Region,
        offset: u64,
        out: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let (chunk, within) = (at / CHUNK_BYTES, (at % CHUNK_BYTES) as usize);
            let length = (out.len() - done).min(CHUNK_BYTES as usize - within);
            let piece = &mut out[done..done + length];
            let got = self.read_piece(region, chunk, within, piece, sleep)?;
            debug_assert!(got <= length);
            done += got;
            if got < length {
                break;
            }
        }
        Ok(done)
    }

    fn read_piece(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        within: usize,
        piece: &mut [u8],
        sleep: Sleep,
    ) -> io::Result<usize> {
        let mut admitted = None;
        let guard = {
            let mut state = lock(&self.state);
            let slot = state.acquire((region.id(), chunk));
            if slot.is_none() && sleep == Sleep::May && piece.len() < CHUNK_BYTES as usize {
                admitted = state.admission.count_access((region.id(), chunk));
            }
            slot.and_then(|slot| self.guard(&state, slot))
        };
        let guard = match guard {
            Some(guard) => {
                self.counts.resident.fetch_add(1, Ordering::Relaxed);
                Some(guard)
            }
            // If the chunk cannot be read as a whole, the wanted part may still be readable.
            None => admitted.and_then(|accesses| {
                let cause = FillCause::Often { accesses };
                self.fill(region, chunk, cause).unwrap_or(None)
            }),
        };
        if let Some(bytes) = guard
            .as_ref()
            .and_then(|p| p.bytes().get(within..within + piece.len()))
        {
            piece.copy_from_slice(bytes);
            return Ok(piece.len());
        }
        let offset = chunk * CHUNK_BYTES + within as u64;
        fault(&self.counts, region, offset, piece, sleep)
    }

    fn fill(
        self: &Arc<Self>,
        region: &Region,
        chunk: u64,
        cause: FillCause,
    ) -> io::Result<Option<ReadGuard>> {
        let Some(mut fill) = self.begin_fill_for(region.id(), chunk, cause) else {
            return Ok(None);
        };
        let offset = chunk * CHUNK_BYTES;
        let length = CHUNK_BYTES.min(region.bytes().saturating_sub(offset)) as usize;
        let bytes = &mut fill.bytes_mut()[..length];
        fault(&self.counts, region, offset, bytes, Sleep::May)?;
        Ok(Some(fill.publish(length)))
    }
}

/// Reads the piece from the page cache, and then from the disk if the read may sleep. Returns
/// the number of bytes read.
fn fault(
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
