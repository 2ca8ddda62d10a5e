//! Tables for a terminal.

use console::{measure_text_width, pad_str, Alignment, Term};

/// Returns the terminal's width, 80 where it has none; unlimited without a terminal.
pub fn width() -> usize {
    let terminal = Term::stdout();
    match terminal.is_term() {
        true => terminal.size().1.into(),
        false => usize::MAX,
    }
}

pub struct TableColumn {
    title: &'static str,
    align: Alignment,
}

impl TableColumn {
    pub const fn left(title: &'static str) -> Self {
        let align = Alignment::Left;
        Self { title, align }
    }

    /// For numbers.
    pub const fn right(title: &'static str) -> Self {
        let align = Alignment::Right;
        Self { title, align }
    }
}

/// Rows below their titles, each column as wide as its widest cell.
pub fn text(columns: &[TableColumn], rows: &[Vec<String>]) -> String {
    let titles: Vec<String> = columns.iter().map(|c| c.title.to_owned()).collect();
    let lines = || std::iter::once(&titles).chain(rows);
    let width = |at: usize| {
        lines()
            .filter_map(|cells: &Vec<String>| cells.get(at))
            .map(|cell| measure_text_width(cell))
            .max()
    };
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| width(at).unwrap_or(0))
        .collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(columns).zip(&widths);
        let cells = cells.map(|((cell, column), &width)| pad_str(cell, width, column.align, None));
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned() + "\n"
    };
    lines().map(line).collect()
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
