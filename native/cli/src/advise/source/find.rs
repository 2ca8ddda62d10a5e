//! The event logs at a path: a file, the folder of a rolling log, or a folder with logs below it.

use super::{name_of, COMPACTED, IN_PROGRESS};
use crate::advise::problem::{Problem, ProblemKind};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const ROLLING_FOLDER: &str = "eventlog_v2_";
const ROLLING_FILE: &str = "events_";
const STATUS_FILE: &str = "appstatus_";

/// An event log: one file, or the files of a rolling log in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Log {
    pub files: Vec<PathBuf>,
    /// The application still ran when the log was copied, so its end may be cut anywhere.
    pub in_progress: bool,
    /// Spark has removed events of jobs that had ended.
    pub compacted: bool,
    /// Rolled files that are missing between others.
    pub missing: Vec<u64>,
}

#[derive(Debug, Default)]
pub struct FoundLogs {
    pub logs: Vec<Log>,
    pub problems: Vec<Problem>,
    /// Device and inode of visited folders: a link can lead to a parent.
    folders: HashSet<(u64, u64)>,
}

pub fn find(path: &Path) -> FoundLogs {
    let mut found = FoundLogs::default();
    found.add(path);
    if found.logs.is_empty() && found.problems.is_empty() {
        found
            .problems
            .push(Problem::new(path, 0, ProblemKind::NoLogs));
    }
    found
}

impl FoundLogs {
    fn add(&mut self, path: &Path) {
        if let Err(kind) = self.try_add(path) {
            self.problems.push(Problem::new(path, 0, kind));
        }
    }

    fn try_add(&mut self, path: &Path) -> Result<(), ProblemKind> {
        let file = fs::metadata(path)?;
        if !file.is_dir() {
            self.logs.push(Log {
                in_progress: name_of(path).ends_with(IN_PROGRESS),
                compacted: false,
                missing: Vec::new(),
                files: vec![path.to_owned()],
            });
            return Ok(());
        }
        if !self.folders.insert((file.dev(), file.ino())) {
            return Ok(());
        }
        let entries = entries(path)?;
        let is_rolled = entries.iter().any(|entry| rolled_index(entry).is_some());
        if is_rolled || name_of(path).starts_with(ROLLING_FOLDER) {
            self.logs.push(rolled(&entries)?);
            return Ok(());
        }
        for entry in entries {
            let name = name_of(&entry);
            if !name.starts_with('.') && !name.ends_with(".crc") {
                self.add(&entry);
            }
        }
        Ok(())
    }
}

fn rolled_index(path: &Path) -> Option<u64> {
    let name = name_of(path);
    let rest = name.strip_prefix(ROLLING_FILE)?;
    rest.split('_').next()?.parse().ok()
}

fn rolled(entries: &[PathBuf]) -> Result<Log, ProblemKind> {
    let mut files: Vec<(u64, PathBuf)> = entries
        .iter()
        .filter_map(|path| Some((rolled_index(path)?, path.clone())))
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
        return Err(ProblemKind::NoEvents);
    };
    let mut missing = Vec::new();
    let mut next = if newest.is_some() { first } else { 1 };
    for (index, _) in &files {
        // A longer list of missing files would not help.
        missing.extend((next..*index).take(10));
        next = index.saturating_add(1);
    }
    let status = |path: &&PathBuf| name_of(path).starts_with(STATUS_FILE);
    let in_progress = entries
        .iter()
        .filter(status)
        .any(|path| name_of(path).ends_with(IN_PROGRESS));
    Ok(Log {
        files: files.into_iter().map(|f| f.1).collect(),
        in_progress,
        compacted: newest.is_some(),
        missing,
    })
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
