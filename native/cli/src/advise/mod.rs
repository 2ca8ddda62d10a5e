//! `faro advise`: whether Faro would help an application, from the event log of a run without it.
//!
//! `source` opens and decompresses, `lines` and `event` read, `reader` and `figures` add up, `writers` finds
//! which stages wrote what a stage read, `model`
//! estimates with `constants`, `report` decides, `text` and `html` show. docs/advise.md explains it.

mod args;
mod constants;
mod event;
mod figures;
mod html;
mod lines;
mod model;
mod reader;
mod report;
mod source;
mod spans;
mod text;
pub(crate) mod units;
mod writers;

pub use args::AdviseArgs;

use crate::CliError;
use report::Advice;
use std::io::{self, Write};
use std::path::PathBuf;

/// A part of a log could not be read.
const IN_PART: u8 = 1;
/// Nothing could be read.
const NOTHING: u8 = 2;

#[derive(Debug, thiserror::Error)]
pub enum AdviseError {
    #[error("cannot write the page {}: {error}", path.display())]
    Page { path: PathBuf, error: io::Error },
}

pub fn run(args: &AdviseArgs, out: &mut impl Write) -> Result<u8, CliError> {
    let mut unread = Vec::new();
    let mut all = Vec::new();
    for path in &args.logs {
        match source::logs_at(path) {
            Ok(logs) => {
                for log in logs {
                    let read = reader::read(&log);
                    let figures = read.has_figures();
                    let advice = Advice::of(read);
                    let problems = messages(&advice);
                    match figures {
                        true => all.push(advice),
                        false => unread.extend(problems.iter().cloned()),
                    }
                    problems
                        .iter()
                        .for_each(|text| eprintln!("faro advise: {text}"));
                }
            }
            Err(error) => {
                eprintln!("faro advise: {error}");
                unread.push(error.to_string());
            }
        }
    }
    if args.json {
        let result = serde_json::json!({ "applications": all, "unread": unread });
        serde_json::to_writer_pretty(&mut *out, &result).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        for (number, advice) in all.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            text::write(out, advice, args.stages)?;
        }
    }
    if let Some(path) = &args.html {
        let page = html::page(&all, &unread, args.stages.max(50));
        std::fs::write(path, page).map_err(|error| AdviseError::Page {
            path: path.clone(),
            error,
        })?;
    }
    let whole = unread.is_empty() && all.iter().all(|a| a.problems.is_empty());
    Ok(match (all.is_empty(), whole) {
        (true, _) => NOTHING,
        (false, true) => 0,
        (false, false) => IN_PART,
    })
}

fn messages(advice: &Advice) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for problem in &advice.problems {
        texts.push(match problem.line {
            0 => format!("{}: {}", problem.file, problem.message),
            line => format!("{}, line {line}: {}", problem.file, problem.message),
        });
    }
    if advice.more_problems > 0 {
        texts.push(format!("{} problems more", advice.more_problems));
    }
    texts
}
