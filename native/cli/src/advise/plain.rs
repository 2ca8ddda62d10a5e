//! Names from logs and folders as plain text.
//!
//! Otherwise the name of an application, a stage or a file could control the terminal that shows it.

use serde::de::{Deserializer, Visitor};
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// Letters of a name that are kept.
const MAX_NAME: usize = 160;
/// Letters of a path or a message that are shown.
const MAX_TEXT: usize = 400;

/// Returns at most `most` letters of the text, without control sequences.
fn harmless(text: &str, most: usize) -> String {
    let letter = |c: char| match c {
        '\t' | '\n' | '\r' => ' ',
        // These change the order in which letters are shown, or end a line.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '?'
        }
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().take(most).map(letter).collect()
}

pub fn name(text: &str) -> String {
    harmless(text, MAX_NAME)
}

pub fn message(text: &str) -> String {
    harmless(text, MAX_TEXT)
}

pub fn path(path: &Path) -> String {
    message(&path.to_string_lossy())
}

/// A name in a log, held only as far as it is shown.
#[derive(Debug, Default)]
pub struct PlainName(pub String);

impl<'de> Deserialize<'de> for PlainName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, |text| Self(name(text)))
    }
}

/// The result of `of` for a text, which is not kept; null counts as empty.
pub fn text<'de, D: Deserializer<'de>, T>(from: D, of: fn(&str) -> T) -> Result<T, D::Error> {
    struct PlainText<T>(fn(&str) -> T);
    impl<T> Visitor<'_> for PlainText<T> {
        type Value = T;

        fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
            to.write_str("a text")
        }

        fn visit_str<E>(self, text: &str) -> Result<T, E> {
            Ok((self.0)(text))
        }

        fn visit_unit<E>(self) -> Result<T, E> {
            Ok((self.0)(""))
        }
    }
    from.deserialize_any(PlainText(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(name("a\u{1b}[2J\u{9b}\u{202e}\nb é"), "a?[2J?? b é");
        assert_eq!(name(&"x".repeat(1000)).len(), MAX_NAME);
    }
}
