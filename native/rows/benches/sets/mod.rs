//! The sets of rows that the benchmark measures.

use super::unsafe_row::Field;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 ^ self.0 >> 29
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 8) % bound
    }

    pub fn text(&mut self, words: u64) -> Field {
        const WORDS: [&str; 8] = [
            "carefully ",
            "final ",
            "deposits ",
            "sleep ",
            "furiously ",
            "accounts ",
            "even ",
            "ironic ",
        ];
        let words = (0..words).map(|_| WORDS[self.below(8) as usize]);
        Field::Text(words.collect::<String>().into_bytes())
    }
}

/// The name of a set, the number of its fields, and the function that makes a row.
pub type Set = (&'static str, usize, fn(usize, &mut Random) -> Vec<Field>);

pub const SETS: [Set; 24] = [
    ("random key, counter, amount", 3, |at, random| {
        let amount = (random.below(100_000) as f64 / 100.0).to_bits();
        vec![
            Field::Word(random.next()),
            Field::Word(at as u64),
            Field::Word(amount),
        ]
    }),
    ("small integers", 4, |_, random| {
        [100, 1000, 50, 20_000]
            .map(|bound| Field::Word(random.below(bound)))
            .to_vec()
    }),
    ("nullable integers", 6, |_, random| {
        let field = |_| match random.below(10) {
            0 => Field::Null,
            _ => Field::Word(2_450_000 + random.below(2000)),
        };
        (0..6).map(field).collect()
    }),
    ("sorted timestamps", 2, |at, random| {
        let time = 1_700_000_000_000_000 + at as u64 * 1000 + random.below(900);
        vec![Field::Word(time), Field::Word(random.below(1 << 20))]
    }),
    ("few values", 3, |_, random| {
        let value =
            |random: &mut Random| Field::Word(random.below(9).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        vec![
            value(random),
            value(random),
            Field::Word(random.below(1 << 30)),
        ]
    }),
    ("texts", 4, |at, random| {
        let comment = random.below(8);
        vec![
            Field::Word(at as u64),
            random.text(2),
            Field::Word(random.below(100)),
            random.text(comment),
        ]
    }),
    ("decimals and a text", 3, |_, random| {
        let bytes = random.next().to_be_bytes();
        let used = 4 + random.below(4) as usize;
        vec![
            Field::Decimal(bytes[..used].to_vec()),
            random.text(1),
            Field::Word(random.below(1 << 40)),
        ]
    }),
    ("random words", 4, |_, random| {
        (0..4)
            .map(|_| Field::Word(random.next().rotate_left(23)))
            .collect()
    }),
    ("seven rows in turn", 4, |at, _| {
        let mut random = Random(at as u64 % 7 + 1);
        (0..4).map(|_| Field::Word(random.next())).collect()
    }),
    // The format and the guard were not tuned on the following sets.
    ("one random integer", 1, |_, random| {
        vec![Field::Word(random.below(1 << 31))]
    }),
    ("sorted keys, random values", 3, |at, random| {
        let value = (random.next() >> 12) as f64 / random.below(1 << 20).max(1) as f64;
        vec![
            Field::Word(at as u64 * 17 + random.below(17)),
            Field::Word(value.to_bits()),
            Field::Word(random.below(1 << 24)),
        ]
    }),
    ("skewed keys, nulls", 5, |_, random| {
        let key = skewed(random, 1_000_000);
        let value = |random: &mut Random, nulls| match random.below(100) < nulls {
            true => Field::Null,
            false => Field::Word(skewed(random, 5000)),
        };
        vec![
            Field::Word(key.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            value(random, 90),
            value(random, 50),
            value(random, 1),
            Field::Word(key),
        ]
    }),
    ("decimals of 7 digits", 4, |_, random| {
        let price = 100 + random.below(9_999_900);
        let part = price * random.below(100) / 100;
        let words = [price, part, price - part, 1 + random.below(100)];
        words.map(Field::Word).to_vec()
    }),
    ("decimals of 38 digits, nulls", 3, |at, random| {
        let bytes = random.next().to_be_bytes();
        let sum = match random.below(5) {
            0 => Field::NullDecimal,
            size => Field::Decimal(bytes[..2 * size as usize].to_vec()),
        };
        vec![
            Field::Word(at as u64 / 3),
            sum,
            Field::Word(random.below(1 << 16)),
        ]
    }),
    ("random timestamps", 2, |_, random| {
        let time = 1_600_000_000_000_000 + random.below(94_608_000_000_000);
        vec![Field::Word(time), Field::Word(random.below(1 << 40))]
    }),
    ("UUIDs", 2, |at, random| {
        let (a, b) = (random.next(), random.next().rotate_left(19));
        let text = format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            a >> 32,
            a & 0xffff,
            a >> 16 & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff,
        );
        vec![Field::Text(text.into_bytes()), Field::Word(at as u64)]
    }),
    ("hashes", 1, |_, random| {
        let text: String = (0..4)
            .map(|_| format!("{:016x}", random.next().rotate_left(31)))
            .collect();
        vec![Field::Text(text.into_bytes())]
    }),
    ("JSON", 2, |at, random| {
        let text = format!(
            "{{\"user\":{},\"event\":\"{}\",\"at\":\"2026-0{}-1{}T0{}:0{}:00Z\",\"tags\":[{}],\"price\":{}.{:02},\
             \"ok\":{}}}",
            skewed(random, 1 << 20),
            ["click", "view", "purchase", "scroll"][random.below(4) as usize],
            1 + random.below(9),
            random.below(10),
            random.below(10),
            random.below(10),
            (0..random.below(4)).map(|tag| format!("\"t{tag}\"")).collect::<Vec<_>>().join(","),
            random.below(1000),
            random.below(100),
            random.below(5) > 0,
        );
        vec![Field::Word(at as u64), Field::Text(text.into_bytes())]
    }),
    ("URLs and short texts", 4, |at, random| {
        let id = skewed(random, 100_000);
        let text = format!("https://www.example.com/shop/{}/item?id={id}", id % 97);
        let short = |random: &mut Random| match random.below(4) {
            0 => Field::NullText,
            1 => Field::Text(Vec::new()),
            _ => Field::Text(vec![b'A' + random.below(26) as u8]),
        };
        let (state, flag) = (short(random), short(random));
        vec![
            Field::Word(at as u64),
            Field::Text(text.into_bytes()),
            state,
            flag,
        ]
    }),
    ("long random bytes", 2, |at, random| {
        let bytes = (0..100)
            .flat_map(|_| random.next().rotate_left(29).to_be_bytes())
            .collect();
        vec![Field::Word(at as u64 % 64), Field::Text(bytes)]
    }),
    ("long texts", 2, |at, random| {
        let words = 20 + random.below(60);
        vec![Field::Word(at as u64), random.text(words)]
    }),
    ("60 columns, most of them null", 60, |at, random| {
        let field = |index| match (at + index) % 9 {
            0 => Field::Word(random.below(1 << 20)),
            _ => Field::Null,
        };
        (0..60).map(field).collect()
    }),
    ("arrays of integers", 2, |at, random| {
        let count = random.below(6);
        let mut array = vec![count, 0];
        array.extend((0..count).map(|_| random.below(1 << 20)));
        let bytes = array.into_iter().flat_map(u64::to_le_bytes).collect();
        vec![Field::Word(at as u64), Field::Text(bytes)]
    }),
    ("sums of doubles by key", 4, |at, random| {
        let sum = random.below(1 << 30) as f64 * 0.37;
        vec![
            Field::Word(skewed(random, 50_000)),
            Field::Word(sum.to_bits()),
            Field::Word(1 + random.below(40)),
            Field::Word((sum / 7.0).to_bits() ^ (at as u64 & 1)),
        ]
    }),
];

/// Returns a skewed random value: half of all values are below the square root of the bound.
fn skewed(random: &mut Random, bound: u64) -> u64 {
    let power = random.below(1 << 20) as f64 / (1 << 20) as f64;
    (bound as f64).powf(power) as u64
}
