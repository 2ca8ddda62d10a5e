//! `faro advise`: whether Faro would help an application, from the event log of a run without it.
//!
//! `source` finds, opens and decompresses; `lines`, `event` and `bounded` read; `reader` and `figures` add up, and
//! `writers` finds which stages wrote what a stage read. `model` estimates with `constants`, `answer` decides and
//! `report` holds it; `text`, `ranking` and `html` show. `plain` keeps names harmless. docs/user/advise.md explains it.

mod answer;
mod args;
mod bounded;
mod columns;
mod constants;
mod event;
mod figures;
mod html;
mod lines;
mod merge_joins;
mod model;
mod plain;
mod problem;
mod ranking;
mod reader;
mod report;
mod source;
mod spans;
mod text;
pub(crate) mod units;
mod writers;

pub use args::AdviseArgs;

use crate::CliError;
use problem::{Problem, Problems};
use report::Advice;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use units::counted;

/// A part of a log could not be read.
const IN_PART: u8 = 1;
/// Nothing could be read.
const NOTHING: u8 = 2;
/// Files without events that are named; a folder may have any number.
const MAX_UNREAD: usize = 1_000;
/// Problems that are printed.
const MAX_PRINTED: u64 = 20;

#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    #[error("cannot write the page {}: {error}", plain::path(path))]
    Page { path: PathBuf, error: io::Error },
}

/// The contents of all logs.
#[derive(Default)]
struct AdvisedLogs {
    all: Vec<Advice>,
    unread: Problems,
    /// Number of applications with another id than requested, and some of their ids.
    others: u64,
    other_ids: Vec<String>,
    problems: u64,
}

pub fn run(args: &AdviseArgs, out: &mut impl Write) -> Result<u8, CliError> {
    let mut advised = AdvisedLogs::default();
    if args.json {
        writeln!(out, "{{\n\"applications\": [")?;
    }
    for path in &args.logs {
        advised.add(args, path, out)?;
    }
    if advised.problems > MAX_PRINTED {
        let more = counted(advised.problems - MAX_PRINTED, "problem");
        eprintln!("faro advise: {more} more; --json has those of each log");
    }
    let AdvisedLogs { all, unread, .. } = &mut advised;
    ranking::rank(all);
    if args.json {
        let unread_texts: Vec<String> = unread.first.iter().map(Problem::to_string).collect();
        write!(out, "],\n\"unread_more\": {},\n\"unread\": ", unread.more)?;
        serde_json::to_writer_pretty(&mut *out, &unread_texts).map_err(io::Error::from)?;
        writeln!(out, "\n}}")?;
    } else if args.csv {
        ranking::csv(out, all)?;
    } else if all.len() == 1 || (args.id.is_some() && one_id(all)) {
        text::details(out, all)?;
    } else if !all.is_empty() {
        ranking::write(out, all)?;
    }
    if let Some(path) = &args.html {
        let page = html::page(all, unread);
        std::fs::write(path, page).map_err(|error| AdviseError::Page {
            path: path.clone(),
            error,
        })?;
    }
    if let Some(id) = args.id.as_ref().filter(|_| all.is_empty()) {
        eprintln!("faro advise: {}", advised.no_such_id(id));
    }
    Ok(match (advised.all.is_empty(), advised.problems) {
        (true, _) => NOTHING,
        (false, 0) => 0,
        (false, _) => IN_PART,
    })
}

/// Attempts of one application have the same id.
fn one_id(all: &[Advice]) -> bool {
    all.windows(2).all(|two| two[0].id == two[1].id)
}

impl AdvisedLogs {
    fn add(&mut self, args: &AdviseArgs, path: &Path, out: &mut impl Write) -> io::Result<()> {
        let found = source::find(path);
        for problem in found.problems {
            self.unread(problem);
        }
        for log in found.logs {
            let read = reader::read(&log, args.id.as_deref());
            if read.unwanted {
                self.others += 1;
                if self.other_ids.len() < 3 {
                    self.other_ids.push(read.application.id);
                }
                continue;
            }
            if !read.has_figures() {
                self.unread.more += read.problems.more;
                for problem in read.problems.first {
                    self.unread(problem);
                }
                continue;
            }
            let mut advice = Advice::of(read);
            for problem in &advice.problems {
                self.print(problem);
            }
            if args.json {
                if !self.all.is_empty() {
                    writeln!(out, ",")?;
                }
                serde_json::to_writer_pretty(&mut *out, &advice)?;
            }
            advice.keep_largest(args.stages);
            self.all.push(advice);
        }
        Ok(())
    }

    fn unread(&mut self, problem: Problem) {
        self.print(&problem);
        self.unread.add(problem, MAX_UNREAD);
    }

    fn print(&mut self, problem: &Problem) {
        self.problems += 1;
        if self.problems <= MAX_PRINTED {
            eprintln!("faro advise: {problem}");
        }
    }

    fn no_such_id(&self, id: &str) -> String {
        let read = counted(self.others, "application");
        let some = self.other_ids.join(", ");
        let id = plain::name(id);
        match self.others {
            0 => format!("no application has an id that ends in {id:?}: none was read"),
            _ => format!(
                "no application has an id that ends in {id:?}; {read} were read, such as {some}"
            ),
        }
    }
}
