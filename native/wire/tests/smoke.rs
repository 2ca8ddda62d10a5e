//! Passes ten thousand random strings and ten thousand mutated samples to every decoder. The fuzz
//! targets try more; this part runs every time.

mod support;

use faro_wire::header::HEADER_BYTES;
use faro_wire::{crc32c, FrameHeader};
use support::{decoders, samples, Random};

const ROUNDS: usize = 10_000;

fn to_every_decoder(bytes: &[u8]) -> usize {
    decoders::ALL
        .iter()
        .filter(|(_, decode)| decode(bytes))
        .count()
}

/// Breaks `bytes` the way broken peers do.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => {
                let length = random.below(40);
                let tail = random.bytes(length);
                bytes.extend(tail);
            }
            4 => {
                bytes.remove(at);
            }
            5 => bytes.insert(at, random.next() as u8),
            // A count or length at one of its bounds.
            _ => {
                let at = at / 4 * 4;
                let extreme = [0, 1, 4_096, 4_097, 32_768, 32_769, u32::MAX][random.below(7)];
                if let Some(word) = bytes.get_mut(at..at + 4) {
                    word.copy_from_slice(&extreme.to_le_bytes());
                }
            }
        }
    }
}

/// Makes the checksum right again, so that what lies behind it is reached.
fn reseal(name: &str, bytes: &mut Vec<u8>) {
    if name == "card" {
        if let Some(at) = bytes.windows(5).rposition(|window| window == b"\ncrc=") {
            bytes.truncate(at + 1);
            let crc = crc32c(bytes);
            bytes.extend(format!("crc={crc:08x}\n").bytes());
        }
    } else if name == "frame_header" && bytes.len() >= HEADER_BYTES {
        bytes[12..16].fill(0);
        let crc = crc32c(&bytes[..HEADER_BYTES]);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    }
}

#[test]
fn random_strings_never_panic() {
    let mut random = Random(0xfa20_0000_0000_0001);
    for round in 0..ROUNDS {
        // Mostly short, because short strings get further; now and then as long as a card and more.
        let length = random.below(if round % 50 == 0 { 8_192 } else { 96 });
        let bytes = random.bytes(length);
        to_every_decoder(&bytes);
        // The same bytes follow a correct magic and version, which only one in 2^40 random strings
        // would have.
        if bytes.len() >= HEADER_BYTES {
            let mut framed = samples::header_bytes();
            framed[5..].copy_from_slice(&bytes[5..HEADER_BYTES]);
            to_every_decoder(&framed);
            reseal("frame_header", &mut framed);
            let reserved_is_zero = framed[28..32] == [0; 4];
            assert_eq!(FrameHeader::parse(&framed).is_ok(), reserved_is_zero);
        }
    }
}

#[test]
fn mutated_samples_never_panic() {
    let mut random = Random(0xfa20_0000_0000_0002);
    let samples = samples::all();
    let mut accepted = 0;
    for round in 0..ROUNDS {
        let (name, sample) = &samples[round % samples.len()];
        let mut bytes = sample.clone();
        mutate(&mut bytes, &mut random);
        accepted += to_every_decoder(&bytes);
        reseal(name, &mut bytes);
        accepted += to_every_decoder(&bytes);
    }
    // Some mutations hit a free field; if none did, the mutations would test the first check only.
    assert!(
        accepted > ROUNDS / 20,
        "only {accepted} mutants were accepted"
    );
}
