//! Tables for a terminal.

use std::io::{self, IsTerminal, Write};

/// Returns the terminal's width; unlimited without a terminal.
pub fn width() -> usize {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    if !io::stdout().is_terminal() {
        return usize::MAX;
    }
    // SAFETY: TIOCGWINSZ writes one winsize to the address, which is that of `size`.
    let result = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    match usize::from(size.ws_col) {
        // The terminal has no known size.
        0 => 80,
        columns if result == 0 => columns,
        _ => 80,
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
    let wide = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = columns.iter().map(|c| wide(c.title)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(wide(cell));
        }
    }
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for ((cell, column), width) in cells.zip(columns).zip(&widths) {
            text += &match column.right {
                true => format!("{cell:>width$} "),
                false => format!("{cell:<width$} "),
            };
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut columns.iter().map(|c| c.title))?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// The text in at most `most` columns.
pub fn start(text: &str, most: usize) -> String {
    let letters = text.chars().count();
    match letters <= most {
        true => text.to_owned(),
        false => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// The end of the text in at most `most` columns.
pub fn end(text: &str, most: usize) -> String {
    let letters = text.chars().count();
    let passed = match letters <= most {
        true => return text.to_owned(),
        false => letters - most.saturating_sub(1).min(letters),
    };
    ['…'].into_iter().chain(text.chars().skip(passed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_with_a_mark() {
        assert_eq!(start("abcdef", 4), "abc…");
        assert_eq!(end("abcdef", 4), "…def");
        assert_eq!(
            (start("äb", 2), end("äb", 2)),
            ("äb".to_owned(), "äb".to_owned())
        );
    }
}
