//! The fault of a row block that cannot be decoded.

/// The reason that a row block cannot be decoded. `at` counts from the body's start, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowBlockFault {
    #[error("it begins inside a row")]
    InsideRow,
    #[error("its body of {bytes} bytes is too short for its parts")]
    BodyTooShort { bytes: usize },
    #[error("{rows} rows of at least {words} words are not possible in {original} bytes")]
    Rows {
        rows: u32,
        words: u16,
        original: usize,
    },
    #[error("its tail is stored in {stored} bytes; at most {max} are possible")]
    Tail { stored: usize, max: usize },
    #[error("its columns end inside a value: {needed} bytes at byte {at}, {left} are left")]
    ShortColumn {
        at: usize,
        needed: usize,
        left: usize,
    },
    #[error("the column at byte {at} has the mode {found:#04x}")]
    Mode { at: usize, found: u8 },
    #[error("the column at byte {at} has codes of {found} bits; allowed are 0 to 56 and 64")]
    Width { at: usize, found: u32 },
    #[error("the dictionary at byte {at} has {entries} entries and the code {code}")]
    Dictionary {
        at: usize,
        entries: usize,
        code: u64,
    },
    #[error("the column at byte {at} has {runs} runs of {values} values, and {changes} changes")]
    Runs {
        at: usize,
        runs: usize,
        values: usize,
        changes: usize,
    },
    #[error("row {row} has {words} words; at least {min} are packed, and {max} fit")]
    RowLength {
        row: usize,
        words: u64,
        min: usize,
        max: usize,
    },
    #[error("its rows have {found} bytes; its header says {original}")]
    Original { found: u64, original: usize },
    #[error("a text of word {word} ends behind its row's end")]
    Text { word: usize },
    #[error("{bytes} bytes follow its last column")]
    BytesBehindColumns { bytes: usize },
    #[error("the bytes behind its tail are not zeros")]
    Padding,
    #[error("its tail does not decompress: {reason}")]
    TailCodec { reason: String },
    #[error("its tail decompresses to {found} bytes; its columns say {expected}")]
    TailLength { found: usize, expected: usize },
    #[error("no memory for {bytes} bytes of its columns")]
    NoMemory { bytes: usize },
}
