//! Messages of the endpoint layer. The first byte is the kind, the rest is the body.
#![no_main]

#[path = "../../tests/support/decoders.rs"]
#[allow(dead_code)]
mod decoders;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    decoders::incoming(bytes);
});
