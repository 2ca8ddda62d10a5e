//! The thread of an application that lists what is here and copies what is placed here.
//!
//! It follows one service at a time and copies one output at a time, beginning with the service after its own in the
//! list, so that all services read from different ones.

use super::answers::answer;
use super::followed::{Followed, ServicePlace};
use super::hosts::Hosts;
use super::names::{indexes_of, Asked};
use super::pages::{Entry, Pages, MAX_ENTRIES, MAX_PAGE};
use super::placement::has_copy;
use super::pull::{PullError, ReplicaPull};
use super::scratch::ScratchFile;
use super::state::{CopyCounts, Pending, Replicas};
use super::throttle::Throttle;
use crate::handed::Handed;
use crate::store::{KeepError, Kind, Store};
use faro_endpoint::Endpoint;
use faro_wire::OutputId;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the others.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum time without progress, before a request to another service ends.
const TIMEOUT: Duration = Duration::from_secs(10);
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
        let mut followed: HashMap<usize, Followed> = HashMap::new();
        while !self.endpoint.is_closed() {
            if let Err(error) = self.list() {
                self.say(format_args!("its list cannot be written: {error}"));
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
                let one = followed.entry(at).or_insert_with(|| Followed::new(&[]));
                if one.card != cards[at] {
                    *one = Followed::new(cards[at]);
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

    /// Writes pages until all that is here is listed.
    fn list(&self) -> io::Result<()> {
        loop {
            let pending = self.replicas.take_pending(MAX_ENTRIES);
            if pending.is_empty() {
                return Ok(());
            }
            let entries = pending.into_iter().filter_map(|one| match one {
                Pending::Kept(id) => self.entry(id),
                Pending::Removed(shuffle) => Some(Entry::Removed(shuffle)),
            });
            let entries: Vec<Entry> = entries.collect();
            if !entries.is_empty() {
                self.pages.write(&entries)?;
            }
        }
    }

    /// `None`: it went meanwhile.
    fn entry(&self, id: OutputId) -> Option<Entry> {
        match self.store.kind_of(id)? {
            Kind::Replica => Some(Entry::Copy(id)),
            Kind::Own => {
                let found = self.store.find(id)?;
                let index = std::fs::metadata(&found.files.index).ok()?.len();
                let data = std::fs::metadata(&found.files.data).map_or(0, |data| data.len());
                let index = u32::try_from(index).ok()?;
                Some(Entry::Output { id, data, index })
            }
        }
    }

    /// Reads the next pages of one service, and copies. Returns whether there may be more.
    fn follow(&self, place: ServicePlace<'_>, one: &mut Followed) -> Result<bool, PullError> {
        let pull = ReplicaPull {
            endpoint: &self.endpoint,
            throttle: &self.throttle,
            peer: self.endpoint.add_peer(&one.card)?,
            timeout: TIMEOUT,
        };
        for _ in 0..PAGES_A_TURN {
            let bytes = match pull.small(Asked::Page(one.page), MAX_PAGE) {
                Err(PullError::Unknown) => return Ok(false),
                other => other?,
            };
            let entries = Entry::decode_all(&bytes);
            let entries = entries.ok_or_else(|| PullError::Peer("its list is no list".into()))?;
            for entry in entries.into_iter().skip(one.entry) {
                self.take(place, &pull, entry)?;
                one.entry += 1;
            }
            (one.page, one.entry) = (one.page + 1, 0);
        }
        Ok(true)
    }

    fn take(
        &self,
        place: ServicePlace<'_>,
        pull: &ReplicaPull<'_>,
        entry: Entry,
    ) -> Result<(), PullError> {
        match entry {
            Entry::Removed(shuffle) => {
                self.store.forget_replicas(shuffle);
                self.endpoint.forget_shuffle(shuffle);
                self.endpoint.forget_shuffle(indexes_of(shuffle));
                Ok(())
            }
            Entry::Copy(id) => {
                if matches!(self.store.kind_of(id), Some(Kind::Own)) {
                    self.replicas.copied(place.at, id.shuffle_id);
                }
                Ok(())
            }
            Entry::Output { id, data, index } => {
                let ServicePlace {
                    here,
                    at,
                    hosts,
                    replicas,
                } = place;
                let bytes = data + u64::from(index);
                if !has_copy(here, hosts, at, replicas, id)
                    || self.store.bytes_of(id) == Some(bytes)
                {
                    return Ok(());
                }
                match self.copy(pull, id, data, index) {
                    Ok(()) => {
                        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
                        self.replicas.kept(id);
                        Ok(())
                    }
                    Err(CopyError::Pull(PullError::Unknown)) => Ok(()),
                    Err(CopyError::Pull(error @ (PullError::Peer(_) | PullError::Closed))) => {
                        Err(error)
                    }
                    Err(error) => {
                        self.counts.refused.fetch_add(1, Ordering::Relaxed);
                        let OutputId { shuffle_id, map_id } = id;
                        self.say(format_args!("{shuffle_id}/{map_id}: {error}"));
                        Ok(())
                    }
                }
            }
        }
    }

    /// Copies into two files without a place, checks that they fit each other, and keeps them as if they were handed over.
    /// A crash may leave these two files, whose names are no output's, so a restarted service removes them. They are not
    /// synced, because no file is believed after a restart of the machine (`record`).
    fn copy(
        &self,
        pull: &ReplicaPull<'_>,
        id: OutputId,
        data: u64,
        index: u32,
    ) -> Result<(), CopyError> {
        self.store.has_room(id, data + u64::from(index))?;
        let partitions = (index / 8).saturating_sub(1);
        let index_file = ScratchFile::new(self.store.path().join("copy.index"))?;
        let data_file = ScratchFile::new(self.store.path().join("copy.data"))?;
        index_file.fill(|sink| pull.whole(Asked::Index(id), 1, index.into(), sink))?;
        data_file.fill(|sink| pull.whole(Asked::Output(id), partitions, data, sink))?;
        let with_data = (data > 0).then(|| data_file.open()).transpose()?;
        let handed = Handed::check(index_file.open()?, with_data, geteuid().as_raw());
        let handed = handed.map_err(KeepError::from)?;
        let kept = self.store.keep_as(Kind::Replica, id, handed)?;
        if kept.replaced {
            // The endpoint may know the older files.
            answer(&self.endpoint, &self.store, &self.pages, id);
        }
        Ok(())
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
