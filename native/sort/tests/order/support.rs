//! Rows as Spark makes them, their order by an oracle, and a whole sort.

use faro_sort::{EntryShape, KeyColumn, RowSorter, SortProgress, ValueKind, ROW_HEAD_BYTES};
use std::cmp::Ordering;

/// All kinds of values that keys are made of.
pub const KINDS: [ValueKind; 9] = [
    ValueKind::Bool,
    ValueKind::I8,
    ValueKind::I16,
    ValueKind::I32,
    ValueKind::I64,
    ValueKind::F32,
    ValueKind::F64,
    ValueKind::WideDecimal,
    ValueKind::Bytes,
];

/// A value of a row; `None` in a row is null.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Wide(i128),
    Bytes(Vec<u8>),
}

pub type TestRow = Vec<Option<Value>>;

/// Appends a row and its head. `dirt`: what stands in words above a value, and in those of nulls.
pub fn append(page: &mut Vec<u8>, row: &TestRow, dirt: u64) {
    let null_bytes = row.len().div_ceil(64) * 8;
    let mut bytes = vec![0; null_bytes];
    let mut beside = Vec::new();
    let fixed = null_bytes + row.len() * 8;
    for (at, value) in row.iter().enumerate() {
        let mut word = dirt.to_le_bytes();
        let mut put = |value: &[u8]| word[..value.len()].copy_from_slice(value);
        match value {
            None => bytes[at / 8] |= 1 << (at % 8),
            Some(Value::Bool(value)) => put(&[u8::from(*value)]),
            Some(Value::I8(value)) => put(&value.to_le_bytes()),
            Some(Value::I16(value)) => put(&value.to_le_bytes()),
            Some(Value::I32(value)) => put(&value.to_le_bytes()),
            Some(Value::I64(value)) => put(&value.to_le_bytes()),
            Some(Value::F32(value)) => put(&value.to_le_bytes()),
            Some(Value::F64(value)) => put(&value.to_le_bytes()),
            Some(Value::Wide(value)) => {
                // As BigInteger.toByteArray: no more bytes than needed.
                let all = value.to_be_bytes();
                let sign = if *value < 0 { 0xff } else { 0 };
                let extra = all
                    .windows(2)
                    .take_while(|pair| pair[0] == sign && (pair[1] ^ sign) & 0x80 == 0)
                    .count();
                let place = variable(&mut beside, fixed, &all[extra..]);
                put(&place.to_le_bytes());
            }
            Some(Value::Bytes(value)) => {
                let place = variable(&mut beside, fixed, value);
                put(&place.to_le_bytes());
            }
        }
        bytes.extend(word);
    }
    bytes.extend(beside);
    page.extend((bytes.len() as u64).to_le_bytes());
    page.extend(bytes);
}

fn variable(beside: &mut Vec<u8>, fixed: usize, value: &[u8]) -> u64 {
    let offset = fixed + beside.len();
    beside.extend(value);
    beside.resize(beside.len().next_multiple_of(8), 0);
    (offset as u64) << 32 | value.len() as u64
}

/// Compares as Spark's generated ordering does.
pub fn compare(columns: &[KeyColumn], a: &TestRow, b: &TestRow) -> Ordering {
    for column in columns {
        let order = match (&a[column.ordinal], &b[column.ordinal]) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) if column.nulls_last => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) if column.nulls_last => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => {
                let order = compare_values(a, b);
                if column.descending {
                    order.reverse()
                } else {
                    order
                }
            }
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::I8(a), Value::I8(b)) => a.cmp(b),
        (Value::I16(a), Value::I16(b)) => a.cmp(b),
        (Value::I32(a), Value::I32(b)) => a.cmp(b),
        (Value::I64(a), Value::I64(b)) => a.cmp(b),
        (Value::F32(a), Value::F32(b)) => compare_floats(f64::from(*a), f64::from(*b)),
        (Value::F64(a), Value::F64(b)) => compare_floats(*a, *b),
        (Value::Wide(a), Value::Wide(b)) => a.cmp(b),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => unreachable!("values of one column are of one kind"),
    }
}

fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// What a sort has made of rows.
pub struct SortOutcome {
    pub shape: EntryShape,
    entries: Vec<u64>,
    starts: Vec<Vec<u64>>,
}

impl SortOutcome {
    /// Returns the rows' numbers in order, each with its key.
    pub fn order(&self) -> Vec<(usize, u128)> {
        let shape = self.shape;
        let position_bits = shape.word_bits + shape.page_bits;
        let first_of = |page: usize| self.starts[..page].iter().map(Vec::len).sum::<usize>();
        self.entries
            .chunks(shape.words)
            .map(|words| {
                let entry = words
                    .iter()
                    .fold(0, |entry, word| entry << 64 | u128::from(*word));
                let position = (entry & ((1 << position_bits) - 1)) as u64;
                let page = (position >> shape.word_bits) as usize;
                let word = position & ((1 << shape.word_bits) - 1);
                let row = self.starts[page]
                    .iter()
                    .position(|&start| start == word)
                    .expect("a row's position");
                (first_of(page) + row, entry >> position_bits)
            })
            .collect()
    }
}

/// Sorts rows, which are in pages of `per_page` rows, by steps of `budget` entries.
pub fn sort(
    columns: &[KeyColumn],
    rows: &[TestRow],
    per_page: usize,
    budget: usize,
    dirt: u64,
) -> SortOutcome {
    let fields = rows.first().map_or(1, Vec::len);
    let mut pages = Vec::new();
    let mut starts = Vec::new();
    for chunk in rows.chunks(per_page) {
        let (mut page, mut heads) = (Vec::new(), Vec::new());
        for row in chunk {
            heads.push((page.len() / ROW_HEAD_BYTES) as u64);
            append(&mut page, row, dirt);
        }
        pages.push(page);
        starts.push(heads);
    }
    let columns = columns
        .iter()
        .copied()
        .filter(|column| column.ordinal < fields)
        .collect::<Vec<_>>();
    let mut sorter = RowSorter::new(&columns, fields, true).expect("columns of the rows");
    for page in &pages {
        sorter.survey(page).expect("good rows");
    }
    let shape = sorter.plan().expect("a survey");
    let mut first = vec![0; rows.len() * shape.words];
    let mut second = vec![0; if shape.words == 1 { first.len() } else { 0 }];
    for page in &pages {
        sorter.encode(page, &mut first).expect("the same rows");
    }
    let entries = if pages.is_empty() {
        first
    } else {
        loop {
            match sorter
                .step(&mut first, &mut second, budget)
                .expect("entries")
            {
                SortProgress::More => {}
                SortProgress::InFirst => break first,
                SortProgress::InSecond => break second,
            }
        }
    };
    SortOutcome {
        shape,
        entries,
        starts,
    }
}

/// Fails unless the order is the oracle's: rows by their keys, equal ones as they came. Where the key is
/// cut, rows of the same bits may still be in any order of their keys.
pub fn check(columns: &[KeyColumn], rows: &[TestRow], sorted: &SortOutcome) {
    let order = sorted.order();
    assert_eq!(order.len(), rows.len());
    for pair in order.windows(2) {
        let ((a, key_a), (b, key_b)) = (pair[0], pair[1]);
        assert!(key_a <= key_b);
        let oracle = compare(columns, &rows[a], &rows[b]);
        match key_a.cmp(&key_b) {
            Ordering::Equal => {
                assert!(a < b, "rows {a} and {b} change places");
                if sorted.shape.exact {
                    assert_eq!(oracle, Ordering::Equal, "rows {a} and {b}");
                }
            }
            _ => assert_eq!(oracle, Ordering::Less, "rows {a} and {b}"),
        }
    }
}

pub fn column(ordinal: usize, kind: ValueKind) -> KeyColumn {
    KeyColumn {
        ordinal,
        kind,
        descending: false,
        nulls_last: false,
    }
}
