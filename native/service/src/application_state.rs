//! An application as the service knows it, what all of them add up to, and which one makes room for another.

use crate::application::Application;
use crate::message::{Hello, Key, Refusal};
use crate::options::Users;
use crate::orphaned::OrphanedOutputs;
use crate::shares::share_of_user;
use crate::status::ApplicationStatus;
use crate::store::StoredTotals;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an application is to the service.
#[derive(Clone)]
pub(crate) enum ApplicationState {
    /// A service before this one has left it, and it could not be read: no descriptors, or an error of the disk.
    Unread {
        since: Instant,
    },
    /// A service before this one has left its outputs; none of its executors has come yet.
    Left(Arc<OrphanedOutputs>),
    /// Its first executor has come. Its directory and its endpoint are being made.
    Starting {
        owner: u32,
    },
    Serving(Arc<Application>),
    /// Its outputs are being removed. `owner`: `None` if it is not known.
    Ending {
        owner: Option<u32>,
    },
}

impl ApplicationState {
    /// The user of its executors, if that is known.
    pub(crate) fn owner(&self) -> Option<u32> {
        match self {
            Self::Unread { .. } => None,
            Self::Left(left) => Some(left.record.owner),
            Self::Starting { owner } => Some(*owner),
            Self::Serving(application) => Some(application.owner),
            Self::Ending { owner } => *owner,
        }
    }

    /// `None`: it is not served now.
    pub(crate) fn serving(&self) -> Option<&Arc<Application>> {
        match self {
            Self::Serving(application) => Some(application),
            Self::Unread { .. } | Self::Left(_) | Self::Starting { .. } | Self::Ending { .. } => {
                None
            }
        }
    }

    /// Whether it takes one of the places that there are. One that has handed nothing over makes room for others, and one
    /// that ends has places of its own.
    fn counts(&self) -> bool {
        match self {
            Self::Starting { .. } | Self::Ending { .. } => false,
            Self::Serving(application) => !application.is_empty(),
            Self::Unread { .. } | Self::Left(_) => true,
        }
    }

    /// Returns it for `faro serve status`, without what the service knows of it.
    pub(crate) fn status(&self, key: &Key) -> ApplicationStatus {
        let figures = |holding: StoredTotals, replicas_behind, executors, served: [u64; 2]| {
            vec![
                ("executors".into(), executors),
                ("outputs".into(), holding.outputs as u64),
                ("output_bytes".into(), holding.bytes),
                ("replicas".into(), holding.replicas as u64),
                ("replicas_behind".into(), replicas_behind),
                ("served_blocks_total".into(), served[0]),
                ("served_bytes_total".into(), served[1]),
            ]
        };
        let (name, state, figures) = match self {
            Self::Unread { .. } => (None, "left", Vec::new()),
            Self::Left(left) => {
                let name = left.record.application.clone();
                let holding = left.store.holding();
                (Some(name), "left", figures(holding, 0, 0, [0; 2]))
            }
            Self::Starting { .. } => (None, "starting", Vec::new()),
            Self::Serving(one) => {
                let (executors, behind) = (one.executors() as u64, one.replicas_behind());
                let figures = figures(one.holding(), behind, executors, one.served());
                (Some(one.name.clone()), "serving", figures)
            }
            Self::Ending { .. } => (None, "ending", Vec::new()),
        };
        ApplicationStatus {
            name: name.unwrap_or_else(|| key.to_string()),
            user: self.owner().unwrap_or(u32::MAX),
            state: state.into(),
            figures,
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self, Self::Ending { .. })
    }

    /// Whether there was neither an executor nor a reader for so long.
    pub(crate) fn is_idle_for(&self, idle: Duration, now: Instant) -> bool {
        let since = match self {
            Self::Unread { since } => Some(*since),
            Self::Left(left) => Some(left.since),
            Self::Serving(application) => application.idle_since(now),
            Self::Starting { .. } | Self::Ending { .. } => None,
        };
        since.is_some_and(|since| now.saturating_duration_since(since) >= idle)
    }

    /// Whether an executor that has the key of what is left may have it.
    pub(crate) fn may_have(left: &OrphanedOutputs, hello: &Hello, owner: u32) -> bool {
        (left.record.owner, &left.record.application) == (owner, &hello.application)
    }
}

