//! Sorts that have a reason of their own.

use crate::support::{append, check, column, sort, TestRow, Value};
use faro_sort::{KeyColumn, RowSorter, SortError, ValueKind};

/// Numbers without an order; the same ones each time.
fn scattered(count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

fn two_keys(count: usize) -> Vec<TestRow> {
    scattered(count)
        .map(|x| {
            vec![
                Some(Value::I32((x % 18_000) as i32)),
                Some(Value::I64((x >> 32) as i64 % 800_000)),
            ]
        })
        .collect()
}

const TWO: [(usize, ValueKind); 2] = [(0, ValueKind::I32), (1, ValueKind::I64)];

fn columns(of: &[(usize, ValueKind)]) -> Vec<KeyColumn> {
    of.iter()
        .map(|&(ordinal, kind)| column(ordinal, kind))
        .collect()
}

#[test]
fn two_integers_and_a_position_are_one_word() {
    let rows = two_keys(20_000);
    let sorted = sort(&columns(&TWO), &rows, 7_000, 3_333, 0);
    assert_eq!((sorted.shape.words, sorted.shape.exact), (1, true));
    check(&columns(&TWO), &rows, &sorted);
}

#[test]
fn two_words_are_sorted() {
    let rows: Vec<TestRow> = scattered(20_000)
        .map(|x| vec![Some(Value::I64(x as i64)), Some(Value::I32(x as i32 % 5))])
        .collect();
    let columns = columns(&[(1, ValueKind::I32), (0, ValueKind::I64)]);
    let sorted = sort(&columns, &rows, 9_999, 1 << 20, 0);
    assert_eq!((sorted.shape.words, sorted.shape.exact), (2, true));
    check(&columns, &rows, &sorted);
}

#[test]
fn a_cut_string_is_not_exact() {
    let rows: Vec<TestRow> = scattered(9_000)
        .map(|x| {
            vec![
                Some(Value::Bytes(format!("{:020}", x % 50).into_bytes())),
                Some(Value::I64(x as i64)),
            ]
        })
        .map(|mut row: TestRow| {
            if let Some(Value::Bytes(bytes)) = &mut row[0] {
                bytes.extend([b'z'; 60]);
            }
            row
        })
        .collect();
    let columns = columns(&[(0, ValueKind::Bytes), (1, ValueKind::I64)]);
    let sorted = sort(&columns, &rows, 9_000, 1 << 20, 0);
    assert!(!sorted.shape.exact);
    check(&columns, &rows, &sorted);
}

#[test]
fn strings_with_a_common_start_and_few_characters_leave_room_for_the_next_column() {
    let rows: Vec<TestRow> = scattered(9_000)
        .map(|x| {
            vec![
                Some(Value::Bytes(
                    format!("https://example.org/{}", x % 1_000).into_bytes(),
                )),
                Some(Value::I64(x as i64 >> 30)),
            ]
        })
        .collect();
    let columns = columns(&[(0, ValueKind::Bytes), (1, ValueKind::I64)]);
    let sorted = sort(&columns, &rows, 9_000, 1 << 20, 0);
    assert!(sorted.shape.exact);
    check(&columns, &rows, &sorted);
}

#[test]
fn rows_that_are_in_order_stay() {
    let rows: Vec<TestRow> = (0..10_000).map(|x| vec![Some(Value::I64(x / 3))]).collect();
    let columns = columns(&[(0, ValueKind::I64)]);
    // One step, although a digit alone takes two of them.
    let sorted = sort(&columns, &rows, 1_000, 1, 0);
    check(&columns, &rows, &sorted);
}

#[test]
fn a_damaged_row_is_an_error() {
    let mut sorter = RowSorter::new(&columns(&TWO), 2, true).expect("two columns");
    let mut page = Vec::new();
    append(&mut page, &two_keys(1)[0], 0);
    let bytes = page.len() as u64;
    for length in [bytes, 23, 16, 0, u64::MAX] {
        page[..8].copy_from_slice(&length.to_le_bytes());
        assert!(
            matches!(sorter.survey(&page), Err(SortError::RowLength { bytes, .. }) if bytes == length)
        );
    }
    let strings = columns(&[(0, ValueKind::Bytes)]);
    let mut sorter = RowSorter::new(&strings, 2, true).expect("a column");
    let mut page = Vec::new();
    append(&mut page, &vec![Some(Value::I64(24 << 32 | 1)), None], 0);
    assert!(matches!(
        sorter.survey(&page),
        Err(SortError::Variable {
            offset: 24,
            bytes: 1,
            row: 24
        })
    ));
    assert_eq!(
        RowSorter::new(&strings, 0, true).err(),
        Some(SortError::NoColumn {
            ordinal: 0,
            fields: 0
        })
    );
}

#[test]
fn calls_have_an_order() {
    let mut page = Vec::new();
    append(&mut page, &two_keys(1)[0], 0);
    let mut sorter = RowSorter::new(&columns(&TWO), 2, true).expect("two columns");
    assert_eq!(
        sorter.encode(&page, &mut [0; 2]),
        Err(SortError::Sequence { call: "encode" })
    );
    sorter.survey(&page).expect("a row");
    sorter.plan().expect("one page");
    assert_eq!(
        sorter.survey(&page),
        Err(SortError::Sequence { call: "survey" })
    );
    assert!(matches!(
        sorter.encode(&page, &mut []),
        Err(SortError::Room { .. })
    ));
    append(&mut page, &two_keys(1)[0], 0);
    assert_eq!(
        sorter.encode(&page, &mut [0; 2]),
        Err(SortError::OtherPage { page: 0 })
    );
}
