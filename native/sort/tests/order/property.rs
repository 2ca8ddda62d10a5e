//! Random rows come in the order of an oracle that compares values as Spark does.

use crate::support::{check, sort, TestRow, Value, KINDS};
use faro_sort::{KeyColumn, ValueKind};
use proptest::collection::vec;
use proptest::prelude::*;

/// A value from few bits, many of them equal, or from all of them.
fn value(kind: ValueKind, bits: u128, few: bool) -> Value {
    let bits = if few { bits % 7 } else { bits };
    let floats = [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, -1.5, 3.25];
    match kind {
        ValueKind::Bool => Value::Bool(bits % 2 == 1),
        ValueKind::I8 => Value::I8(bits as i8),
        ValueKind::I16 => Value::I16(bits as i16),
        ValueKind::I32 => Value::I32(bits as i32),
        ValueKind::I64 => Value::I64(bits as i64),
        ValueKind::F32 if few => Value::F32(floats[bits as usize] as f32),
        ValueKind::F32 => Value::F32(f32::from_bits(bits as u32)),
        ValueKind::F64 if few => Value::F64(floats[bits as usize]),
        ValueKind::F64 => Value::F64(f64::from_bits(bits as u64)),
        ValueKind::WideDecimal => Value::Wide(bits as i128 >> (bits % 128)),
        ValueKind::Bytes => {
            let all = bits.to_le_bytes();
            let length = bits as usize % 17;
            let mut bytes = match few {
                true => b"prefix\0".to_vec(),
                false => Vec::new(),
            };
            // Seldom longer than any key.
            for _ in 0..if bits % 13 == 5 { 9 } else { 1 } {
                bytes.extend(&all[..length.min(all.len())]);
            }
            Value::Bytes(bytes)
        }
    }
}

#[derive(Debug, Clone)]
struct Case {
    columns: Vec<KeyColumn>,
    rows: Vec<TestRow>,
    per_page: usize,
    budget: usize,
    dirt: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let column = (
        0..KINDS.len(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        0u32..4,
    );
    (
        vec(column, 1..5),
        0usize..300,
        0usize..70,
        1usize..200,
        1usize..500,
        any::<u64>(),
    )
        .prop_flat_map(|(columns, count, before, per_page, budget, dirt)| {
            let cells = vec((any::<u128>(), 0u32..8), count * columns.len());
            (
                Just(columns),
                cells,
                Just((count, before, per_page, budget, dirt)),
            )
        })
        .prop_map(
            |(columns, cells, (count, before, per_page, budget, dirt))| {
                let mut cells = cells.into_iter();
                let rows = (0..count)
                    .map(|row| {
                        let mut values: TestRow = vec![Some(Value::I64(row as i64)); before];
                        for &(kind, .., few, nulls) in &columns {
                            let (bits, chance) = cells.next().expect("a cell for each value");
                            values.push((chance >= nulls).then(|| value(KINDS[kind], bits, few)));
                        }
                        values
                    })
                    .collect();
                let columns = columns
                    .iter()
                    .enumerate()
                    .map(|(at, &(kind, descending, nulls_last, ..))| KeyColumn {
                        ordinal: before + at,
                        kind: KINDS[kind],
                        descending,
                        nulls_last,
                    })
                    .collect();
                Case {
                    columns,
                    rows,
                    per_page,
                    budget,
                    dirt,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn rows_are_in_sparks_order(case in case()) {
        let sorted = sort(&case.columns, &case.rows, case.per_page, case.budget, case.dirt);
        check(&case.columns, &case.rows, &sorted);
    }
}
