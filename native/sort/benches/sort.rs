//! Time to sort 4 million rows of 64 bytes: by two integers, by one, by a string.
//!
//! `cargo bench -p faro-sort`

use faro_sort::{KeyColumn, RowSorter, SortProgress, ValueKind};
use std::time::Instant;

const ROWS: usize = 4_000_000;
/// Words of a row with its head: nulls, four columns, and two words of strings.
const WORDS: usize = 9;

fn scattered(x: u64) -> u64 {
    let x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

fn column(ordinal: usize, kind: ValueKind) -> KeyColumn {
    KeyColumn {
        ordinal,
        kind,
        descending: false,
        nulls_last: false,
    }
}

fn main() {
    let mut page = Vec::with_capacity(ROWS * WORDS * 8);
    for row in 0..ROWS as u64 {
        let (a, b) = (scattered(row) % 18_000, scattered(row + 77) % 800_000);
        let text = format!("{:016x}", scattered(row + 99));
        for word in [64, 0, a, b, scattered(row), 40 << 32 | 16] {
            page.extend(word.to_le_bytes());
        }
        page.extend(text.as_bytes());
        page.extend([0; 8]);
    }
    let integers = [column(0, ValueKind::I32), column(1, ValueKind::I64)];
    let cases: [(&str, Vec<KeyColumn>); 5] = [
        ("item, ticket", integers.to_vec()),
        ("ticket, item", vec![integers[1], integers[0]]),
        ("one integer", vec![integers[1]]),
        ("64 bits", vec![column(2, ValueKind::I64)]),
        ("string of 16", vec![column(3, ValueKind::Bytes)]),
    ];
    for (name, columns) in cases {
        for _ in 0..2 {
            sort(name, &columns, &page);
        }
    }
}

fn sort(name: &str, columns: &[KeyColumn], page: &[u8]) {
    let start = Instant::now();
    let mut sorter = RowSorter::new(columns, 4, true).expect("columns of the rows");
    sorter.survey(page).expect("good rows");
    let surveyed = start.elapsed();
    let shape = sorter.plan().expect("a survey");
    let mut first = vec![0; ROWS * shape.words];
    let mut second = vec![0; if shape.words == 1 { ROWS } else { 0 }];
    sorter.encode(page, &mut first).expect("the same rows");
    let encoded = start.elapsed();
    let mut steps = 1;
    let in_first = loop {
        match sorter
            .step(&mut first, &mut second, 1 << 20)
            .expect("entries")
        {
            SortProgress::More => steps += 1,
            done => break done == SortProgress::InFirst,
        }
    };
    let sorted = start.elapsed();
    let entries = if in_first { &first } else { &second };
    // A comparison sort of the same entries, from the order of the rows.
    let mut by_row: Vec<u128> = entries
        .chunks(shape.words)
        .map(|words| {
            words
                .iter()
                .fold(0, |entry, word| entry << 64 | u128::from(*word))
        })
        .collect();
    let mask = (1u128 << (shape.word_bits + shape.page_bits)) - 1;
    by_row.sort_unstable_by_key(|entry| entry & mask);
    let start = Instant::now();
    by_row.sort_unstable();
    println!(
        "{name}: survey {:.3} encode {:.3} sort {:.3} s in {steps} steps; {} words, exact {}; comparisons {:.3} s",
        surveyed.as_secs_f64(),
        (encoded - surveyed).as_secs_f64(),
        (sorted - encoded).as_secs_f64(),
        shape.words,
        shape.exact,
        start.elapsed().as_secs_f64(),
    );
}
