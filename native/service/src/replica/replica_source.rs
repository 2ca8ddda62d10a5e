//! What the copier knows of another service: where its list is read on, and when it is asked again.

use super::missed::MissedPages;
use std::time::{Duration, Instant};

/// How long a service that does not answer is left alone; it doubles.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Another service.
pub(super) struct ReplicaSource {
    /// The card of the list that is being read; another card has another list.
    pub(super) card: Vec<u8>,
    /// The next page, and the next entry of it.
    pub(super) page: u64,
    pub(super) entry: usize,
    /// Of those before.
    pub(super) missed: MissedPages,
    /// When it is asked again, after it did not answer.
    rests: Option<(Instant, Duration)>,
}

impl ReplicaSource {
    pub(super) fn new(card: &[u8]) -> Self {
        Self {
            card: card.to_owned(),
            page: 0,
            entry: 0,
            missed: MissedPages::default(),
            rests: None,
        }
    }

    /// Asks it now, unless it is left alone: then the answer is `Ok(false)`. After an answer it is asked at any time;
    /// after an error it is left alone, longer each time. `clock` is the time.
    ///
    /// # Errors
    /// Those of `ask`.
    pub(super) fn ask<E>(
        &mut self,
        clock: impl Fn() -> Instant,
        ask: impl FnOnce(&mut Self) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.rests.is_some_and(|(until, _)| clock() < until) {
            return Ok(false);
        }
        let answer = ask(self);
        self.rests = answer.is_err().then(|| {
            let last = self.rests.map(|(_, last)| 2 * last);
            let rest = last.map_or(FIRST_REST, |twice| twice.min(LONGEST_REST));
            (clock() + rest, rest)
        });
        answer
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_does_not_answer_is_asked_less_and_less() {
        let start = Instant::now();
        let mut one = ReplicaSource::new(&[]);
        let mut asked = Vec::new();
        for tenth in 0..2_000 {
            let now = start + Duration::from_millis(100 * tenth);
            let _ = one.ask(
                || now,
                |_| {
                    asked.push(tenth / 10);
                    Err(())
                },
            );
        }
        assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
        let later = start + Duration::from_secs(1_000);
        assert_eq!(one.ask(|| later, |_| Ok::<_, ()>(true)), Ok(true));
        assert_eq!(one.ask(|| later, |_| Err(())), Err(()));
        // Its first rest again.
        let after = || later + FIRST_REST;
        assert_eq!(one.ask(after, |_| Ok::<_, ()>(true)), Ok(true));
    }
}
