//! A sort from its first page to the order of its rows.

use crate::column::KeyColumn;
use crate::encode::EntryNumber;
use crate::error::SortError;
use crate::layout::{bits, KeyLayout};
use crate::progress::SortProgress;
use crate::quick::{wide_entries, QuickSort};
use crate::radix::RadixSort;
use crate::rows::RowFormat;
use crate::survey::KeyColumnStats;

/// A position's maximum length: half of an entry stays for the key.
const MAX_POSITION_BITS: u32 = 56;
/// Rows are counted in 32 bits.
const MAX_ROWS: u64 = u32::MAX as u64 >> 1;

/// How an entry is made: a key's bits above a page's number above the word of the page at which the
/// row's head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryShape {
    /// Words of an entry, 1 or 2. The highest comes first. Entries of one word are sorted with a second
    /// array, those of two words in their place, so either takes two words for each row.
    pub words: usize,
    pub word_bits: u32,
    pub page_bits: u32,
    /// Entries with the same key are of rows with the same key.
    pub exact: bool,
}

impl EntryShape {
    fn position_bits(self) -> u32 {
        self.word_bits + self.page_bits
    }
}

/// Sorts rows in pages. The caller surveys all pages, then has them encoded in the same order, then
/// sorts in steps.
#[derive(Debug)]
pub struct RowSorter {
    format: RowFormat,
    columns: Vec<KeyColumnStats>,
    complete: bool,
    /// The number of rows of each page.
    pages: Vec<u64>,
    rows: u64,
    last_word: u64,
    stage: SortStage,
}

#[derive(Debug)]
enum SortStage {
    Survey,
    Encode(EncodeStage),
    Sort { shape: EntryShape, sort: EntrySort },
}

#[derive(Debug)]
enum EntrySort {
    InOrder,
    /// Entries of one word.
    Radix(RadixSort),
    /// Entries of two words, whose keys have too many digits.
    Quick(QuickSort),
}

#[derive(Debug)]
struct EncodeStage {
    shape: EntryShape,
    layout: KeyLayout,
    /// Pages and rows that are done.
    pages: usize,
    rows: usize,
    last: u128,
    in_order: bool,
}

impl RowSorter {
    /// Rows have `fields` columns. `complete`: the columns are the whole key, otherwise its beginning.
    pub fn new(columns: &[KeyColumn], fields: usize, complete: bool) -> Result<Self, SortError> {
        for column in columns {
            if column.ordinal >= fields {
                return Err(SortError::NoColumn {
                    ordinal: column.ordinal,
                    fields,
                });
            }
        }
        Ok(Self {
            format: RowFormat::new(fields),
            columns: columns.iter().copied().map(KeyColumnStats::new).collect(),
            complete,
            pages: Vec::new(),
            rows: 0,
            last_word: 0,
            stage: SortStage::Survey,
        })
    }

    /// Looks at the rows of the next page, and returns their number.
    pub fn survey(&mut self, page: &[u8]) -> Result<u64, SortError> {
        let SortStage::Survey = self.stage else {
            return Err(SortError::Sequence { call: "survey" });
        };
        let (mut rows, mut last_word) = (0, 0);
        let columns = &mut self.columns;
        self.format.for_each(page, |word, row| {
            rows += 1;
            last_word = word;
            columns.iter_mut().try_for_each(|column| column.add(row))
        })?;
        self.pages.push(rows);
        self.rows += rows;
        self.last_word = self.last_word.max(last_word);
        Ok(rows)
    }

