//! Frame headers: as they come, and with a right checksum, which no fuzzer would guess.
#![no_main]

#[path = "../../tests/support/decoders.rs"]
#[allow(dead_code)]
mod decoders;

use faro_wire::{crc32c, header::HEADER_BYTES};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    decoders::frame(bytes);
    if bytes.len() >= HEADER_BYTES {
        let mut sealed = bytes.to_vec();
        sealed[12..16].fill(0);
        let crc = crc32c(&sealed[..HEADER_BYTES]);
        sealed[12..16].copy_from_slice(&crc.to_le_bytes());
        decoders::frame(&sealed);
    }
});
