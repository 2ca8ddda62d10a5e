//! What the copier knows of another service: where its list is read on, and when it is asked again.

use std::time::{Duration, Instant};

/// How long a service that does not answer is left alone; it doubles.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Another service.
pub(super) struct Followed {
    /// The card of the list that is being read; another card has another list.
    pub(super) card: Vec<u8>,
    /// The next page, and the next entry of it.
    pub(super) page: u64,
    pub(super) entry: usize,
    /// When it is asked again, after it did not answer.
    rests: Option<(Instant, Duration)>,
}

impl Followed {
    pub(super) fn new(card: &[u8]) -> Self {
        Self {
            card: card.to_owned(),
            page: 0,
            entry: 0,
            rests: None,
        }
    }

    /// Whether it is not to be asked yet.
    pub(super) fn rests(&self) -> bool {
        self.rests.is_some_and(|(until, _)| Instant::now() < until)
    }

    pub(super) fn answered(&mut self) {
        self.rests = None;
    }

    /// It did not answer, and is left alone for a time.
    pub(super) fn rest(&mut self) {
        let rest = self
            .rests
            .map_or(FIRST_REST, |(_, last)| (2 * last).min(LONGEST_REST));
        self.rests = Some((Instant::now() + rest, rest));
    }
}

/// Where a service stands in the list of the application's.
#[derive(Clone, Copy)]
pub(super) struct ServicePlace<'a> {
    /// The place of this service.
    pub(super) here: usize,
    pub(super) at: usize,
    /// All places that have a service.
    pub(super) hosts: &'a [usize],
    pub(super) replicas: usize,
}
