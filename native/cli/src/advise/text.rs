//! The advice for a terminal.

use super::report::{saved, Advice, StageAdvice};
use super::units::{bytes, count, mean, percent, time};
use std::io::{self, Write};

pub fn write(out: &mut impl Write, advice: &Advice, max: usize) -> io::Result<()> {
    let a = advice;
    writeln!(out, "{}", plain(&a.message))?;
    writeln!(
        out,
        "{} {}, Spark {}: {} executors on {} hosts, {} cores; {} jobs in {}",
        plain(&a.application),
        plain(&a.id),
        plain(&a.spark),
        count(a.executors),
        a.hosts,
        count(a.cores),
        count(a.jobs),
        time(a.job_ms as f64),
    )?;
    let t = &a.totals;
    let blocks = t.remote_blocks + t.local_blocks;
    writeln!(
        out,
        "read:    {} in {} blocks of {}, {} of it remote in {} blocks of {}; {} rows",
        bytes(t.remote_bytes + t.local_bytes),
        count(blocks),
        mean(t.remote_bytes + t.local_bytes, blocks),
        bytes(t.remote_bytes),
        count(t.remote_blocks),
        mean(t.remote_bytes, t.remote_blocks),
        count(t.rows_read),
    )?;
    writeln!(
        out,
        "written: {} with {} rows; spilled {} of memory, {} to disk",
        bytes(t.bytes_written),
        count(t.rows_written),
        bytes(t.memory_spilled),
        bytes(t.disk_spilled),
    )?;
    write!(
        out,
        "of {} of task time: fetch wait {}, writing {}",
        time(t.run_ms as f64),
        time(t.wait_ms as f64),
        time(t.write_ms),
    )?;
    match t.requests_ms {
        Some(millis) => writeln!(out, "; remote requests took {} in sum", time(millis as f64))?,
        None => writeln!(out)?,
    }
    for note in &a.notes {
        writeln!(out, "note:    {}", plain(note))?;
    }
    let shown = a.largest(max);
    if !shown.is_empty() {
        writeln!(out)?;
        table(out, &shown)?;
        let others = a.stages.iter().filter(|s| s.figures.shuffles()).count() - shown.len();
        if others > 0 {
            writeln!(
                out,
                "and {} stages more that shuffle; --stages N or --json shows them",
                others
            )?;
        }
    }
    if !a.settings.is_empty() {
        writeln!(out, "\nto try it:")?;
        for setting in &a.settings {
            writeln!(out, "  {setting}")?;
        }
    }
    Ok(())
}

fn table(out: &mut impl Write, stages: &[&StageAdvice]) -> io::Result<()> {
    writeln!(
        out,
        "{:>6} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>8} {:>9}  because of",
        "stage",
        "time",
        "of job",
        "remote",
        "blocks",
        "block",
        "written",
        "rows",
        "wait",
        "writing",
        "saves"
    )?;
    for stage in stages {
        let f = &stage.figures;
        writeln!(
            out,
            "{:>6} {:>8} {:>6} {:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>8} {:>9}  {}",
            stage.id,
            time(stage.wall_ms as f64),
            percent(stage.job_share),
            bytes(f.remote_bytes),
            count(f.remote_blocks + f.local_blocks),
            mean(
                f.remote_bytes + f.local_bytes,
                f.remote_blocks + f.local_blocks
            ),
            bytes(f.bytes_written),
            count(f.rows_read + f.rows_written),
            percent(f.wait_ms as f64 / f.run_ms.max(1) as f64),
            percent(f.write_ms / f.run_ms.max(1) as f64),
            saved(stage.gain),
            stage.reason.text(),
        )?;
    }
    Ok(())
}

impl Advice {
    /// The stages with most bytes of shuffle, in the order of their numbers.
    pub fn largest(&self, max: usize) -> Vec<&StageAdvice> {
        let moved = |s: &StageAdvice| {
            s.figures.remote_bytes + s.figures.local_bytes + s.figures.bytes_written
        };
        let mut stages: Vec<_> = self
            .stages
            .iter()
            .filter(|s| s.figures.shuffles())
            .collect();
        stages.sort_by_key(|s| std::cmp::Reverse(moved(s)));
        stages.truncate(max);
        stages.sort_by_key(|s| s.id);
        stages
    }
}

/// Names come from the log: they must not move the cursor of the terminal.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}
