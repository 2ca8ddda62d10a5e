//! The files of an event log as one stream of decompressed bytes each.
//!
//! Spark names the codec in the last part of a file's name, before `.inprogress` and `.compact`.

mod lz4;
mod snappy;
mod zstd;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const IN_PROGRESS: &str = ".inprogress";
const COMPACTED: &str = ".compact";
const ROLLING_FOLDER: &str = "eventlog_v2_";
const ROLLING_FILE: &str = "events_";
const STATUS_FILE: &str = "appstatus_";

#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: the folder has no events_N_* file, so it is no rolling event log of Spark", .0.display())]
    NoEvents(PathBuf),
    #[error(
        "{}: event logs compressed with {codec:?} are not supported; supported are lz4, zstd, snappy \
         and no compression (spark.eventLog.compression.codec)", path.display()
    )]
    Codec { path: PathBuf, codec: &'static str },
}

/// An event log: one file, or the files of a rolling log in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Log {
    pub files: Vec<PathBuf>,
    /// The application still ran when the log was copied, so its end may be cut anywhere.
    pub in_progress: bool,
    /// Rolled files that are missing between others.
    pub missing: Vec<u64>,
}

/// The log or logs at a path. A folder that is no rolling log is searched for logs, not deeper.
pub fn logs_at(path: &Path) -> Result<Vec<Log>, SourceError> {
    if !is_folder(path)? {
        let in_progress = name_of(path).ends_with(IN_PROGRESS);
        return Ok(vec![Log {
            files: vec![path.to_owned()],
            in_progress,
            missing: Vec::new(),
        }]);
    }
    let entries = entries(path)?;
    let rolling = |entry: &PathBuf| name_of(entry).starts_with(ROLLING_FILE);
    if name_of(path).starts_with(ROLLING_FOLDER) || entries.iter().any(rolling) {
        return Ok(vec![rolled(path, &entries)?]);
    }
    let mut logs = Vec::new();
    for entry in entries {
        let name = name_of(&entry);
        let hidden = name.starts_with('.') || name.ends_with(".crc");
        if hidden || (is_folder(&entry)? && !name.starts_with(ROLLING_FOLDER)) {
            continue;
        }
        logs.append(&mut logs_at(&entry)?);
    }
    if logs.is_empty() {
        return Err(SourceError::NoEvents(path.to_owned()));
    }
    Ok(logs)
}

fn rolled(folder: &Path, entries: &[PathBuf]) -> Result<Log, SourceError> {
    let index = |path: &PathBuf| -> Option<u64> {
        let rest = name_of(path).strip_prefix(ROLLING_FILE)?.to_owned();
        rest.split('_').next()?.parse().ok()
    };
    let mut files: Vec<(u64, PathBuf)> = entries
        .iter()
        .filter_map(|path| Some((index(path)?, path.clone())))
        .collect();
    // A compacted file stands for the files up to its index.
    let compacted = |path: &PathBuf| name_of(path).ends_with(COMPACTED);
    let newest = files.iter().filter(|f| compacted(&f.1)).map(|f| f.0).max();
    files.retain(|(index, path)| match newest {
        Some(newest) => *index > newest || (*index == newest && compacted(path)),
        None => true,
    });
    files.sort();
    let Some(first) = files.first().map(|f| f.0) else {
        return Err(SourceError::NoEvents(folder.to_owned()));
    };
    let expected_first = if newest.is_some() { first } else { 1 };
    let mut missing = Vec::new();
    let mut next = expected_first;
    for (index, _) in &files {
        // A folder that misses more than this is not worth a longer list.
        missing.extend((next..*index).take(10));
        next = index + 1;
    }
    let status = |path: &&PathBuf| name_of(path).starts_with(STATUS_FILE);
    let in_progress = entries
        .iter()
        .filter(status)
        .any(|path| name_of(path).ends_with(IN_PROGRESS));
    Ok(Log {
        files: files.into_iter().map(|f| f.1).collect(),
        in_progress,
        missing,
    })
}

/// Opens a file and decompresses it by its name.
pub fn open(path: &Path) -> Result<Box<dyn Read>, SourceError> {
    let file = File::open(path).map_err(|error| io_error(path, error))?;
    let name = name_of(path);
    let name = name.strip_suffix(COMPACTED).unwrap_or(&name);
    let name = name.strip_suffix(IN_PROGRESS).unwrap_or(name);
    let file = BufReader::with_capacity(1 << 17, file);
    Ok(match name.rsplit('.').next() {
        Some("lz4") => Box::new(lz4::Lz4Block::new(file)),
        Some("snappy") => Box::new(snappy::Snappy::new(file)),
        Some("zstd") => Box::new(zstd::ZstdSource::new(file)),
        Some("lzf") => {
            let path = path.to_owned();
            return Err(SourceError::Codec { path, codec: "lzf" });
        }
        _ => Box::new(file),
    })
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

fn is_folder(path: &Path) -> Result<bool, SourceError> {
    let found = std::fs::metadata(path).map_err(|error| io_error(path, error))?;
    Ok(found.is_dir())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|e| e.map(|e| e.path()))
            .collect::<Result<_, _>>()
    });
    let mut paths: Vec<PathBuf> = listed.map_err(|error| io_error(folder, error))?;
    paths.sort();
    Ok(paths)
}

fn io_error(path: &Path, error: io::Error) -> SourceError {
    let path = path.to_owned();
    SourceError::Io { path, error }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
