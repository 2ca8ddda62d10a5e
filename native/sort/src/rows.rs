//! Rows in a page: each has eight bytes with its length, then its own bytes, an `UnsafeRow` of Spark's.
//! All lengths are multiples of eight.

use crate::column::KeyColumn;
use crate::error::SortError;

/// Bytes before each row in a page, which have its length as a number.
pub const ROW_HEAD_BYTES: usize = 8;
const WORD: usize = 8;

/// How rows of a number of columns are laid out.
#[derive(Debug, Clone, Copy)]
pub struct RowFormat {
    null_bytes: usize,
    fixed_bytes: usize,
}

impl RowFormat {
    pub fn new(fields: usize) -> Self {
        let null_bytes = fields.div_ceil(64) * WORD;
        Self {
            null_bytes,
            fixed_bytes: null_bytes + fields * WORD,
        }
    }

    /// Calls `each` for all rows of a page, with the word of the page at which each one's head is.
    #[inline]
    pub fn for_each<'p>(
        self,
        page: &'p [u8],
        mut each: impl FnMut(u64, Row<'p>) -> Result<(), SortError>,
    ) -> Result<(), SortError> {
        let mut at = 0;
        while at < page.len() {
            let row = self.row(page, at)?;
            each((at / WORD) as u64, row)?;
            at += ROW_HEAD_BYTES + row.bytes.len();
        }
        Ok(())
    }

    #[inline]
    fn row(self, page: &[u8], at: usize) -> Result<Row<'_>, SortError> {
        let rest = &page[at..];
        let wrong = |bytes| SortError::RowLength {
            at,
            bytes,
            page: page.len(),
        };
        let (head, rest) = rest.split_first_chunk::<WORD>().ok_or_else(|| wrong(0))?;
        let length = u64::from_le_bytes(*head);
        let bytes = usize::try_from(length)
            .ok()
            .filter(|length| *length >= self.fixed_bytes && length % WORD == 0)
            .and_then(|length| rest.get(..length))
            .ok_or_else(|| wrong(length))?;
        Ok(Row {
            bytes,
            null_bytes: self.null_bytes,
        })
    }
}

/// One row, which has at least the words of its columns.
#[derive(Debug, Clone, Copy)]
pub struct Row<'p> {
    bytes: &'p [u8],
    null_bytes: usize,
}

impl<'p> Row<'p> {
    #[inline]
    pub fn is_null(self, column: &KeyColumn) -> bool {
        self.bytes[column.ordinal / 8] >> (column.ordinal % 8) & 1 != 0
    }

    #[inline]
    pub fn word(self, column: &KeyColumn) -> u64 {
        let at = self.null_bytes + column.ordinal * WORD;
        let mut word = [0; WORD];
        word.copy_from_slice(&self.bytes[at..at + WORD]);
        u64::from_le_bytes(word)
    }

    /// Returns the bytes of a value that is beside the row's words.
    #[inline]
    pub fn variable(self, column: &KeyColumn) -> Result<&'p [u8], SortError> {
        let word = self.word(column);
        let (offset, bytes) = ((word >> 32) as usize, word as u32 as usize);
        self.bytes
            .get(offset..offset + bytes)
            .ok_or(SortError::Variable {
                offset,
                bytes,
                row: self.bytes.len(),
            })
    }
}
