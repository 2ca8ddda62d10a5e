//! Unpacks the columns TEXT and WIDE. The places of their values follow from the lengths before
//! them.

use super::columns::Columns;
use super::input::Input;
use super::placement::Placement;
use crate::format::fault::RowBlockFault;
use crate::format::mode::{padded, ColumnMode, WIDE_BYTES};
use crate::scratch::Scratch;
use zerocopy::little_endian::U64;
use zerocopy::IntoBytes;

/// Extra bytes after a tail, so that its last bytes can be loaded as whole words.
pub(crate) const TAIL_SLACK: usize = 8;

#[derive(Default)]
pub(crate) struct StringDecoder {
    columns: Vec<TextColumn>,
    used: usize,
    /// Offset of each row's next text in its row, in bytes.
    places: Scratch<u64>,
}

#[derive(Default)]
struct TextColumn {
    wide: bool,
    /// Length of each row's text, in bytes.
    lengths: Scratch<u64>,
}

/// The rows that texts are written to.
pub(crate) struct Rows<'a> {
    pub placement: &'a Placement,
    /// The length of each row, in words.
    pub lengths: &'a [u64],
    /// Number of packed words of each row.
    pub words: usize,
    pub out: &'a mut [U64],
}

impl StringDecoder {
    pub fn start_block(&mut self) {
        self.used = 0;
    }

    pub fn any(&self) -> bool {
        self.used > 0
    }

    /// Takes the column of the word `word` and writes the words, if its mode is TEXT or WIDE.
    /// Otherwise returns false.
    pub fn take(
        &mut self,
        input: &mut Input,
        columns: &mut Columns,
        word: usize,
        rows: &mut Rows,
    ) -> Result<bool, RowBlockFault> {
        let is = |mode: ColumnMode| input.peek::<1>().is_some_and(|[byte]| *byte == mode as u8);
        let wide = is(ColumnMode::Wide);
        if !wide && !is(ColumnMode::Text) {
            return Ok(false);
        }
        input.byte()?;
        if self.used == 0 {
            let places = self.places.sized(rows.lengths.len())?;
            places.fill(8 * rows.words as u64);
        }
        if self.used == self.columns.len() {
            let no_memory = |_| RowBlockFault::NoMemory {
                bytes: size_of::<TextColumn>(),
            };
            self.columns.try_reserve(1).map_err(no_memory)?;
            self.columns.push(TextColumn::default());
        }
        let column = &mut self.columns[self.used];
        self.used += 1;
        column.wide = wide;
        let lengths = column.lengths.sized(rows.lengths.len())?;
        columns.take(input, ColumnMode::OF_LENGTHS, lengths)?;
        let places = self.places.sized(rows.lengths.len())?;
        let starts = rows.placement.starts();
        for (((length, place), start), row_words) in
            lengths.iter_mut().zip(places).zip(starts).zip(rows.lengths)
        {
            let room = 8 * row_words - *place;
            let at = rows.out.get_mut(*start as usize + word);
            let (Some(at), Some(text)) = (at, Text::new(*length, wide, room)) else {
                return Err(RowBlockFault::Text { word });
            };
            at.set(match text.there {
                true => *place << 32 | text.bytes,
                false => 0,
            });
            *length = text.bytes;
            *place += text.room;
        }
        Ok(true)
    }

    /// Returns the bytes of the tail, after all columns were taken.
    pub fn tail_bytes(&mut self, row_lengths: &[u64]) -> usize {
        let places = &self.places.values()[..row_lengths.len()];
        let rows = row_lengths.iter().zip(places);
        let rests: u64 = rows.map(|(length, place)| 8 * length - place).sum();
        let texts = self.columns[..self.used].iter();
        let texts: u64 = texts
            .map(|column| {
                column.lengths.values()[..row_lengths.len()]
                    .iter()
                    .sum::<u64>()
            })
            .sum();
        (rests + texts) as usize
    }

