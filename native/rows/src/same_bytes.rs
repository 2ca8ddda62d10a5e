//! Tests that the loops for AVX2 and BMI2 write the same bytes as the portable ones, and decode
//! them to the same rows. On a processor without these instructions both are the portable loops.

use crate::decode::body::BodyDecoder;
use crate::decode::placement::placed_bytes;
use crate::encode::body::{BodyEncoder, Choices};
use crate::format::body::BodyHead;
use crate::kernels::Kernels;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        let state = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = state.wrapping_add(1);
        self.0 ^ self.0 >> 29
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 8) % bound
    }
}

/// Returns a piece of rows of `words` words. The values of each column are of a kind that one of
/// the modes is for, with up to a random number of bits. A row may have texts after its words.
fn piece(random: &mut Random, words: usize) -> Vec<u8> {
    let max = if random.below(4) == 0 { 2000 } else { 70 };
    let rows = 1 + random.below(max);
    let kinds: Vec<_> = (0..words)
        .map(|_| (random.below(8), random.below(65) as u32, random.next()))
        .collect();
    let mut bytes = Vec::new();
    for row in 0..rows {
        let mut variable = Vec::new();
        let mut fixed = Vec::new();
        for &(kind, bits, base) in &kinds {
            let code = random.next().rotate_left(17);
            let code = code.checked_shr(64 - bits).unwrap_or(0);
            fixed.push(match kind {
                0 => code,
                1 => base.wrapping_add(code),
                2 if random.below(3) == 0 => 0,
                2 => base.wrapping_add(code),
                3 => base.wrapping_add(row.wrapping_mul(1 << (bits % 40))),
                4 => base.rotate_left((code % 5) as u32),
                5 => base ^ (row / 37),
                6 => code & base,
                _ => {
                    let length = random.below(20) as usize;
                    let place = 8 * words + variable.len();
                    variable.extend((0..length).map(|_| random.below(256) as u8));
                    variable.resize(variable.len().next_multiple_of(8), 0);
                    (place as u64) << 32 | length as u64
                }
            });
        }
        let row: Vec<u8> = fixed.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.extend(((row.len() + variable.len()) as u32).to_be_bytes());
        bytes.extend(row);
        bytes.extend(variable);
    }
    bytes
}

#[test]
fn all_loops_make_and_read_the_same_bytes() {
    let loops = [Kernels::portable(), Kernels::detect()];
    let mut encoders = loops.map(BodyEncoder::new);
    let mut decoders = loops.map(BodyDecoder::new);
    let mut random = Random(23);
    let (mut packed, rounds) = (0, if cfg!(miri) { 4 } else { 600 });
    for round in 0..rounds {
        let words = random.below(9) as usize;
        let piece = piece(&mut random, words);
        let texts = round % 3 > 0;
        let choices = Choices {
            texts,
            dictionaries: round % 2 > 0,
        };
        let bodies = encoders.each_mut().map(|encoder| {
            assert!(encoder.find_rows(&piece));
            let mut body = vec![0xa5; 2 * piece.len() + 64];
            let encoded = encoder.encode(&piece, words, choices, &mut |_, _| None, &mut body)?;
            body.truncate(encoded.bytes);
            Some(body)
        });
        assert!(bodies[0] == bodies[1], "round {round}");
        let Some(body) = &bodies[0] else {
            continue;
        };
        packed += 1;
        let rows = decoders.each_mut().map(|decoder| {
            let head = BodyHead::parse(body, piece.len()).expect("a head");
            let mut rows = vec![0xa5; placed_bytes(head.rows, head.original)];
            let none = &mut |_: &[u8], _: &mut [u8]| Err(String::from("nothing is compressed"));
            decoder
                .decode(body, &head, none, &mut rows)
                .expect("a body");
            rows
        });
        assert!(rows[0] == rows[1], "round {round}");
        assert!(stream(&rows[0]) == piece, "round {round}");
    }
    assert!(packed > rounds / 2, "{packed} bodies");
}

/// Converts rows with heads to a row stream.
fn stream(mut rows: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    while let Some((head, rest)) = rows.split_first_chunk::<8>() {
        let [a, b, c, d, ..] = *head;
        let length = u32::from_ne_bytes([a, b, c, d]);
        stream.extend(length.to_be_bytes());
        let (row, behind) = rest.split_at(length as usize);
        stream.extend(row);
        rows = behind;
    }
    stream
}
