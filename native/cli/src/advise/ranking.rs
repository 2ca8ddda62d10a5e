//! Many applications as one table, those first that Faro helps most.

use super::columns::{self, TableColumn};
use super::model::AdviceVerdict;
use super::report::Advice;
use super::units::{counted, percent, time};
use std::io::{self, Write};

/// By their verdict, then by the time that Faro is expected to save.
pub fn rank(all: &mut [Advice]) {
    let millis = |a: &Advice| (a.saved_ms(), a.job_ms as f64);
    all.sort_by(|a, b| {
        let (x, y) = (millis(a), millis(b));
        a.verdict
            .cmp(&b.verdict)
            .then(y.0.total_cmp(&x.0))
            .then(y.1.total_cmp(&x.1))
    });
}

pub const TITLES: [&str; 7] = [
    "verdict",
    "saves",
    "shuffle",
    "job time",
    "because of",
    "id",
    "application",
];

/// The cells of a row, in the order of the titles.
pub fn cells(a: &Advice) -> [String; 7] {
    let gain = [a.gain.expected, a.gain.low, a.gain.high].map(|part| 100.0 * part);
    let [expected, low, high] = gain;
    [
        a.verdict.text().to_owned(),
        match high > 0.0 {
            true => format!("{expected:.0} % ({low:.0}-{high:.0})"),
            false => "–".to_owned(),
        },
        percent(a.shuffle_share),
        time(a.job_ms as f64),
        a.why.text().to_owned(),
        a.id.clone(),
        a.application.clone(),
    ]
}

/// `3 applications: 1 helps, 2 no`.
pub fn summary(all: &[Advice]) -> String {
    let mut parts: Vec<(AdviceVerdict, u64)> = Vec::new();
    for advice in all {
        match parts.last_mut() {
            Some((verdict, number)) if *verdict == advice.verdict => *number += 1,
            _ => parts.push((advice.verdict, 1)),
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(verdict, number)| format!("{number} {}", verdict.text()))
        .collect();
    format!(
        "{}: {}",
        counted(all.len() as u64, "application"),
        parts.join(", ")
    )
}

pub const LEGEND: &str =
    "saves: expected part of the job time (least-most). shuffle: part of it in stages that shuffle";

pub fn write(out: &mut impl Write, all: &[Advice]) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = all.iter().map(|a| cells(a).to_vec()).collect();
    fit(&mut rows, columns::width());
    let columns = TITLES.map(|title| match title {
        "saves" | "shuffle" | "job time" => TableColumn::right(title),
        _ => TableColumn::left(title),
    });
    write!(out, "{}", columns::text(&columns, &rows))?;
    writeln!(out, "\n{}", summary(all))?;
    for line in LEGEND.split(". ") {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "one application in detail: --id ID (the end of the id will do)"
    )
}

/// Cuts ids and names to the width that other columns leave. An id keeps its end, which is unique.
fn fit(rows: &mut [Vec<String>], terminal: usize) {
    // The least that a narrow terminal shows.
    const NAME: usize = 13;
    const ID: usize = 11;
    let column = |rows: &[Vec<String>], i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        let title = TITLES.get(i).map_or(0, |title| title.len());
        cells
            .map(|text| console::measure_text_width(text))
            .max()
            .unwrap_or(0)
            .max(title)
    };
    let others: usize = (0..5).map(|i| column(rows, i) + 1).sum();
    let left = terminal.saturating_sub(others + 1);
    let name = column(rows, 6);
    let id = column(rows, 5).min(left.saturating_sub(name.min(NAME)).max(ID));
    let name = left.saturating_sub(id).max(NAME);
    for row in rows {
        if let [.., id_cell, name_cell] = row.as_mut_slice() {
            *id_cell = columns::end(id_cell, id);
            *name_cell = console::truncate_str(name_cell, name, "…").into_owned();
        }
    }
}

pub fn csv(out: &mut impl Write, all: &[Advice]) -> io::Result<()> {
    writeln!(
        out,
        "application,id,spark,jobs_s,shuffle_part,saves_expected,saves_low,saves_high,why,verdict,log"
    )?;
    for a in all {
        // The same names as in JSON.
        let why = serde_json::to_string(&a.why)?;
        let verdict = serde_json::to_string(&a.verdict)?;
        writeln!(
            out,
            "{},{},{},{:.3},{:.4},{:.4},{:.4},{:.4},{},{},{}",
            field(&a.application),
            field(&a.id),
            field(&a.spark),
            a.job_ms as f64 / 1e3,
            a.shuffle_share,
            a.gain.expected,
            a.gain.low,
            a.gain.high,
            why.trim_matches('"'),
            verdict.trim_matches('"'),
            field(&a.log),
        )?;
    }
    Ok(())
}

/// A spreadsheet would read a name with such a start as a formula.
fn field(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_and_no_formulas() {
        assert_eq!(field("a b"), "a b");
        assert_eq!(field("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(field("=1+1"), "'=1+1");
    }

    #[test]
    fn rows_fit_the_terminal() {
        let row: Vec<String> = [
            "cannot say",
            "42 % (30-60)",
            "100 %",
            "99.9 s",
            "other shuffle",
        ]
        .into_iter()
        .chain([
            "application_1700000000000_0001",
            "a name of some forty letters, or even more",
        ])
        .map(str::to_owned)
        .collect();
        for (terminal, id, name) in [
            (80, "…00000_0001", "a name of so…"),
            (
                120,
                "application_1700000000000_0001",
                "a name of some forty letters, or …",
            ),
        ] {
            let mut rows = vec![row.clone()];
            fit(&mut rows, terminal);
            assert_eq!((rows[0][5].as_str(), rows[0][6].as_str()), (id, name));
        }
    }
}
