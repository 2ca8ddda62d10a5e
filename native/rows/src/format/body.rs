//! Reads and writes the head of a body.

use super::fault::RowBlockFault;

pub(crate) const HEAD_BYTES: usize = 10;
/// Minimum number of bytes after the columns, so that a decoder may load 8 bytes at any code.
pub(crate) const PAD_BYTES: usize = 8;

/// The head of a body. Its fields are checked against the body's length and the original length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyHead {
    pub rows: usize,
    /// Number of packed words of each row.
    pub words: usize,
    /// Size of the rows in the row stream, in bytes.
    pub original: usize,
    /// Size of the stored tail, in bytes.
    pub stored: usize,
    /// Offset in the body at which the columns end and the tail starts, in bytes.
    pub columns_end: usize,
}

impl BodyHead {
    pub fn bytes(rows: usize, words: usize, stored: usize) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&(rows as u32).to_le_bytes());
        bytes[4..6].copy_from_slice(&(words as u16).to_le_bytes());
        bytes[6..].copy_from_slice(&(stored as u32).to_le_bytes());
        bytes
    }

    pub fn parse(body: &[u8], original: usize) -> Result<Self, RowBlockFault> {
        let Some(head) = body.first_chunk::<HEAD_BYTES>() else {
            return Err(RowBlockFault::BodyTooShort { bytes: body.len() });
        };
        let [a, b, c, d, e, f, g, h, i, j] = *head;
        let rows = u32::from_le_bytes([a, b, c, d]);
        let words = u16::from_le_bytes([e, f]);
        let stored = u32::from_le_bytes([g, h, i, j]);
        let fixed = u64::from(rows) * (4 + 8 * u64::from(words));
        // docs/design/row-block-format.md, check 4.
        if rows == 0 || fixed > original as u64 {
            return Err(RowBlockFault::Rows {
                rows,
                words,
                original,
            });
        }
        let max = original - fixed as usize;
        // With texts the tail may be shorter; `stored_tail` checks again.
        if stored as usize > max {
            return Err(RowBlockFault::Tail {
                stored: stored as usize,
                max,
            });
        }
        let behind = (stored as usize).max(PAD_BYTES);
        let columns_end = body
            .len()
            .checked_sub(behind)
            .filter(|end| *end >= HEAD_BYTES);
        let Some(columns_end) = columns_end else {
            return Err(RowBlockFault::BodyTooShort { bytes: body.len() });
        };
        Ok(Self {
            rows: rows as usize,
            words: words.into(),
            original,
            stored: stored as usize,
            columns_end,
        })
    }

    /// Returns the bytes of the rows after their packed words: the tail's length without texts, its
    /// maximum with them.
    pub fn max_tail(&self) -> usize {
        self.original - self.rows * (4 + 8 * self.words)
    }

    pub fn columns<'a>(&self, body: &'a [u8]) -> &'a [u8] {
        &body[..self.columns_end]
    }

    /// Returns the stored tail, which decompresses to `expected` bytes.
    pub fn stored_tail<'a>(
        &self,
        body: &'a [u8],
        expected: usize,
    ) -> Result<&'a [u8], RowBlockFault> {
        let (tail, padding) = body[self.columns_end..].split_at(self.stored);
        // docs/design/row-block-format.md, check 8.
        if self.stored > expected {
            return Err(RowBlockFault::Tail {
                stored: self.stored,
                max: expected,
            });
        }
        if padding.iter().any(|byte| *byte != 0) {
            return Err(RowBlockFault::Padding);
        }
        Ok(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_agrees_with_both_lengths() {
        let body = |rows, words, stored, bytes: usize| {
            let mut body = BodyHead::bytes(rows, words, stored).to_vec();
            body.resize(bytes, 0);
            body
        };
        let head = BodyHead::parse(&body(2, 3, 9, 40), 100).unwrap();
        assert_eq!(
            (head.rows, head.words, head.stored, head.columns_end),
            (2, 3, 9, 31)
        );
        // At least eight bytes follow the columns, even if the tail is shorter.
        assert_eq!(
            BodyHead::parse(&body(2, 3, 1, 40), 100)
                .unwrap()
                .columns_end,
            32
        );
        assert!(BodyHead::parse(&body(1, 65_535, 0, 40), 4 + 8 * 65_535).is_ok());
        for bytes in 0..HEAD_BYTES + PAD_BYTES {
            let fault = BodyHead::parse(&body(2, 3, 0, 40)[..bytes], 100).unwrap_err();
            assert_eq!(fault, RowBlockFault::BodyTooShort { bytes });
        }
        for (rows, words, original) in [
            (0, 3, 100),
            (4, 3, 100),
            (u32::MAX, 0, 100),
            (1, 65_535, 4 + 8 * 65_534),
        ] {
            let fault =
                BodyHead::parse(&body(rows as usize, words as usize, 0, 40), original).unwrap_err();
            assert_eq!(
                fault,
                RowBlockFault::Rows {
                    rows,
                    words,
                    original
                }
            );
        }
        let fault = BodyHead::parse(&body(2, 3, 45, 80), 100).unwrap_err();
        assert_eq!(
            fault,
            RowBlockFault::Tail {
                stored: 45,
                max: 44
            }
        );
    }
}
