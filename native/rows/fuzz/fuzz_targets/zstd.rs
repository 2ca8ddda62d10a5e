//! zstd frames. See cuts.rs for what the first bytes are.
#![no_main]

mod cuts;

use faro_rows::Codec;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((cuts, part)) = cuts::split(bytes) else {
        return;
    };
    let whole = cuts::decode(&mut cuts::decoder(Codec::Zstd, 4096), part, &[]);
    let pieces = cuts::decode(&mut cuts::decoder(Codec::Zstd, 64), part, &cuts);
    // How far a broken frame is decoded may depend on the cuts.
    if whole.error.is_none() && pieces.error.is_none() {
        assert!(whole.rows == pieces.rows);
    }
});
