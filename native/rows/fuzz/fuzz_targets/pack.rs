#![no_main]
#![allow(dead_code, reason = "each target is one of the checks")]

#[path = "../../tests/support/decode.rs"]
mod decode;
#[path = "../../tests/support/encode.rs"]
mod encode;
#[path = "../../tests/support/fuzz.rs"]
mod fuzz;
#[path = "../../tests/support/row_block.rs"]
mod row_block;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::pack(bytes));
