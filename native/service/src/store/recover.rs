//! Finds what a service before this one has left in an application's directory.

use super::directory::{Directory, Links};
use super::outputs::{Kept, OutputPlace, Outputs};
use super::records::OutputRecords;
use crate::handed::Handed;
use crate::links::{is_list, Kind, Link, OutputFile};
use crate::record::Record;
use faro_wire::OutputId;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Puts whole outputs of `owner`, and whole copies, into `outputs`, and removes all else. Returns how many names that
/// were.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn recover(
    directory: &Directory,
    owner: u32,
    records: &Arc<OutputRecords>,
    outputs: &mut Outputs,
) -> io::Result<usize> {
    let mut found: HashMap<(OutputId, u64, Kind), [bool; 2]> = HashMap::new();
    let mut removed = 0;
    for entry in std::fs::read_dir(directory.path())? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        match Link::parse(&name) {
            Some(link) => {
                let key = (link.id, link.generation, link.kind);
                found.entry(key).or_default()[link.part as usize] = true;
            }
            None if is_list(&name) => directory.remove(&name),
            None if Record::is_name(&name) => {}
            None => {
                removed += 1;
                directory.remove(&name);
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable_by_key(|(key, _)| *key);
    for ((id, generation, kind), [has_index, has_data]) in found {
        let links = Links {
            kind,
            id,
            generation,
        };
        outputs.generation = outputs.generation.max(generation);
        let owner = match kind {
            Kind::Own => owner,
            Kind::Replica => geteuid().as_raw(),
        };
        let kept = match has_index {
            true => check_again(directory, links, has_data, owner, records),
            false => None,
        };
        let loser = match kept {
            // A higher generation of the same output.
            Some(kept) => outputs.insert(id, kept),
            None => {
                log::warn!(
                    "map output {}/{} in {} is not whole and is removed",
                    id.shuffle_id,
                    id.map_id,
                    directory.path().display()
                );
                directory.unlink(links, true);
                removed += 1 + usize::from(has_data && has_index);
                None
            }
        };
        if let Some(loser) = loser {
            removed += 1 + usize::from(loser.has_data);
            directory.unlink(loser.links(id), loser.has_data);
        }
    }
    Ok(removed)
}

fn check_again(
    directory: &Directory,
    links: Links,
    has_data: bool,
    owner: u32,
    records: &Arc<OutputRecords>,
) -> Option<Kept> {
    let open = |part| directory.open_part(links, part);
    let index = open(OutputFile::Index).ok()?;
    let data = has_data.then(|| open(OutputFile::Data)).transpose().ok()?;
    let handed = Handed::check(index, data, owner).ok()?;
    Some(Kept {
        kind: links.kind,
        generation: links.generation,
        has_data,
        bytes: handed.bytes,
        place: OutputPlace::Linked,
        _record: records.count(),
    })
}

#[cfg(test)]
#[path = "recover_test.rs"]
mod tests;
