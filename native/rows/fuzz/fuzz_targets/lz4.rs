//! LZ4 blocks: as they come, and with right checksums, which no fuzzer would guess. See cuts.rs for
//! what the first bytes are.
#![no_main]

mod cuts;

use faro_rows::Codec;
use twox_hash::XxHash32;

const HEADER_BYTES: usize = 21;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((cuts, part)) = cuts::split(bytes) {
        cuts::same_in_any_cuts(Codec::Lz4, part, &cuts);
        cuts::same_in_any_cuts(Codec::Lz4, &sealed(part), &cuts);
    }
});

/// The part with the magic and the checksum of each block put right, as far as its blocks decompress.
fn sealed(part: &[u8]) -> Vec<u8> {
    let mut part = part.to_vec();
    let mut at = 0;
    while let Some(block) = part
        .get_mut(at..)
        .filter(|block| block.len() >= HEADER_BYTES)
    {
        let (header, body) = block.split_at_mut(HEADER_BYTES);
        header[..8].copy_from_slice(b"LZ4Block");
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (compressed, original) = (field(9) as usize, field(13) as usize);
        if compressed > body.len() || original > 1 << 20 {
            break;
        }
        let body = &body[..compressed];
        let bytes = match header[8] & 0xf0 {
            0x10 => body.to_vec(),
            _ => {
                let mut bytes = vec![0; original];
                let found = lz4_flex::block::decompress_into(body, &mut bytes).unwrap_or(0);
                bytes.truncate(found);
                bytes
            }
        };
        let hash = match bytes.is_empty() {
            true => 0,
            false => XxHash32::oneshot(0x9747_b28c, &bytes) & 0x0fff_ffff,
        };
        header[17..].copy_from_slice(&hash.to_le_bytes());
        at += HEADER_BYTES + compressed;
    }
    part
}
