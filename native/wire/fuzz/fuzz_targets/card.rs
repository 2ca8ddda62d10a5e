//! Endpoint cards and the bootstrap ids that end in one: as they come, and with a right checksum line.
#![no_main]

#[path = "../../tests/support/decoders.rs"]
#[allow(dead_code)]
mod decoders;

use faro_wire::crc32c;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    decoders::card(bytes);
    decoders::bootstrap_id(bytes);
    let end = bytes
        .windows(5)
        .rposition(|window| window == b"\ncrc=")
        .map_or(bytes.len(), |at| at + 1);
    let mut sealed = bytes[..end].to_vec();
    let crc = crc32c(&sealed);
    sealed.extend(format!("crc={crc:08x}\n").bytes());
    decoders::card(&sealed);
    decoders::bootstrap_id(&[b"faro-seat=2:0123456789abcdef:/row-1\n", &sealed[..]].concat());
});
