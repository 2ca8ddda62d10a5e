//! The thread of an application that lists what is here and copies what is placed here.
//!
//! It follows one service at a time, beginning with the service after its own in the list, so that all services read from
//! different ones. Small outputs are asked for together, large ones one at a time.

use super::hosts::Hosts;
use super::pages::{Entry, Pages, MAX_ENTRIES, MAX_PAGE};
use super::placement::has_copy;
use super::pull::{piece_of, PullError, ReplicaPull};
use super::replica_source::{ReplicaSource, ServicePlace};
use super::scratch::ScratchFile;
use super::state::{CopyCounts, Pending, Replicas};
use super::throttle::Throttle;
use crate::handed_over::{HandedError, HandedOverFiles};
use crate::serving::answer;
use crate::store::{KeepError, Kind, Store};
use faro_endpoint::Endpoint;
use faro_wire::{BlockId, OutputId};
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the others.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum time without progress, before a request to another service ends.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest output that is asked for together with others. Each file of it is one piece.
const SMALL: u64 = 1 << 20;
/// Most bytes and outputs that are asked for together; they are in memory until they are kept.
const TOGETHER: u64 = 8 << 20;
const MAX_TOGETHER: usize = 64;
/// Pages of one service before the next one's turn.
const PAGES_A_TURN: usize = 4;

/// Copies for one application until its endpoint is closed.
pub(crate) struct Copier {
    pub(crate) application: String,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) store: Arc<Store>,
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) pages: Arc<Pages>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) counts: Arc<CopyCounts>,
    /// Whether a line of the log has said that something is not copied.
    pub(crate) has_said: AtomicBool,
}

