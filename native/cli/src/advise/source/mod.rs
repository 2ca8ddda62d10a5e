//! The files of an event log as one stream of decompressed bytes each.
//!
//! Spark names the codec in the last part of a file's name, before `.inprogress` and `.compact`.

mod find;
mod lz4;
mod snappy;
mod zstd;

pub use find::{find, Log};

use super::problem::{FileKind, ProblemKind};
use std::fs::{Metadata, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

const IN_PROGRESS: &str = ".inprogress";
const COMPACTED: &str = ".compact";
/// A compressed file has at most this many bytes for each of its own, and `ALWAYS` more. Event logs have up to
/// a hundred.
const EXPANSION: u64 = 1_000;
const ALWAYS: u64 = 64 << 20;

/// Opens a file and decompresses it by its name. No more is read than the file has now.
pub fn open(path: &Path) -> Result<Box<dyn Read>, ProblemKind> {
    // Opening a device may have effects, and opening a pipe waits for a writer.
    regular(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = options.read(true).custom_flags(flags).open(path)?;
    // The file may have been replaced since.
    let found = file.metadata()?;
    regular(&found)?;
    let name = name_of(path);
    let name = name.strip_suffix(COMPACTED).unwrap_or(&name);
    let name = name.strip_suffix(IN_PROGRESS).unwrap_or(name);
    let bytes = found.len();
    let file = BufReader::with_capacity(1 << 17, file.take(bytes));
    let left = bytes.saturating_mul(EXPANSION).saturating_add(ALWAYS);
    Ok(match name.rsplit('.').next() {
        Some("lz4") => expanded(lz4::Lz4Block::new(file), left),
        Some("snappy") => expanded(snappy::Snappy::new(file), left),
        Some("zstd") => expanded(zstd::ZstdSource::new(file), left),
        Some("lzf") => return Err(ProblemKind::Codec("lzf")),
        _ => Box::new(file),
    })
}

fn regular(found: &Metadata) -> Result<(), ProblemKind> {
    let kind = found.file_type();
    Err(ProblemKind::NotRegular(match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => FileKind::Folder,
        kind if kind.is_fifo() => FileKind::Pipe,
        kind if kind.is_socket() => FileKind::Socket,
        _ => FileKind::Device,
    }))
}

/// Bounds the output, because a few bytes can decompress to terabytes.
struct BoundedReader<R> {
    from: R,
    left: u64,
}

fn expanded(from: impl Read + 'static, left: u64) -> Box<dyn Read> {
    Box::new(BoundedReader { from, left })
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(to)?;
        self.left = self.left.checked_sub(n as u64).ok_or_else(|| {
            invalid(format!(
                "it decompresses to more than {EXPANSION} times its size, as no event log does"
            ))
        })?;
        Ok(n)
    }
}

/// Reads until the buffer is full or the stream ends. Returns the number of bytes.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match from.read(rest) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

fn truncated(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
