//! How the requests of a run ended.

use crate::caller::RequestEnd;
use crate::core::Time;
use crate::plan::PlannedRequest;
use std::time::Duration;

/// The results of all requests of a plan, which are known by their numbers.
pub(crate) struct RequestResults {
    begun: Vec<Option<Time>>,
    /// The time and the kind of each request's end.
    ends: Vec<Option<(Time, RequestEnd)>>,
    /// Number of requests that got all their blocks.
    pub(crate) right: usize,
    /// Number of requests that ended with an error.
    pub(crate) failed: usize,
    /// The longest time that a healthy request took.
    pub(crate) slowest_healthy: Duration,
}

impl RequestResults {
    pub(crate) fn new(requests: usize) -> Self {
        Self {
            begun: vec![None; requests],
            ends: vec![None; requests],
            right: 0,
            failed: 0,
            slowest_healthy: Duration::ZERO,
        }
    }

    /// Notes that a request was made.
    pub(crate) fn begin(&mut self, number: usize, now: Time) {
        self.begun[number] = Some(now);
    }

    /// Notes that a request was not made, or that its caller was killed.
    pub(crate) fn drop_request(&mut self, number: usize, now: Time) {
        self.ends[number] = Some((now, RequestEnd::NotAsked));
    }

    /// Notes the end of a request.
    ///
    /// # Errors
    /// Fails if the request is healthy, and failed or took longer than `bound`.
    pub(crate) fn end(
        &mut self,
        number: usize,
        request: &PlannedRequest,
        end: RequestEnd,
        now: Time,
        bound: Duration,
    ) -> Result<(), String> {
        let took = now - self.begun[number].unwrap_or(now);
        match end {
            RequestEnd::Right => self.right += 1,
            RequestEnd::Failed(..) => self.failed += 1,
            RequestEnd::NotAsked => {}
        }
        if request.is_healthy {
            self.slowest_healthy = self.slowest_healthy.max(took);
            if end != RequestEnd::Right {
                return Err(format!(
                    "request {number}, which nothing went wrong with, failed after {took:?}: {end:?}"
                ));
            }
            if took > bound {
                return Err(format!(
                    "request {number}, which nothing went wrong with, took {took:?}, more than {bound:?}"
                ));
            }
        }
        self.ends[number] = Some((now, end));
        Ok(())
    }

    /// Returns the number of the first request that has not ended.
    pub(crate) fn first_open(&self) -> Option<usize> {
        self.ends.iter().position(Option::is_none)
    }
}
