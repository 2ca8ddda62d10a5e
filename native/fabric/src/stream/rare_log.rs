//! Lines of the log that strangers can cause, or a shortage can repeat: one of each kind in a minute.

use std::fmt;
use std::time::{Duration, Instant};

/// The shortest time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(60);

/// Lines of one kind.
#[derive(Debug, Default)]
pub(crate) struct RareLog {
    /// When the last line was written.
    written: Option<Instant>,
    /// Lines that were left out since.
    left_out: u64,
}

/// How many lines were left out before a line: stands at the line's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more since this was last logged)"),
        }
    }
}

impl RareLog {
    /// Whether a line is written at that time. `None`: it is left out, and counted.
    pub(crate) fn at(&mut self, now: Instant) -> Option<LeftOut> {
        let too_early = |written| now.saturating_duration_since(written) < PAUSE;
        if self.written.is_some_and(too_early) {
            self.left_out += 1;
            return None;
        }
        self.written = Some(now);
        Some(LeftOut(std::mem::take(&mut self.left_out)))
    }
}

/// Of a reactor, by what a connection met before it was one.
#[derive(Debug, Default)]
pub(crate) struct RareLogs {
    /// The listener refused it.
    pub(crate) refused: RareLog,
    /// The kernel did not hand it over.
    pub(crate) not_accepted: RareLog,
    /// epoll did not take it.
    pub(crate) not_watched: RareLog,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_a_minute_counts_what_was_left_out() {
        let mut log = RareLog::default();
        let start = Instant::now();
        assert_eq!(log.at(start), Some(LeftOut(0)));
        for millis in 0..1000 {
            assert_eq!(log.at(start + Duration::from_millis(millis)), None);
        }
        let next = log.at(start + PAUSE).unwrap();
        assert_eq!(next.to_string(), " (1000 more since this was last logged)");
        assert_eq!(log.at(start + PAUSE), None);
        assert_eq!(log.at(start + PAUSE * 2), Some(LeftOut(1)));
        assert_eq!(LeftOut(0).to_string(), "");
    }
}
