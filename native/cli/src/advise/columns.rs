//! Tables for a terminal.

use console::{measure_text_width, pad_str, Alignment, Term};
use std::io::{self, Write};

/// Returns the terminal's width, 80 where it has none; unlimited without a terminal.
pub fn width() -> usize {
    let terminal = Term::stdout();
    match terminal.is_term() {
        true => terminal.size().1.into(),
        false => usize::MAX,
    }
}

pub struct TableColumn {
    pub title: &'static str,
    /// Numbers stand on the right.
    pub right: bool,
}

/// Writes rows below their titles, each column as wide as its widest cell.
pub fn write(
    out: &mut impl Write,
    columns: &[TableColumn],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let mut widths: Vec<usize> = columns
        .iter()
        .map(|c| measure_text_width(c.title))
        .collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(columns).zip(&widths);
        let cells = cells.map(|((cell, column), &width)| match column.right {
            true => pad_str(cell, width, Alignment::Right, None),
            false => pad_str(cell, width, Alignment::Left, None),
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join(" ").trim_end())
    };
    line(&mut columns.iter().map(|c| c.title))?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// The end of the text in at most `most` letters.
pub fn end(text: &str, most: usize) -> String {
    let letters = text.chars().count();
    let passed = match letters <= most {
        true => return text.to_owned(),
        false => letters - most.saturating_sub(1).min(letters),
    };
    ['…'].into_iter().chain(text.chars().skip(passed)).collect()
}
