//! The row stream. See cuts.rs for what the first bytes are.
#![no_main]

mod cuts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((cuts, part)) = cuts::split(bytes) {
        cuts::same_in_any_cuts(faro_rows::Codec::None, part, &cuts);
    }
});
