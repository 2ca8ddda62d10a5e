//! Values at the ends of their types, strings around the length that a key holds, and damaged pages.
//! A failure names its seed.

use crate::support::{append, check, sort, TestRow, Value, KINDS};
use faro_sort::{KeyColumn, RowSorter, SortProgress, ValueKind, ROW_HEAD_BYTES};

const SEEDS: u64 = if cfg!(miri) { 3 } else { 600 };

/// The generator SplitMix64.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// A number of any length, often at an end of a type or beside it.
    fn wide(&mut self) -> i128 {
        let bits = [7, 8, 15, 16, 31, 32, 63, 64, 126, 127][self.below(10)];
        let near = self.below(5) as i128 - 2;
        match self.below(4) {
            0 => near,
            1 => (1_i128 << bits).wrapping_add(near),
            2 => (1_i128 << bits).wrapping_neg().wrapping_add(near),
            _ => (i128::from(self.next()) << 64 | i128::from(self.next())) >> self.below(127),
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(4) {
            0 => [0.0, -0.0, f64::NAN, -f64::NAN][self.below(4)],
            1 => [f64::INFINITY, f64::MIN, f64::MAX, f64::MIN_POSITIVE][self.below(4)],
            2 => f64::from_bits(self.next()),
            _ => self.wide() as f64,
        }
    }

    /// Bytes with a common start, at the ends of what a byte can be, around the length that is looked at.
    fn bytes(&mut self, start: &[u8]) -> Vec<u8> {
        let mut bytes = start[..start.len() - self.below(1 + start.len().min(2))].to_vec();
        let more = match self.below(3) {
            0 => self.below(3),
            1 => 62_usize.saturating_sub(start.len()) + self.below(5),
            _ => self.below(20),
        };
        for _ in 0..more {
            bytes.push([0, 1, 0x7f, 0x80, 0xff, b'a'][self.below(6)]);
        }
        bytes
    }

    fn value(&mut self, kind: ValueKind, start: &[u8]) -> Value {
        match kind {
            ValueKind::Bool => Value::Bool(self.one_in(2)),
            ValueKind::I8 => Value::I8(self.wide() as i8),
            ValueKind::I16 => Value::I16(self.wide() as i16),
            ValueKind::I32 => Value::I32(self.wide() as i32),
            ValueKind::I64 => Value::I64(self.wide() as i64),
            ValueKind::F32 => Value::F32(self.float() as f32),
            ValueKind::F64 => Value::F64(self.float()),
            ValueKind::WideDecimal => Value::Wide(self.wide()),
            ValueKind::Bytes => Value::Bytes(self.bytes(start)),
        }
    }
}

struct FuzzCase {
    columns: Vec<KeyColumn>,
    rows: Vec<TestRow>,
}

fn case(random: &mut SplitMix, max_rows: usize) -> FuzzCase {
    let columns: Vec<_> = (0..1 + random.below(5))
        .map(|ordinal| KeyColumn {
            ordinal,
            kind: KINDS[random.below(KINDS.len())],
            descending: random.one_in(2),
            nulls_last: random.one_in(2),
        })
        .collect();
    // A few values for each column, so that many rows agree in some columns.
    let values: Vec<Vec<Option<Value>>> = columns
        .iter()
        .map(|column| {
            let start = vec![random.next() as u8; [0, 1, 30, 63, 64, 65][random.below(6)]];
            let null_chance = [1, 2, 9, usize::MAX][random.below(4)];
            (0..1 + random.below(20))
                .map(|_| match random.one_in(null_chance) {
                    true => None,
                    false => Some(random.value(column.kind, &start)),
                })
                .collect()
        })
        .collect();
    let rows = (0..random.below(max_rows))
        .map(|_| {
            values
                .iter()
                .map(|of| of[random.below(of.len())].clone())
                .collect()
        })
        .collect();
    FuzzCase { columns, rows }
}

#[test]
fn values_at_the_ends_of_their_types_are_in_sparks_order() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut random = SplitMix(seed);
        // Seldom more rows than a comparison sort takes.
        let max_rows = if random.one_in(20) { 9_000 } else { 200 };
        let FuzzCase { columns, rows } = case(&mut random, max_rows);
        let (per_page, budget) = (1 + random.below(5_000), 1 + random.below(3_000));
        let outcome = sort(&columns, &rows, per_page, budget, random.next());
        check(&columns, &rows, &outcome);
    }
}

/// Spark writes no such pages: this says that they are neither read beyond their end nor lose a row.
#[test]
fn a_damaged_page_is_an_error_or_other_rows() {
    let mut errors = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut random = SplitMix(seed);
        let FuzzCase { columns, rows } = case(&mut random, 40);
        let mut page = Vec::new();
        for row in &rows {
            append(&mut page, row, 0);
        }
        for _ in 0..1 + random.below(4) {
            if !page.is_empty() {
                let at = random.below(page.len());
                page[at] = random.next() as u8;
            }
        }
        let mut sorter = RowSorter::new(&columns, columns.len(), true).expect("columns");
        let Ok(count) = sorter.survey(&page) else {
            errors += 1;
            continue;
        };
        let shape = sorter.plan().expect("a survey");
        let mut first = vec![0; count as usize * shape.words];
        let mut second = vec![0; if shape.words == 1 { first.len() } else { 0 }];
        sorter.encode(&page, &mut first).expect("the same page");
        let sorted = loop {
            match sorter.step(&mut first, &mut second, 10).expect("entries") {
                SortProgress::More => {}
                SortProgress::InFirst => break first,
                SortProgress::InSecond => break second,
            }
        };
        let entries: Vec<u128> = sorted
            .chunks(shape.words)
            .map(|words| {
                words
                    .iter()
                    .fold(0, |all, &word| all << 64 | u128::from(word))
            })
            .collect();
        assert!(entries.windows(2).all(|pair| pair[0] < pair[1]));
        let mut places: Vec<usize> = entries
            .iter()
            .map(|entry| (entry & ((1 << shape.word_bits) - 1)) as usize * ROW_HEAD_BYTES)
            .collect();
        places.sort_unstable();
        let mut at = 0;
        for place in places {
            assert_eq!(place, at, "a row for each head");
            let mut length = [0; ROW_HEAD_BYTES];
            length.copy_from_slice(&page[at..at + ROW_HEAD_BYTES]);
            at += ROW_HEAD_BYTES + u64::from_le_bytes(length) as usize;
        }
        assert_eq!(at, page.len());
    }
    assert!(errors > 0, "no page was refused");
}