    /// Writes the tail's bytes to the rows. `tail` must have [`TAIL_SLACK`] extra bytes.
    pub fn write(&mut self, tail: &[u8], rows: &mut Rows) -> Result<(), RowBlockFault> {
        let count = rows.lengths.len();
        let places = self.places.sized(count)?;
        places.fill(8 * rows.words as u64);
        let starts = rows.placement.starts();
        let mut from = 0;
        for column in &self.columns[..self.used] {
            let lengths = &column.lengths.values()[..count];
            for ((length, place), start) in lengths.iter().zip(places.iter_mut()).zip(starts) {
                let room = if column.wide {
                    WIDE_BYTES
                } else {
                    padded(*length)
                };
                let bytes = *length as usize;
                let at = *start as usize + (*place / 8) as usize;
                put(
                    &tail[from..],
                    bytes,
                    &mut rows.out[at..at + room as usize / 8],
                );
                *place += room;
                from += bytes;
            }
        }
        for ((place, start), length) in places.iter().zip(starts).zip(rows.lengths) {
            let start = *start as usize;
            let rest = &mut rows.out[start + (*place / 8) as usize..start + *length as usize];
            if rest.is_empty() {
                continue;
            }
            let rest = rest.as_mut_bytes();
            rest.copy_from_slice(&tail[from..from + rest.len()]);
            from += rest.len();
        }
        debug_assert_eq!(from + TAIL_SLACK, tail.len());
        Ok(())
    }

    pub fn memory_bytes(&self) -> usize {
        let columns = self
            .columns
            .iter()
            .map(|column| column.lengths.memory_bytes());
        self.columns.capacity() * size_of::<TextColumn>()
            + columns.sum::<usize>()
            + self.places.memory_bytes()
    }

    pub fn clear(&mut self, keep: usize) {
        if self.memory_bytes() > keep {
            *self = Self::default();
        }
    }
}

/// A text as the value of its column describes it.
struct Text {
    there: bool,
    bytes: u64,
    /// Bytes that the text takes in its row, padding included.
    room: u64,
}

impl Text {
    /// Returns `None` if the text is longer than `max`, the bytes that its row has left.
    #[inline(always)]
    fn new(value: u64, wide: bool, max: u64) -> Option<Self> {
        let there = wide || value != 0;
        let bytes = if wide { value } else { value.saturating_sub(1) };
        // `max` is whole words, so a text that is not longer has room for its padding too.
        let fits = match wide {
            true => bytes <= WIDE_BYTES && max >= WIDE_BYTES,
            false => bytes <= max,
        };
        let room = if wide {
            WIDE_BYTES
        } else {
            padded(bytes.min(max))
        };
        fits.then_some(Self { there, bytes, room })
    }
}

/// Writes the first `bytes` bytes of `from` and then zeros. `from` must have [`TAIL_SLACK`] extra
/// bytes.
#[inline(always)]
fn put(from: &[u8], bytes: usize, to: &mut [U64]) {
    const SHORT: usize = 64;
    let whole = bytes.div_ceil(8);
    let (words, padding) = to.split_at_mut(whole);
    if bytes > SHORT {
        let (full, last) = words.split_at_mut(bytes / 8);
        full.as_mut_bytes()
            .copy_from_slice(&from[..8 * (bytes / 8)]);
        put_words(&from[8 * (bytes / 8)..], bytes % 8, last);
    } else {
        put_words(from, bytes, words);
    }
    for word in padding {
        word.set(0);
    }
}

#[inline(always)]
fn put_words(from: &[u8], bytes: usize, words: &mut [U64]) {
    let Some((last, full)) = words.split_last_mut() else {
        return;
    };
    let mut pieces = from.chunks_exact(8);
    for (word, piece) in full.iter_mut().zip(pieces.by_ref()) {
        word.as_mut_bytes().copy_from_slice(piece);
    }
    if let Some(piece) = from[8 * full.len()..].first_chunk::<8>() {
        // 1 to 8 bytes are left.
        let there = bytes - 8 * full.len();
        last.set(u64::from_le_bytes(*piece) & u64::MAX >> (64 - 8 * there));
    }
}
