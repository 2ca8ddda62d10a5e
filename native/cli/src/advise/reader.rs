//! Reads a log into the figures of its application. An unreadable line becomes a problem with file and
//! number; the rest is used.

use super::event::{self, is_read};
use super::figures::LoggedApplication;
use super::lines::{LogLine, LogLines};
use super::plain;
use super::problem::{Problem, ProblemKind, Problems};
use super::source::{self, Log};
use super::writers;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader};
use std::path::Path;

/// More problems of a log than this are only counted.
const MAX_PROBLEMS: usize = 8;
const BUFFER_BYTES: usize = 1 << 18;

/// Why the figures cover only a part of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingPart {
    StillRuns,
    Compacted,
    NoEnd,
    Cut,
}

#[derive(Debug, Default)]
pub struct LogContent {
    /// The file, or the first of a rolling log.
    pub log: String,
    pub application: LoggedApplication,
    pub problems: Problems,
    /// Lines of events; most are not needed.
    pub events: u64,
    pub missing: Option<MissingPart>,
    /// The application still ran when its log was copied.
    pub in_progress: bool,
    /// The log belongs to another application than requested, and was not read further.
    pub unwanted: bool,
}

impl LogContent {
    pub fn has_figures(&self) -> bool {
        self.events > 0
    }

    fn problem(&mut self, file: &Path, line: u64, kind: ProblemKind) {
        if kind.cuts() {
            self.missing = Some(match kind {
                ProblemKind::NoEnd => MissingPart::NoEnd,
                _ => MissingPart::Cut,
            });
        }
        self.problems
            .add(Problem::new(file, line, kind), MAX_PROBLEMS);
    }
}

/// Reads a log; with `id`, only if its application's id ends with it.
pub fn read(log: &Log, id: Option<&str>) -> LogContent {
    let mut result = LogContent {
        log: log
            .files
            .first()
            .map(|path| plain::path(path))
            .unwrap_or_default(),
        in_progress: log.in_progress,
        ..LogContent::default()
    };
    if log.compacted {
        result.missing = Some(MissingPart::Compacted);
    }
    for (number, path) in log.files.iter().enumerate() {
        let last = number + 1 == log.files.len();
        read_file(&mut result, path, log.in_progress && last, id);
        if result.unwanted {
            return result;
        }
    }
    if let Some(folder) = log.files.first().and_then(|f| f.parent()) {
        for index in &log.missing {
            result.problem(folder, 0, ProblemKind::NoRolledFile(*index));
        }
    }
    let last = log.files.last().filter(|_| result.events > 0);
    if let Some(path) = last.filter(|_| !result.application.ended && result.missing.is_none()) {
        if log.in_progress {
            result.missing = Some(MissingPart::StillRuns);
        } else {
            result.problem(path, 0, ProblemKind::NoEnd);
        }
    }
    result.application.finish();
    writers::attribute(&mut result.application.stages);
    result
}

fn read_file(result: &mut LogContent, path: &Path, may_be_cut: bool, id: Option<&str>) {
    let stream = match source::open(path) {
        Ok(stream) => stream,
        Err(kind) => return result.problem(path, 0, kind),
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
                let names = name == event::APPLICATION_START;
                let number = lines.number;
                match applied {
                    Ok(()) => result.events += 1,
                    Err(e) => result.problem(path, number, ProblemKind::Damaged(e)),
                }
                if names && id.is_some_and(|id| !result.application.id.ends_with(id)) {
                    result.unwanted = true;
                    return;
                }
            }
            Ok(LogLine::Cut) => {
                if !may_be_cut {
                    result.problem(path, lines.number, ProblemKind::CutLine);
                }
                break;
            }
            Ok(LogLine::TooLong(bytes)) => {
                result.problem(path, lines.number, ProblemKind::TooLong(bytes));
            }
            Ok(LogLine::Foreign(text)) => {
                let first = result.events == before && lines.number == 1;
                result.problem(path, lines.number, ProblemKind::Foreign(text));
                // Another kind of file: it has no events further down.
                if first {
                    break;
                }
            }
            Err(e) => {
                let cut = e.kind() == io::ErrorKind::UnexpectedEof;
                if !(cut && may_be_cut) {
                    result.problem(path, lines.number, e.into());
                }
                break;
            }
        }
    }
    if result.events == before && lines.number <= 1 && result.problems.is_empty() && !may_be_cut {
        result.problem(path, 0, ProblemKind::Empty);
    }
}

fn apply(application: &mut LoggedApplication, name: &str, json: &[u8]) -> serde_json::Result<()> {
    fn from<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
        serde_json::from_slice(json)
    }
    match name {
        event::LOG_START => application.version = from::<event::LogStart>(json)?.version.0,
        event::ENVIRONMENT => {
            application.properties = from::<event::Environment>(json)?.properties;
        }
        event::APPLICATION_START => {
            let start: event::ApplicationStart = from(json)?;
            application.name = start.name.0;
            application.id = start.id.0;
        }
        event::APPLICATION_END => application.ended = true,
        event::EXECUTOR_ADDED => {
            let info = from::<event::ExecutorAdded>(json)?.info;
            application.add_executor(info.host.0, info.cores);
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
