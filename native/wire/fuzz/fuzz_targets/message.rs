//! Message bodies. The first byte chooses the decoder, so that one corpus serves all.
#![no_main]

#[path = "../../tests/support/decoders.rs"]
#[allow(dead_code)]
mod decoders;

use decoders::{
    credit, failed, farewell, fetch, grant, invitation, knock, landed, layout, pushed, Decoder,
};

const MESSAGES: [Decoder; 10] = [
    fetch, layout, credit, pushed, failed, knock, grant, landed, farewell, invitation,
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((choice, body)) = bytes.split_first() {
        MESSAGES[usize::from(*choice) % MESSAGES.len()](body);
    }
});
