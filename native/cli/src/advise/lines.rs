//! Lines of an event log in bounded memory.
//!
//! Plans of SQL make lines of many megabytes. A line's event stands at its start, so a line of an
//! event that is not read is skipped and never held as a whole.

use std::io::{self, BufRead, Read};

/// Enough for `{"Event":"` and the longest name of an event that is read.
const START_BYTES: u64 = 128;
/// Longer lines of events that are read are left out.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// A buffer that one line made larger than this becomes smaller.
const KEPT_BYTES: usize = 1 << 20;
const PREFIX: &[u8] = b"{\"Event\":\"";

#[derive(Debug, PartialEq, Eq)]
pub enum LogLine<'a> {
    /// A whole line of an event that is read, without its end.
    Event {
        name: &'a str,
        json: &'a [u8],
    },
    /// An event of Spark that is not read.
    Other,
    /// Not a line of an event log; the text is its start.
    Foreign(String),
    TooLong(u64),
    /// The file ends inside this line.
    Cut,
    End,
}

pub struct LogLines<R> {
    from: R,
    buffer: Vec<u8>,
    /// The number of the last line, from 1.
    pub number: u64,
}

impl<R: BufRead> LogLines<R> {
    pub fn new(from: R) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            number: 0,
        }
    }

    /// The next line; `read` selects the events to parse.
    pub fn next(&mut self, read: impl Fn(&str) -> bool) -> io::Result<LogLine<'_>> {
        self.number += 1;
        self.buffer.clear();
        if self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.append(START_BYTES)?;
        if self.buffer.is_empty() {
            return Ok(LogLine::End);
        }
        let name = match self.name() {
            Some(name) if read(name) => name.len(),
            Some(_) => return Ok(self.skip()?.unwrap_or(LogLine::Other)),
            None => {
                let shown = self.buffer.get(..40).unwrap_or(&self.buffer);
                let text = String::from_utf8_lossy(shown).trim_end().to_owned();
                // A cut line may end before the event's name does.
                let start = &self.buffer[..self.buffer.len().min(PREFIX.len())];
                let event = PREFIX.starts_with(start);
                if self.number == 1 && !event {
                    // Another kind of file, perhaps without lines, is not read further.
                    return Ok(LogLine::Foreign(text));
                }
                let cut = self.skip()?;
                return Ok(cut.filter(|_| event).unwrap_or(LogLine::Foreign(text)));
            }
        };
        if !self.whole() {
            self.append(MAX_LINE_BYTES)?;
        }
        if !self.whole() {
            let bytes = self.buffer.len() as u64;
            if bytes < MAX_LINE_BYTES {
                return Ok(LogLine::Cut);
            }
            return Ok(self.skip()?.unwrap_or(LogLine::TooLong(bytes)));
        }
        self.buffer.pop();
        let name = self.buffer.get(PREFIX.len()..PREFIX.len() + name);
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        Ok(LogLine::Event {
            name: name.unwrap_or_default(),
            json: &self.buffer,
        })
    }

    fn append(&mut self, max: u64) -> io::Result<()> {
        let mut part = self.from.by_ref().take(max);
        part.read_until(b'\n', &mut self.buffer).map(|_| ())
    }

    fn whole(&self) -> bool {
        self.buffer.last() == Some(&b'\n')
    }

    /// Passes over the rest of the line. `Cut` if the file ends first.
    fn skip(&mut self) -> io::Result<Option<LogLine<'static>>> {
        if self.whole() {
            return Ok(None);
        }
        let mut passed = Vec::new();
        loop {
            passed.clear();
            let mut part = self.from.by_ref().take(START_BYTES << 10);
            part.read_until(b'\n', &mut passed)?;
            match passed.last() {
                None => return Ok(Some(LogLine::Cut)),
                Some(b'\n') => return Ok(None),
                Some(_) => {}
            }
        }
    }

    /// The name of the line's event, without package.
    fn name(&self) -> Option<&str> {
        let rest = self.buffer.strip_prefix(PREFIX)?;
        let end = rest.iter().position(|&b| b == b'"')?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &[u8]) -> Vec<String> {
        let mut lines = LogLines::new(io::BufReader::with_capacity(16, text));
        let mut found = Vec::new();
        loop {
            match lines.next(|name| name == "A").unwrap_or(LogLine::Cut) {
                LogLine::End => return found,
                line => found.push(
                    format!("{line:?}")
                        .split(['(', ' '])
                        .next()
                        .unwrap_or("")
                        .into(),
                ),
            }
        }
    }

    #[test]
    fn lines_are_told_apart() {
        let long = format!("{{\"Event\":\"B\",\"x\":\"{}\"}}\n", "y".repeat(1000));
        let text = format!("{{\"Event\":\"A\"}}\n{long}no\n\n{{\"Event\":\"A\",\"x\"");
        assert_eq!(
            kinds(text.as_bytes()),
            ["Event", "Other", "Foreign", "Foreign", "Cut"]
        );
        assert_eq!(kinds(b"{\"Event\":\"B\",\"x\":1}"), ["Cut"]);
        assert_eq!(kinds(b"{\"Eve"), ["Cut"]);
        assert_eq!(kinds(b"\x1f\x8b\x08"), ["Foreign"]);
    }
}
