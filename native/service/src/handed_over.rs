//! The files of a map output that was handed over, checked. Nothing about them is believed: an executor may pass
//! any descriptor that it has.

use rustix::fs::{
    accessat, fcntl_getfl, fstat, seek, Access, AtFlags, FileType, OFlags, SeekFrom, CWD,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use thiserror::Error;

/// The longest index: 16,777,215 partitions, Spark's most.
const MAX_INDEX: u64 = 8 << 24;
/// Bytes of an index that are looked at together.
const CHUNK: usize = 64 << 10;
/// Set-user-id, set-group-id, sticky.
const SPECIAL_BITS: u32 = 0o7000;

/// The reason that files are not kept.
#[derive(Debug, Error)]
pub enum HandedError {
    #[error("the {part} is no regular file that was opened for reading")]
    NotRegular { part: &'static str },
    #[error("the {part} belongs to user {is}, not to user {owner} who hands it over")]
    Foreign {
        part: &'static str,
        is: u32,
        owner: u32,
    },
    #[error("the {part} was removed, or never had a name")]
    Removed { part: &'static str },
    #[error("the index has {got} bytes, allowed: 16 to {MAX_INDEX}, in eights")]
    IndexLength { got: u64 },
    #[error("offset {at} of the index is {got}, after {before}")]
    Offset { at: u64, before: u64, got: u64 },
    #[error("the index ends at {index}, the data file at {data}")]
    Ends { index: u64, data: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Files of a map output that fit each other.
#[derive(Debug)]
pub struct HandedOverFiles {
    pub index: File,
    /// `None`: all partitions are empty.
    pub data: Option<File>,
    /// Bytes of both files.
    pub bytes: u64,
}

impl HandedOverFiles {
    /// Checks that these are an index and its data file, both of that user.
    ///
    /// # Errors
    /// They are not, or cannot be read.
    pub fn check(index: File, data: Option<File>, owner: u32) -> Result<Self, HandedError> {
        let index_bytes = length(&index, "index", owner)?;
        let data_bytes = match &data {
            Some(data) => length(data, "data file", owner)?,
            None => 0,
        };
        if !(16..=MAX_INDEX).contains(&index_bytes) || index_bytes % 8 != 0 {
            return Err(HandedError::IndexLength { got: index_bytes });
        }
        let end = last_offset(&index, index_bytes)?;
        if end != data_bytes {
            return Err(HandedError::Ends {
                index: end,
                data: data_bytes,
            });
        }
        Ok(Self {
            index,
            data,
            bytes: index_bytes + data_bytes,
        })
    }

    /// Whether this process may open the files by a path. Asks for its rights and opens nothing, because opening may
    /// wait.
    ///
    /// # Errors
    /// It may not.
    pub fn is_readable(&self) -> io::Result<()> {
        for file in [Some(&self.index), self.data.as_ref()]
            .into_iter()
            .flatten()
        {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)?;
        }
        Ok(())
    }
}

/// Returns the length of a regular file that is open for reading and belongs to `owner`.
fn length(file: &File, part: &'static str, owner: u32) -> Result<u64, HandedError> {
    let flags = fcntl_getfl(file).map_err(io::Error::from)?;
    let readable = !flags.contains(OFlags::PATH) && !flags.contains(OFlags::WRONLY);
    let stat = fstat(file).map_err(io::Error::from)?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_regular || !readable || stat.st_mode & SPECIAL_BITS != 0 {
        return Err(HandedError::NotRegular { part });
    }
    if stat.st_nlink == 0 {
        // Such as memory that has no name: nobody but this service would keep it, and no file system bounds it.
        return Err(HandedError::Removed { part });
    }
    if stat.st_uid != owner {
        let is = stat.st_uid;
        return Err(HandedError::Foreign { part, is, owner });
    }
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

/// The last of the offsets, none of which is smaller than the one before; the first is 0. Holes of the file are zeros and
/// are not read: the time that it takes is bounded by what the file has on the disk.
fn last_offset(index: &File, bytes: u64) -> Result<u64, HandedError> {
    let mut chunk = vec![0; CHUNK.min(bytes as usize)];
    let (mut before, mut at) = (0, 0);
    while at < bytes {
        let data = next_data(index, at, bytes)?;
        // Offsets that are in a hole as a whole.
        let zeros = (data / 8 * 8).max(at);
        if zeros > at && before != 0 {
            let (at, got) = (at / 8, 0);
            return Err(HandedError::Offset { at, before, got });
        }
        at = zeros;
        let now = (chunk.len() as u64).min(bytes - at) as usize;
        index.read_exact_at(&mut chunk[..now], at)?;
        for raw in chunk[..now].chunks_exact(8) {
            let mut offset = [0; 8];
            offset.copy_from_slice(raw);
            let got = u64::from_be_bytes(offset);
            if got < before || (at == 0 && got != 0) {
                let at = at / 8;
                return Err(HandedError::Offset { at, before, got });
            }
            before = got;
            at += 8;
        }
    }
    Ok(before)
}

/// Returns the offset of the first byte at or after `at` that the file has on disk, or `bytes` if all that follows is a
/// hole.
fn next_data(file: &File, at: u64, bytes: u64) -> io::Result<u64> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(data.min(bytes)),
        Err(Errno::NXIO) => Ok(bytes),
        // A file system that does not know its holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(at),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn index(length: u64, written: &[(u64, u64)]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(length).unwrap();
        for (at, offset) in written {
            file.write_all_at(&offset.to_be_bytes(), *at).unwrap();
        }
        file
    }

    #[test]
    fn holes_are_zeros_and_are_not_read() {
        // With what it has on the disk only, else this would take long: the longest index, many times.
        for _ in 0..1_000 {
            let empty = index(MAX_INDEX, &[]);
            assert_eq!(empty.metadata().unwrap().blocks(), 0);
            assert_eq!(last_offset(&empty, MAX_INDEX).unwrap(), 0);
            let last = index(MAX_INDEX, &[(MAX_INDEX - 8, 9)]);
            assert_eq!(last_offset(&last, MAX_INDEX).unwrap(), 9);
        }
    }

    #[test]
    fn a_hole_after_an_offset_is_smaller() {
        let torn = index(MAX_INDEX, &[(1 << 20, 9), (MAX_INDEX - 8, 9)]);
        let error = last_offset(&torn, MAX_INDEX).unwrap_err();
        assert!(
            matches!(
                error,
                HandedError::Offset {
                    before: 9,
                    got: 0,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn offsets_across_chunks_and_holes_are_read() {
        let length = 5 * CHUNK as u64;
        let all: Vec<(u64, u64)> = (0..length / 8).map(|at| (8 * at, at / 3_000)).collect();
        let whole = index(length, &all);
        assert_eq!(
            last_offset(&whole, length).unwrap(),
            (length / 8 - 1) / 3_000
        );
    }
}
