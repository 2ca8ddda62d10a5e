//! Log lines of the daemon, on standard error: time (UTC), level, text.

use log::{Level, LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::time::SystemTime;

struct LineLogger;

impl Log for LineLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Info
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let time = humantime::format_rfc3339_seconds(SystemTime::now());
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
