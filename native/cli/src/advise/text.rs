//! One application for a terminal.

use super::answer::saved;
use super::columns::{self, TableColumn};
use super::report::{Advice, StageAdvice};
use super::units::{bytes, count, counted, mean, percent, time};
use std::io::{self, Write};

pub fn details(out: &mut impl Write, all: &[Advice]) -> io::Result<()> {
    for (number, advice) in all.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        one(out, advice)?;
    }
    Ok(())
}

/// `2 executors on 1 host, 4 cores; 3 jobs in 5.0 s`.
pub fn shape(a: &Advice) -> String {
    format!(
        "{} on {}, {}; {} in {}",
        counted(a.executors, "executor"),
        counted(a.hosts as u64, "host"),
        counted(a.cores, "core"),
        counted(a.jobs, "job"),
        time(a.job_ms as f64),
    )
}

fn one(out: &mut impl Write, a: &Advice) -> io::Result<()> {
    writeln!(out, "{}", a.message)?;
    writeln!(out, "{} {}, Spark {}", a.application, a.id, a.spark)?;
    writeln!(out, "{}", shape(a))?;
    let t = &a.totals;
    for (name, moved, blocks) in [
        ("read:   ", t.bytes_read(), t.blocks_read()),
        ("remote: ", t.remote_bytes, t.remote_blocks),
    ] {
        if blocks > 0 {
            writeln!(
                out,
                "{name} {} in {} of {}",
                bytes(moved),
                counted(blocks, "block"),
                mean(moved, blocks),
            )?;
        }
    }
    writeln!(
        out,
        "written: {}; spilled {} of memory, {} to disk",
        bytes(t.bytes_written),
        bytes(t.memory_spilled),
        bytes(t.disk_spilled),
    )?;
    writeln!(
        out,
        "tasks:   {}, of it fetch wait {}, writing {}",
        time(t.run_ms as f64),
        time(t.wait_ms as f64),
        time(t.write_ms),
    )?;
    for note in &a.notes {
        writeln!(out, "note:    {note}")?;
    }
    if !a.stages.is_empty() {
        writeln!(out)?;
        table(out, &a.stages)?;
        if a.more_stages > 0 {
            let more = counted(a.more_stages as u64, "more stage");
            writeln!(out, "{more} with a shuffle: --stages N, --json")?;
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

/// The width of a terminal that has room for all columns.
const WIDE: usize = 118;

fn table(out: &mut impl Write, stages: &[StageAdvice]) -> io::Result<()> {
    // Title, and whether a narrow terminal has room for it.
    const TITLES: [(&str, bool); 12] = [
        ("stage", true),
        ("time", true),
        ("of job", true),
        ("remote", false),
        ("blocks", true),
        ("block", true),
        ("written", true),
        ("rows", false),
        ("wait", false),
        ("writing", false),
        ("saves", true),
        ("because of", true),
    ];
    let wide = columns::width() >= WIDE;
    let shown = |i: usize| wide || TITLES.get(i).is_some_and(|title| title.1);
    let columns: Vec<TableColumn> = TITLES
        .into_iter()
        .enumerate()
        .filter(|(i, _)| shown(*i))
        .map(|(_, (title, _))| match title {
            "because of" => TableColumn::left(title),
            _ => TableColumn::right(title),
        })
        .collect();
    let row = |stage: &StageAdvice| -> Vec<String> {
        let f = &stage.figures;
        let run = f.run_ms.max(1) as f64;
        let cells = [
            stage.id.to_string(),
            time(stage.wall_ms as f64),
            percent(stage.job_share),
            bytes(f.remote_bytes),
            count(f.blocks_read()),
            mean(f.bytes_read(), f.blocks_read()),
            bytes(f.bytes_written),
            count(f.rows_read.saturating_add(f.rows_written)),
            percent(f.wait_ms as f64 / run),
            percent(f.write_ms / run),
            saved(stage.gain),
            stage.reason.text().to_owned(),
        ];
        let cells = cells.into_iter().enumerate().filter(|(i, _)| shown(*i));
        cells.map(|(_, cell)| cell).collect()
    };
    let rows: Vec<Vec<String>> = stages.iter().map(row).collect();
    write!(out, "{}", columns::text(&columns, &rows))
}
