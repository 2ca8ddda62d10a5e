//! What a service before this one has left in an application's directory: first by its names alone, then each output
//! when it is looked at.

use super::directory::{Directory, Links};
use crate::handed_over::{HandedError, HandedOverFiles};
use crate::links::{is_list, Kind, Link, OutputFile};
use crate::record::Record;
use faro_wire::OutputId;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::io;

/// Names of an output, and the length of its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftNames {
    pub(super) kind: Kind,
    pub(super) generation: u64,
    pub(super) has_data: bool,
    pub(super) bytes: u64,
}

/// All names of a directory.
#[derive(Debug, Default)]
pub(super) struct FoundNames {
    pub(super) outputs: HashMap<OutputId, LeftNames>,
    /// The highest there is.
    pub(super) generation: u64,
    /// How many names were no output's, or an older one's.
    pub(super) removed: usize,
}

/// The reason that an output that was left is not served.
#[derive(Debug)]
pub(super) enum OutputCheckError {
    /// Its files are not those of a map output.
    Torn,
    /// They cannot be looked at now: no descriptors, no memory, an error of the disk.
    Later(io::Error),
}

/// Sorts the names, and removes those that are no output's. Opens no file, so it takes as long as there are names.
///
/// # Errors
/// The directory cannot be read; then nothing was removed.
pub(super) fn scan(directory: &Directory) -> io::Result<FoundNames> {
    let mut found: HashMap<(OutputId, u64, Kind), [bool; 2]> = HashMap::new();
    let (mut names, mut unknown) = (FoundNames::default(), Vec::new());
    for entry in std::fs::read_dir(directory.path())? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        match Link::parse(&name) {
            Some(link) => {
                let key = (link.id, link.generation, link.kind);
                found.entry(key).or_default()[link.part as usize] = true;
            }
            None if Record::is_name(&name) => {}
            None => {
                names.removed += usize::from(!is_list(&name));
                unknown.push(name.into_owned());
            }
        }
    }
    unknown.iter().for_each(|name| directory.remove(name));
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable_by_key(|(key, _)| *key);
    for ((id, generation, kind), [has_index, has_data]) in found {
        names.generation = names.generation.max(generation);
        let links = |kind, generation| Links {
            kind,
            id,
            generation,
        };
        if !has_index {
            directory.unlink(links(kind, generation), has_data);
            names.removed += 1;
            continue;
        }
        let left = LeftNames {
            kind,
            generation,
            has_data,
            bytes: directory.length(links(kind, generation), has_data),
        };
        // A higher generation of the same output counts.
        if let Some(older) = names.outputs.insert(id, left) {
            names.removed += 1 + usize::from(older.has_data);
            directory.unlink(links(older.kind, older.generation), older.has_data);
        }
    }
    Ok(names)
}

/// Checks an output as if it were handed over. Returns the bytes of its files.
///
/// # Errors
/// `Torn`, `Later`.
pub(super) fn check(
    directory: &Directory,
    links: Links,
    has_data: bool,
) -> Result<u64, OutputCheckError> {
    let open = |part| directory.open_part(links, part);
    let index = open(OutputFile::Index)?;
    let data = has_data.then(|| open(OutputFile::Data)).transpose()?;
    let owner = match links.kind {
        Kind::Own => directory.owner(),
        Kind::Replica => geteuid().as_raw(),
    };
    let handed = HandedOverFiles::check(index, data, owner)?;
    Ok(handed.bytes)
}

impl From<Errno> for OutputCheckError {
    fn from(errno: Errno) -> Self {
        match errno {
            // There is nothing of that name, or something that is never opened as a file.
            Errno::NOENT | Errno::LOOP | Errno::NXIO => Self::Torn,
            other => Self::Later(other.into()),
        }
    }
}

impl From<HandedError> for OutputCheckError {
    fn from(error: HandedError) -> Self {
        match error {
            // A file that became shorter meanwhile.
            HandedError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Self::Torn,
            HandedError::Io(error) => Self::Later(error),
            HandedError::NotRegular { .. }
            | HandedError::Removed { .. }
            | HandedError::Foreign { .. }
            | HandedError::IndexLength { .. }
            | HandedError::Offset { .. }
            | HandedError::Ends { .. } => Self::Torn,
        }
    }
}

#[cfg(test)]
#[path = "recover_test.rs"]
mod tests;
