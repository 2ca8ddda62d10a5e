//! Log lines of the daemon, on standard error: time (UTC), level, text.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

struct LineLogger;

impl Log for LineLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let time = time(now.map_or(0, |now| now.as_secs()));
            let text = record.args().to_string().replace('\n', "\\n");
            // The daemon continues if its log cannot be written.
            let _ = writeln!(std::io::stderr(), "{time} {} {text}", record.level());
        }
    }

    fn flush(&self) {}
}

/// Installs the logger for INFO and above; call it once in a process.
pub fn install() {
    if log::set_logger(&LineLogger).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Seconds since 1970 as ISO 8601. The days are counted from 1 March of a year that 400 divides, so that a leap day is
/// the last of its year (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = match month {
        0..=9 => (month + 3, 0),
        _ => (month - 9, 1),
    };
    let year = year + era * 400 + next;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_555_165, "2026-11-24T21:19:25Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
