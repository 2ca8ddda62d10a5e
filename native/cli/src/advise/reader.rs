//! Reads a log into the figures of its application. What cannot be read becomes a problem with file and
//! line, and the rest is used.

use super::event::{self, is_read};
use super::figures::LoggedApplication;
use super::lines::{LogLine, LogLines};
use super::source::{self, Log, SourceError};
use super::writers;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::io::{self, BufReader};
use std::path::Path;

/// More problems of a log than this are only counted.
const MAX_PROBLEMS: usize = 8;
const BUFFER_BYTES: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    /// From 1, in the decompressed text; 0: the file as a whole.
    pub line: u64,
    pub message: String,
}

#[derive(Debug, Default)]
pub struct LogContent {
    pub application: LoggedApplication,
    pub problems: Vec<Problem>,
    pub more_problems: u64,
    /// Lines of events, of which most are not needed.
    pub events: u64,
    /// The log is of an application that still ran, and ends where it was copied.
    pub in_progress: bool,
}

impl LogContent {
    /// Returns whether there is anything to report.
    pub fn has_figures(&self) -> bool {
        self.events > 0
    }

    fn problem(&mut self, file: &Path, line: u64, message: String) {
        if self.problems.len() >= MAX_PROBLEMS {
            self.more_problems += 1;
            return;
        }
        let file = file.display().to_string();
        self.problems.push(Problem {
            file,
            line,
            message,
        });
    }
}

pub fn read(log: &Log) -> LogContent {
    let mut result = LogContent {
        in_progress: log.in_progress,
        ..LogContent::default()
    };
    for (number, path) in log.files.iter().enumerate() {
        let last = number + 1 == log.files.len();
        read_file(&mut result, path, log.in_progress && last);
    }
    if let Some(folder) = log.files.first().and_then(|f| f.parent()) {
        for index in &log.missing {
            let message = format!("the rolled file events_{index}_* is missing");
            result.problem(folder, 0, message);
        }
    }
    let unfinished = !result.application.ended && !log.in_progress && result.events > 0;
    if unfinished && result.problems.is_empty() {
        if let Some(path) = log.files.last() {
            let message = "the log has no end of the application: the application was killed, or the log is cut";
            result.problem(path, 0, message.to_owned());
        }
    }
    result.application.finish();
    writers::attribute(&mut result.application.stages);
    result
}

fn read_file(result: &mut LogContent, path: &Path, may_be_cut: bool) {
    let stream = match source::open(path) {
        Ok(stream) => stream,
        Err(SourceError::Io { error, .. }) => return result.problem(path, 0, error.to_string()),
        // The other messages name the file at their start.
        Err(other) => {
            let text = other.to_string();
            let prefix = format!("{}: ", path.display());
            let text = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
            return result.problem(path, 0, text);
        }
    };
    let mut lines = LogLines::new(BufReader::with_capacity(BUFFER_BYTES, stream));
    let before = result.events;
    loop {
        let line = lines.next(is_read);
        match line {
            Ok(LogLine::End) => break,
            Ok(LogLine::Other) => result.events += 1,
            Ok(LogLine::Event { name, json }) => {
                let applied = apply(&mut result.application, name, json);
                let number = lines.number;
                match applied {
                    Ok(()) => result.events += 1,
                    Err(e) => result.problem(path, number, format!("a damaged event: {e}")),
                }
            }
            Ok(LogLine::Cut) => {
                if !may_be_cut {
                    result.problem(
                        path,
                        lines.number,
                        "the file ends inside this line".to_owned(),
                    );
                }
                break;
            }
            Ok(LogLine::TooLong(bytes)) => {
                let message = format!("an event of more than {bytes} bytes was left out");
                result.problem(path, lines.number, message);
            }
            Ok(LogLine::Foreign(text)) => {
                let first = result.events == before && lines.number == 1;
                let message = format!("not an event of Spark: {text:?}");
                result.problem(path, lines.number, message);
                // A file of something else has no events further down.
                if first {
                    break;
                }
            }
            Err(e) => {
                let cut = e.kind() == io::ErrorKind::UnexpectedEof;
                if !(cut && may_be_cut) {
                    result.problem(path, lines.number, e.to_string());
                }
                break;
            }
        }
    }
    if result.events == before && lines.number <= 1 && result.problems.is_empty() && !may_be_cut {
        result.problem(path, 0, "the file is empty".to_owned());
    }
}

fn apply(application: &mut LoggedApplication, name: &str, json: &[u8]) -> serde_json::Result<()> {
    fn from<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
        serde_json::from_slice(json)
    }
    match name {
        event::LOG_START => application.version = from::<event::LogStart>(json)?.version,
        event::ENVIRONMENT => {
            application.set_properties(from::<event::Environment>(json)?.properties);
        }
        event::APPLICATION_START => {
            let start: event::ApplicationStart = from(json)?;
            application.name = start.name.chars().take(200).collect();
            application.id = start.id.unwrap_or_default().chars().take(200).collect();
        }
        event::APPLICATION_END => application.ended = true,
        event::EXECUTOR_ADDED => {
            let info = from::<event::ExecutorAdded>(json)?.info;
            application.add_executor(info.host, info.cores);
        }
        event::JOB_START => application.start_job(&from(json)?),
        event::JOB_END => {
            let end: event::JobEnd = from(json)?;
            application.end_job(end.id, end.completed);
        }
        event::STAGE_COMPLETED => {
            application.end_stage(&from::<event::StageCompleted>(json)?.info);
        }
        event::TASK_END => application.add_task(&from(json)?),
        _ => {}
    }
    Ok(())
}