/// Whether there is room for one more application of that user, and which one has to go for it. As many as may be here may
/// be ending beside them, also where a disk that hangs keeps them from it for ever; more count like those that are here.
///
/// # Errors
/// The limit that refuses it.
pub(crate) fn room_for(
    owner: u32,
    all: &HashMap<Key, ApplicationState>,
    users: &Users,
    max: usize,
) -> Result<Option<Arc<Application>>, (Refusal, String)> {
    let counted: Vec<&ApplicationState> = all.values().filter(|known| known.counts()).collect();
    let ending: Vec<&ApplicationState> = all.values().filter(|known| known.is_ending()).collect();
    let too_many = ending.len().saturating_sub(max);
    let taken = counted.len() + too_many;
    let full = |text| Err((Refusal::Full, text));
    if taken >= max {
        return full(format!(
            "there are {max} applications here, as many as may be"
        ));
    }
    let of = |all: &[&ApplicationState]| {
        let of = all.iter().filter(|known| known.owner() == Some(owner));
        of.count()
    };
    let of_owner = of(&counted) + of(&ending).min(too_many);
    if of_owner >= share_of_user(users, max, taken) {
        return full(format!(
            "user {owner} has {of_owner} applications here, as many as one user may have now"
        ));
    }
    if all.len() - ending.len() + too_many < max {
        return Ok(None);
    }
    let empty: Vec<&Arc<Application>> = all
        .values()
        .filter_map(ApplicationState::serving)
        .filter(|application| application.is_empty())
        .collect();
    let of = |owner: u32| empty.iter().filter(|one| one.owner == owner).count();
    // Of the user who has most, so that one who makes many pushes out the own ones. Then one that nobody is connected
    // to, and the latest, so that it is not those who came before.
    let goes = empty.iter().max_by_key(|one| {
        let is_alone = one.executors() == 0;
        (of(one.owner), is_alone, one.since)
    });
    match goes {
        Some(one) => Ok(Some(Arc::clone(one))),
        None => full(format!(
            "{max} applications are here or come just now, as many as may be"
        )),
    }
}

/// Sums over the applications that there are.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) holding: StoredTotals,
    /// Connected now.
    pub(crate) executors: u64,
    /// Copies that other services do not have yet.
    pub(crate) behind: u64,
    /// Bytes of tables of outputs, and of readers' requests.
    pub(crate) tables: u64,
    /// Blocks and bytes.
    pub(crate) served: [u64; 2],
}

impl Totals {
    pub(crate) fn add(&mut self, known: &ApplicationState) {
        let more = match known {
            ApplicationState::Unread { .. }
            | ApplicationState::Starting { .. }
            | ApplicationState::Ending { .. } => return,
            ApplicationState::Left(left) => left.store.holding(),
            ApplicationState::Serving(application) => {
                let [blocks, bytes] = application.served();
                self.served = [self.served[0] + blocks, self.served[1] + bytes];
                self.executors += application.executors() as u64;
                self.behind += application.replicas_behind();
                self.tables += application.table_bytes();
                application.holding()
            }
        };
        self.holding.outputs += more.outputs;
        self.holding.bytes += more.bytes;
        self.holding.replicas += more.replicas;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Token;

    /// Of user 1, whose disk hangs.
    fn ending(count: u8) -> HashMap<Key, ApplicationState> {
        let key = |at| Token::new([at; 32]).key();
        let owner = Some(1);
        let all = (0..count).map(|at| (key(at), ApplicationState::Ending { owner }));
        all.collect()
    }

    #[test]
    fn applications_that_never_end_leave_others_their_places() {
        let (users, max) = (Users::Any, 4);
        let is_refused = |owner, all: &_| room_for(owner, all, &users, max).is_err();
        for count in 0..6 {
            let all = ending(count);
            assert!(!is_refused(1, &all) && !is_refused(2, &all), "{count}");
        }
        // Two count as if they were here: as many as one of these users may have.
        let all = ending(6);
        assert!(is_refused(1, &all) && !is_refused(2, &all));
        // Where there is one user only, all places are his.
        for (count, refused) in [(4, false), (7, false), (8, true)] {
            let refusal = room_for(1, &ending(count), &Users::Own, max);
            assert_eq!(refusal.is_err(), refused, "{count}");
        }
    }
}
