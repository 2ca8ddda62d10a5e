//! Rate limit for log lines that peers can cause or a shortage can repeat: one or a few of a kind per minute.

use std::fmt;
use std::time::{Duration, Instant};

/// The shortest time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(60);

/// Lines of one kind.
#[derive(Debug)]
pub struct RareLog {
    /// Number of lines that are written in a minute.
    max: u32,
    /// The time at which the first line of this period was written, and the number of lines since.
    written: Option<(Instant, u32)>,
    /// Lines that were left out since the last one.
    left_out: u64,
}

impl Default for RareLog {
    fn default() -> Self {
        Self::up_to(1)
    }
}

/// Number of lines that were left out before a line; printed at the line's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            count => write!(f, " ({count} more since this was last logged)"),
        }
    }
}

impl RareLog {
    /// Returns a log that writes at most `max` lines in a minute.
    pub fn up_to(max: u32) -> Self {
        Self {
            max,
            written: None,
            left_out: 0,
        }
    }

    /// Decides whether a line is written at that time. Returns `None` if it is left out, and counts
    /// it.
    pub fn at(&mut self, now: Instant) -> Option<LeftOut> {
        let this_minute =
            |(first, _): &(Instant, u32)| now.saturating_duration_since(*first) < PAUSE;
        let (first, lines) = self.written.filter(this_minute).unwrap_or((now, 0));
        if lines >= self.max {
            self.left_out += 1;
            return None;
        }
        self.written = Some((first, lines + 1));
        Some(LeftOut(std::mem::take(&mut self.left_out)))
    }
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

    #[test]
    fn a_few_lines_in_a_minute() {
        let mut log = RareLog::up_to(3);
        let start = Instant::now();
        for second in 0..3 {
            let line = log.at(start + Duration::from_secs(second));
            assert_eq!(line, Some(LeftOut(0)));
        }
        assert_eq!(log.at(start + Duration::from_secs(59)), None);
        assert_eq!(log.at(start + PAUSE), Some(LeftOut(1)));
        assert_eq!(log.at(start + PAUSE), Some(LeftOut(0)));
    }
}