impl Copier {
    /// Returns when the endpoint is closed.
    pub(crate) fn run(&self) {
        let own = self.endpoint.card();
        let mut followed: HashMap<usize, ReplicaSource> = HashMap::new();
        let mut unlisted = 0;
        while !self.endpoint.is_closed() {
            match self.list() {
                Ok(()) => unlisted = 0,
                Err(error) => {
                    // Each is counted once, however often the list is tried.
                    let pending = self.replicas.pending().max(unlisted);
                    let more = pending - unlisted;
                    self.counts.refused.fetch_add(more, Ordering::Relaxed);
                    unlisted = pending;
                    self.say(format_args!("its list cannot be written: {error}"));
                }
            }
            let hosts = self.replicas.hosts();
            let cards = hosts.all().unwrap_or_default();
            let here = cards.iter().position(|card| **card == own);
            let places = Hosts::places(&cards);
            let mut goes_on = false;
            for step in 1..cards.len() {
                let Some(here) = here else {
                    break;
                };
                let at = (here + step) % cards.len();
                if cards[at].is_empty() {
                    if followed.remove(&at).is_some() {
                        self.replicas.begins_anew(at);
                    }
                    continue;
                }
                let one = followed
                    .entry(at)
                    .or_insert_with(|| ReplicaSource::new(&[]));
                if one.card != cards[at] {
                    *one = ReplicaSource::new(cards[at]);
                    self.replicas.begins_anew(at);
                }
                let place = ServicePlace {
                    here,
                    at,
                    hosts: &places,
                    replicas: hosts.replicas,
                };
                match one.ask(Instant::now, |one| self.follow(place, one)) {
                    Ok(more) => goes_on |= more,
                    Err(PullError::Closed) => return,
                    Err(error) => log::debug!(
                        "service {at} of application {} is asked later: {error}",
                        self.application
                    ),
                }
            }
            if !goes_on && !self.endpoint.is_closed() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// The first time for all to see: the causes mostly stay.
    fn say(&self, what: fmt::Arguments<'_>) {
        let level = match self.has_said.swap(true, Ordering::Relaxed) {
            false => log::Level::Info,
            true => log::Level::Debug,
        };
        log::log!(
            level,
            "map outputs of application {} are not copied: {what}",
            self.application
        );
    }

    /// Writes pages until all outputs are listed. An output that cannot be read now is listed later and delays no other.
    fn list(&self) -> io::Result<()> {
        let mut later = Vec::new();
        let written = loop {
            let listed = self.replicas.list(MAX_ENTRIES, |pending| {
                let mut entries = Vec::new();
                for one in pending {
                    match *one {
                        Pending::Removed(shuffle) => entries.push(Entry::Removed(shuffle)),
                        Pending::Kept(id) => match self.entry(id) {
                            Ok(entry) => entries.extend(entry),
                            Err(error) => {
                                self.say(format_args!("{}/{}: {error}", id.shuffle_id, id.map_id));
                                later.push(id);
                            }
                        },
                    }
                }
                match entries.is_empty() {
                    true => Ok(()),
                    false => self.pages.write(&entries),
                }
            });
            match listed {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        later.into_iter().for_each(|id| self.replicas.kept(id));
        written
    }

    /// `None`: it went meanwhile.
    fn entry(&self, id: OutputId) -> io::Result<Option<Entry>> {
        match self.store.kind_of(id) {
            None => Ok(None),
            Some(Kind::Replica) => Ok(Some(Entry::Copy(id))),
            Some(Kind::Own) => {
                let Some(found) = self.store.find(id) else {
                    return match self.store.kind_of(id) {
                        None => Ok(None),
                        Some(_) => Err(io::Error::other("it cannot be looked at now")),
                    };
                };
                let length = |path: &Path| match std::fs::metadata(path) {
                    Ok(file) => Ok(file.len()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
                    Err(error) => Err(error),
                };
                let (index, data) = (length(&found.files.index)?, length(&found.files.data)?);
                let index = u32::try_from(index).unwrap_or(0);
                Ok((index > 0).then_some(Entry::Output { id, data, index }))
            }
        }
    }

    /// Reads the next pages of one service, and copies. Returns whether there may be more.
    fn follow(&self, place: ServicePlace<'_>, one: &mut ReplicaSource) -> Result<bool, PullError> {
        let pull = ReplicaPull {
            endpoint: &self.endpoint,
            throttle: &self.throttle,
            peer: self.endpoint.add_peer(&one.card)?,
            timeout: TIMEOUT,
        };
        let goes_on = self.follow_on(place, &pull, one)?;
        Ok(self.follow_again(place, &pull, one)? || goes_on)
    }

    fn follow_on(
        &self,
        place: ServicePlace<'_>,
        pull: &ReplicaPull<'_>,
        one: &mut ReplicaSource,
    ) -> Result<bool, PullError> {
        for _ in 0..PAGES_A_TURN {
            let Some(entries) = page(pull, one.page)? else {
                return Ok(false);
            };
            while let Some(rest) = entries.get(one.entry..).filter(|rest| !rest.is_empty()) {
                let (taken, stats) = self.take_some(place, pull, rest)?;
                self.counts
                    .refused
                    .fetch_add(stats.refused, Ordering::Relaxed);
                if stats.has_missed() {
                    one.missed.add(one.page, Instant::now());
                }
                one.entry += taken;
            }
            (one.page, one.entry) = (one.page + 1, 0);
        }
        Ok(true)
    }

    /// Reads again the pages of outputs that had no room.
    fn follow_again(
        &self,
        place: ServicePlace<'_>,
        pull: &ReplicaPull<'_>,
        one: &mut ReplicaSource,
    ) -> Result<bool, PullError> {
        for _ in 0..PAGES_A_TURN {
            let end = (one.page, one.entry);
            let Some((number, mut at)) = one.missed.next(end, Instant::now()) else {
                return Ok(false);
            };
            let mut entries = page(pull, number)?.unwrap_or_default();
            if number == one.page {
                entries.truncate(one.entry);
            }
            let mut place_after = (number + 1, 0);
            let mut done = (false, false);
            while let Some(rest) = entries.get(at..).filter(|rest| !rest.is_empty()) {
                if !matches!(rest[0], Entry::Output { .. }) {
                    // It was done the first time.
                    at += 1;
                    continue;
                }
                let (taken, stats) = self.take_some(place, pull, rest)?;
                at += taken;
                done = (done.0 || stats.copied > 0, stats.disk_refused);
                if stats.has_missed() {
                    one.missed.add(number, Instant::now());
                }
                if stats.disk_refused {
                    place_after = (number, at);
                    break;
                }
            }
            one.missed
                .read_to(place_after.min(end), done, Instant::now());
        }
        Ok(true)
    }

    /// Takes the first ones of these entries: small outputs together, anything else alone. Returns how many.
    fn take_some(
        &self,
        place: ServicePlace<'_>,
        pull: &ReplicaPull<'_>,
        entries: &[Entry],
    ) -> Result<(usize, CopyStats), PullError> {
        let mut stats = CopyStats::default();
        let (mut together, mut bytes, mut taken) = (Vec::new(), 0, 0);
        for entry in entries {
            let Entry::Output { id, data, index } = *entry else {
                break;
            };
            let listed = ListedOutput { id, data, index };
            if self.is_wanted(place, listed) {
                bytes += listed.bytes();
                if listed.bytes() > SMALL || bytes > TOGETHER || together.len() == MAX_TOGETHER {
                    break;
                }
                together.push(listed);
            }
            taken += 1;
        }
        if taken > 0 {
            self.copy_together(pull, &together, &mut stats)?;
            return Ok((taken, stats));
        }
        match entries.first() {
            Some(entry) => {
                self.take(place, pull, *entry, &mut stats)?;
                Ok((1, stats))
            }
            None => Ok((0, stats)),
        }
    }

    fn is_wanted(&self, place: ServicePlace<'_>, listed: ListedOutput) -> bool {
        let ServicePlace {
            here,
            at,
            hosts,
            replicas,
        } = place;
        has_copy(here, hosts, at, replicas, listed.id)
            && self.store.bytes_of(listed.id) != Some(listed.bytes())
    }

    fn take(
        &self,
        place: ServicePlace<'_>,
        pull: &ReplicaPull<'_>,
        entry: Entry,
        stats: &mut CopyStats,
    ) -> Result<(), PullError> {
        match entry {
            Entry::Removed(shuffle) => {
                self.store.forget_replicas(shuffle);
                self.endpoint.forget_shuffle(shuffle);
                Ok(())
            }
            Entry::Copy(id) => {
                if matches!(self.store.kind_of(id), Some(Kind::Own)) {
                    self.replicas.copied(place.at, id.shuffle_id);
                }
                Ok(())
            }
            Entry::Output { id, data, index } => {
                let listed = ListedOutput { id, data, index };
                if !self.is_wanted(place, listed) {
                    return Ok(());
                }
                let copied = self.copy(pull, listed);
                self.has_copied(listed, copied, stats)
            }
        }
    }

    /// Counts a copy. An output that cannot be copied is skipped, unless another attempt may succeed.
    fn has_copied(
        &self,
        listed: ListedOutput,
        copied: Result<(), CopyError>,
        stats: &mut CopyStats,
    ) -> Result<(), PullError> {
        match copied {
            Ok(()) => {
                stats.copied += 1;
                self.counts
                    .bytes
                    .fetch_add(listed.bytes(), Ordering::Relaxed);
                self.replicas.kept(listed.id);
                Ok(())
            }
            Err(CopyError::Pull(PullError::Unknown)) => Ok(()),
            Err(CopyError::Pull(error @ (PullError::Peer(_) | PullError::Closed))) => Err(error),
            Err(error) => {
                stats.refused += 1;
                match error.is_of_now() {
                    Some(NoRoom::OfTheDisk) => stats.disk_refused = true,
                    Some(NoRoom::OfALimit) => stats.limit_refused = true,
                    None => {}
                }
                let OutputId { shuffle_id, map_id } = listed.id;
                self.say(format_args!("{shuffle_id}/{map_id}: {error}"));
                Ok(())
            }
        }
    }

    /// Copies small outputs with one request for all their indexes and one for all their data.
    fn copy_together(
        &self,
        pull: &ReplicaPull<'_>,
        all: &[ListedOutput],
        stats: &mut CopyStats,
    ) -> Result<(), PullError> {
        let mut wanted = Vec::new();
        for one in all {
            match self.store.has_room(one.id, one.bytes()) {
                Ok(()) => wanted.push(*one),
                Err(error) => self.has_copied(*one, Err(error.into()), stats)?,
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let ids: Vec<OutputId> = wanted.iter().map(|one| one.id).collect();
        let blocks = wanted.iter().filter(|one| one.data > 0);
        let blocks: Vec<BlockId> = blocks
            .map(|one| piece_of(one.id, one.partitions(), 1))
            .collect();
        let index_bytes = wanted.iter().map(|one| u64::from(one.index)).sum();
        let data_bytes = wanted.iter().map(|one| one.data).sum();
        let (mut indexes, mut data) = (Vec::new(), Vec::new());
        let got = pull
            .indexes(&ids, index_bytes, &mut |more| indexes.write_all(more))
            .and_then(|()| pull.blocks(&blocks, data_bytes, &mut |more| data.write_all(more)));
        match got {
            Ok(()) => {}
            // One of them is gone, or not as long as its list says; alone each is found out.
            Err(PullError::Unknown | PullError::Status { .. } | PullError::Torn { .. }) => {
                let alone = |one: ListedOutput| self.has_copied(one, self.copy(pull, one), stats);
                return wanted.into_iter().try_for_each(alone);
            }
            Err(error) => return Err(error),
        }
        let (mut indexes, mut data) = (&indexes[..], &data[..]);
        for one in wanted {
            let (index, more_indexes) = indexes.split_at(one.index as usize);
            let (bytes, more_data) = data.split_at(one.data as usize);
            (indexes, data) = (more_indexes, more_data);
            let copied = self.keep_copy(one, |index_file, data_file| {
                index_file.fill(|sink| Ok(sink(index)?))?;
                data_file.fill(|sink| Ok(sink(bytes)?))
            });
            self.has_copied(one, copied, stats)?;
        }
        Ok(())
    }

    fn copy(&self, pull: &ReplicaPull<'_>, one: ListedOutput) -> Result<(), CopyError> {
        self.store.has_room(one.id, one.bytes())?;
        let (index, data, partitions) = (one.index.into(), one.data, one.partitions());
        self.keep_copy(one, |index_file, data_file| {
            index_file.fill(|sink| pull.indexes(&[one.id], index, sink))?;
            data_file.fill(|sink| pull.whole(one.id, partitions, data, sink))
        })
    }

    /// Copies into two files without a place, checks that they fit each other, and keeps them as if they were handed over.
    /// A crash may leave these two files, whose names are no output's, so a restarted service removes them. They are not
    /// synced, because no file is believed after a restart of the machine (`record`).
    fn keep_copy(
        &self,
        one: ListedOutput,
        fill: impl FnOnce(&ScratchFile, &ScratchFile) -> Result<(), PullError>,
    ) -> Result<(), CopyError> {
        let index_file = ScratchFile::new(self.store.path().join("copy.index"))?;
        let data_file = ScratchFile::new(self.store.path().join("copy.data"))?;
        fill(&index_file, &data_file)?;
        let with_data = (one.data > 0).then(|| data_file.open()).transpose()?;
        let handed = HandedOverFiles::check(index_file.open()?, with_data, geteuid().as_raw());
        let handed = handed.map_err(KeepError::from)?;
        if handed.bytes != one.bytes() {
            let (wanted, got) = (one.bytes(), handed.bytes);
            return Err(PullError::Torn { wanted, got }.into());
        }
        let kept = self.store.keep_as(Kind::Replica, one.id, handed)?;
        if kept.replaced {
            // The endpoint may know the older files.
            answer(&self.endpoint, &self.store, one.id);
        }
        Ok(())
    }
}

/// The entries of a page; `None`: it is not written yet.
fn page(pull: &ReplicaPull<'_>, page: u64) -> Result<Option<Vec<Entry>>, PullError> {
    let bytes = match pull.page(page, MAX_PAGE) {
        Err(PullError::Unknown) => return Ok(None),
        other => other?,
    };
    let entries = Entry::decode_all(&bytes);
    let entries = entries.ok_or_else(|| PullError::Peer("its list is no list".into()))?;
    Ok(Some(entries))
}

/// What came of the outputs that were to be copied.
#[derive(Debug, Clone, Copy, Default)]
struct CopyStats {
    copied: u64,
    refused: u64,
    /// Whether one was refused that may have room later.
    disk_refused: bool,
    limit_refused: bool,
}

impl CopyStats {
    fn has_missed(self) -> bool {
        self.disk_refused || self.limit_refused
    }
}

/// Why there is no room now.
enum NoRoom {
    /// Known before anything is copied.
    OfALimit,
    OfTheDisk,
}

/// An output as another service's list names it.
#[derive(Debug, Clone, Copy)]
struct ListedOutput {
    id: OutputId,
    data: u64,
    index: u32,
}

impl ListedOutput {
    fn bytes(self) -> u64 {
        self.data + u64::from(self.index)
    }

    fn partitions(self) -> u32 {
        (self.index / 8).saturating_sub(1)
    }
}

#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error(transparent)]
    Keep(#[from] KeepError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl CopyError {
    /// Why there is no room for it now; `None`: there will be none later either.
    fn is_of_now(&self) -> Option<NoRoom> {
        match self {
            Self::Keep(
                KeepError::Quota { .. } | KeepError::Full { .. } | KeepError::Descriptors { .. },
            ) => Some(NoRoom::OfALimit),
            Self::Io(_)
            | Self::Pull(PullError::Own(_))
            | Self::Keep(
                KeepError::Linking(_)
                | KeepError::Directory(_)
                | KeepError::Unreadable(_)
                | KeepError::Files(HandedError::Io(_)),
            ) => Some(NoRoom::OfTheDisk),
            Self::Keep(
                KeepError::Files(_) | KeepError::Ended | KeepError::Removed | KeepError::Own,
            )
            | Self::Pull(
                PullError::Unknown
                | PullError::Status { .. }
                | PullError::Torn { .. }
                | PullError::Peer(_)
                | PullError::Closed,
            ) => None,
        }
    }
}
