//! Lines of the log that others can cause: some of each user in a minute. The others are counted.

use faro_sync::lock;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);
/// Lines of one user in a minute.
const OF_USER: u32 = 10;
/// Users of a minute who have their own lines; all others have one user's.
const USERS: usize = 32;

/// Whether a line is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is, and so many of the last minutes were left out.
    Write {
        left_out: u64,
    },
    LeaveOut,
}

#[derive(Debug, Default)]
struct Minute {
    begins: Option<Instant>,
    of_user: HashMap<Option<u32>, u32>,
    left_out: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Minute>);

impl Lines {
    pub(crate) fn ask(&self, user: u32, now: Instant) -> Line {
        let mut minute = lock(&self.0);
        let is_over = |begins| now.saturating_duration_since(begins) >= MINUTE;
        let mut left_out = 0;
        if minute.begins.is_none_or(is_over) {
            left_out = std::mem::take(&mut *minute).left_out;
            minute.begins = Some(now);
        }
        let is_known = minute.of_user.contains_key(&Some(user));
        let of = (is_known || minute.of_user.len() < USERS).then_some(user);
        let lines = minute.of_user.entry(of).or_default();
        *lines += 1;
        if *lines > OF_USER {
            minute.left_out += 1;
            return Line::LeaveOut;
        }
        Line::Write { left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_has_some_lines_in_a_minute() {
        let (lines, start) = (Lines::default(), Instant::now());
        let written = |users: std::ops::Range<u32>, now| {
            let asked = (0..1_000).flat_map(|_| users.clone());
            let is_written = |user| lines.ask(user, now) != Line::LeaveOut;
            asked.filter(|user| is_written(*user)).count()
        };
        assert_eq!(written(1..2, start), 10);
        assert_eq!(written(2..3, start + MINUTE / 2), 10, "another user");
        let next = start + MINUTE;
        assert_eq!(lines.ask(2, next), Line::Write { left_out: 1_980 });
        assert_eq!(written(100..200, next), 31 * 10 + 10);
    }
}
