//! Decides whether other requests to a peer wait after one has failed because of the peer.
//!
//! A route's back-off chooses another fabric for the same request. This one is of the whole peer: a
//! request has tried all it could and failed, so the next ones would cost a timeout each. For a
//! while, which doubles with each failure, the answer is that others should bring the blocks. The
//! caller decides whether there are others (`spark.faro.fallback`); a request that it makes anyway
//! is sent.
//!
//! Pure: the time comes in.

use crate::limits::{PEER_BACKOFF_MAX, PEER_BACKOFF_MIN};
use faro_wire::codes::FetchErrorCode;
use std::time::Instant;

/// The back-off of one peer.
#[derive(Debug, Default)]
pub(crate) struct PeerBackoff {
    /// `None`: no request has failed since one succeeded.
    until: Option<Instant>,
    /// Back-offs since a request succeeded.
    failures: u32,
}

impl PeerBackoff {
    /// Returns whether the back-off is under way.
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Notes that a request failed because of the peer. Requests that fail during the back-off are
    /// one failure.
    pub(crate) fn failed(&mut self, now: Instant) {
        if !self.is_on(now) {
            let doubled = PEER_BACKOFF_MIN.saturating_mul(1 << self.failures.min(10));
            self.until = Some(now + doubled.min(PEER_BACKOFF_MAX));
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// Notes that a request brought all its blocks.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// Returns whether the peer, or the way to it, is the reason of such a failure.
pub(crate) fn blames_peer(code: FetchErrorCode) -> bool {
    match code {
        FetchErrorCode::Unreachable
        | FetchErrorCode::ConnectionLost
        | FetchErrorCode::TimedOut
        | FetchErrorCode::Corrupt
        | FetchErrorCode::Protocol => true,
        FetchErrorCode::PoolExhausted
        | FetchErrorCode::Refused
        | FetchErrorCode::Closing
        | FetchErrorCode::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TICK: Duration = Duration::from_nanos(1);

    /// Fails at `now` and returns when the back-off, of that length, is over.
    fn backs_off_for(peer: &mut PeerBackoff, now: Instant, seconds: u64) -> Instant {
        peer.failed(now);
        let end = now + Duration::from_secs(seconds);
        assert!(peer.is_on(now) && peer.is_on(end - TICK), "{seconds} s");
        assert!(!peer.is_on(end), "{seconds} s");
        end
    }

    #[test]
    fn the_times_double_up_to_a_bound_and_a_success_starts_anew() {
        let (mut peer, mut now) = (PeerBackoff::default(), Instant::now());
        assert!(!peer.is_on(now));
        for seconds in [10, 20, 40, 60, 60] {
            now = backs_off_for(&mut peer, now, seconds);
        }
        peer.succeeded();
        assert!(!peer.is_on(now));
        backs_off_for(&mut peer, now, 10);
    }

    #[test]
    fn a_success_ends_the_back_off() {
        let (mut peer, now) = (PeerBackoff::default(), Instant::now());
        peer.failed(now);
        peer.succeeded();
        assert!(!peer.is_on(now));
    }

    #[test]
    fn failures_that_come_together_are_one() {
        let (mut peer, now) = (PeerBackoff::default(), Instant::now());
        for _ in 0..10 {
            peer.failed(now);
        }
        let end = now + PEER_BACKOFF_MIN;
        peer.failed(end - TICK);
        assert!(!peer.is_on(end));
        backs_off_for(&mut peer, end, 20);
    }

    #[test]
    fn a_peer_that_always_fails_stays_within_the_bound() {
        let (mut peer, mut now) = (PeerBackoff::default(), Instant::now());
        for _ in 0..100 {
            peer.failed(now);
            now += PEER_BACKOFF_MAX;
            assert!(!peer.is_on(now));
        }
    }
}