    /// Ends the survey. Entries of this shape come next.
    pub fn plan(&mut self) -> Result<EntryShape, SortError> {
        let SortStage::Survey = self.stage else {
            return Err(SortError::Sequence { call: "plan" });
        };
        let word_bits = bits(u128::from(self.last_word));
        let page_bits = bits(self.pages.len().saturating_sub(1) as u128);
        let position_bits = word_bits + page_bits;
        if position_bits > MAX_POSITION_BITS || self.rows > MAX_ROWS {
            return Err(SortError::TooMany {
                rows: self.rows,
                pages: self.pages.len(),
                max: MAX_POSITION_BITS,
            });
        }
        let key_bits = |words: u32| words * u64::BITS - position_bits;
        let mut words = 1;
        let mut layout = KeyLayout::new(&self.columns, key_bits(1), self.complete);
        if !layout.exact {
            let wide = KeyLayout::new(&self.columns, key_bits(2), self.complete);
            if wide.bits > layout.bits {
                (words, layout) = (2, wide);
            }
        }
        let shape = EntryShape {
            words,
            word_bits,
            page_bits,
            exact: layout.exact,
        };
        self.stage = SortStage::Encode(EncodeStage {
            shape,
            layout,
            pages: 0,
            rows: 0,
            last: 0,
            in_order: true,
        });
        Ok(shape)
    }

    /// Writes the entries of the next page's rows behind those of the pages before.
    pub fn encode(&mut self, page: &[u8], entries: &mut [u64]) -> Result<(), SortError> {
        let SortStage::Encode(stage) = &mut self.stage else {
            return Err(SortError::Sequence { call: "encode" });
        };
        let rows = self.pages[stage.pages] as usize;
        match stage.shape.words {
            1 => stage.page::<u64>(self.format, page, rows, entries)?,
            _ => stage.page::<u128>(self.format, page, rows, entries)?,
        }
        if stage.pages == self.pages.len() {
            let shape = stage.shape;
            let sort = match (stage.in_order, shape.words) {
                (true, _) => EntrySort::InOrder,
                (false, 1) => {
                    EntrySort::Radix(RadixSort::new(shape.position_bits(), stage.layout.bits))
                }
                (false, _) => EntrySort::Quick(QuickSort::new(stage.rows)),
            };
            self.stage = SortStage::Sort { shape, sort };
        }
        Ok(())
    }

    /// Goes on with the sort, for about `budget` entries. The first array has all entries. Where an entry is
    /// one word, the second one has room for all; otherwise it is not used.
    pub fn step(
        &mut self,
        first: &mut [u64],
        second: &mut [u64],
        budget: usize,
    ) -> Result<SortProgress, SortError> {
        let SortStage::Sort { shape, sort } = &mut self.stage else {
            return Err(SortError::Sequence { call: "step" });
        };
        let needed = self.rows as usize * shape.words;
        let first = cut(first, needed)?;
        Ok(match sort {
            EntrySort::InOrder => SortProgress::InFirst,
            EntrySort::Radix(radix) => radix.step(first, cut(second, needed)?, budget),
            EntrySort::Quick(quick) => quick.step(wide_entries(first)?, budget),
        })
    }

    /// Returns the number of rows in all pages.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

fn cut(array: &mut [u64], needed: usize) -> Result<&mut [u64], SortError> {
    let found = array.len();
    array
        .get_mut(..needed)
        .ok_or(SortError::Room { found, needed })
}

impl EncodeStage {
    /// Writes the entries of the next page, which has had `count` rows in the survey.
    fn page<E: EntryNumber + Into<u128>>(
        &mut self,
        format: RowFormat,
        page: &[u8],
        count: usize,
        entries: &mut [u64],
    ) -> Result<(), SortError> {
        let found = entries.len();
        let needed = (self.rows + count) * E::WORDS;
        let room = entries
            .get_mut(self.rows * E::WORDS..needed)
            .ok_or(SortError::Room { found, needed })?;
        let mut places = room.chunks_exact_mut(E::WORDS);
        let number = self.pages;
        let other_page = || SortError::OtherPage { page: number };
        let (shape, layout) = (self.shape, &self.layout);
        let (mut before, mut in_order) = (self.last, self.in_order);
        format.for_each(page, |word, row| {
            let place = places.next().ok_or_else(other_page)?;
            let key = layout.key::<E>(row)?;
            let position = (number as u64) << shape.word_bits | word;
            let entry = match shape.position_bits() {
                0 => key,
                bits => key.push(position, bits),
            };
            entry.write(place);
            let now = entry.into();
            in_order &= before <= now;
            before = now;
            Ok(())
        })?;
        if places.next().is_some() {
            return Err(other_page());
        }
        self.pages += 1;
        self.rows += count;
        (self.last, self.in_order) = (before, in_order);
        Ok(())
    }
}
