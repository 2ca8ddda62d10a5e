//! Every decoder of this crate, and what must hold of the values it accepts. Shared by the smoke
//! test and the fuzz targets.

use faro_wire::card::MAX_CARD_BYTES;
use faro_wire::header::HEADER_BYTES;
use faro_wire::message::{
    Abort, ClearToSend, CommandReply, DataReady, DataWritten, Failed, Fetch, FetchResponse,
    Incoming, Join, MemberCommand, MoreBuffers, ReadOffer,
};
use faro_wire::{BootstrapId, Card, FrameHeader, WireError};

/// A decoder; true if it accepted the bytes.
pub type Decoder = fn(&[u8]) -> bool;

/// All of them, by name.
pub const ALL: [(&str, Decoder); 16] = [
    ("frame", frame),
    ("incoming", incoming),
    ("fetch", fetch),
    ("fetch_response", fetch_response),
    ("read_offer", read_offer),
    ("more_buffers", more_buffers),
    ("data_written", data_written),
    ("failed", failed),
    ("card", card),
    ("join", join),
    ("clear_to_send", clear_to_send),
    ("data_ready", data_ready),
    ("abort", abort),
    ("command", command),
    ("command_answer", command_answer),
    ("bootstrap_id", bootstrap_id),
];

/// Errors are logged, so the length of their text must not depend on the input.
fn refused(error: &WireError) -> bool {
    assert!(error.to_string().len() < 256, "{error:?}");
    false
}

/// Checks that an accepted body is the only encoding of its message.
fn canonical<T>(
    bytes: &[u8],
    decoded: Result<T, WireError>,
    encode: impl FnOnce(&T) -> Vec<u8>,
) -> bool {
    match decoded {
        Ok(message) => {
            assert_eq!(encode(&message), bytes);
            true
        }
        Err(error) => refused(&error),
    }
}

pub fn frame(bytes: &[u8]) -> bool {
    match FrameHeader::parse(bytes) {
        Ok(header) => {
            let again = FrameHeader::sealed(
                header.kind,
                header.flags.get(),
                header.id.get(),
                header.length.get(),
                header.body_crc.get(),
            );
            assert_eq!(again, header);
            let _ = header.check_body(&bytes[HEADER_BYTES..]);
            true
        }
        Err(error) => refused(&error),
    }
}

/// Decodes a message. The first byte is the kind, the rest is the body.
pub fn incoming(bytes: &[u8]) -> bool {
    let Some((kind, body)) = bytes.split_first() else {
        return false;
    };
    match Incoming::decode(*kind, body) {
        Ok(message) => {
            assert_eq!(message.kind(), *kind);
            assert_eq!(message.encode(), body);
            true
        }
        Err(error) => refused(&error),
    }
}

pub fn fetch(bytes: &[u8]) -> bool {
    canonical(bytes, Fetch::decode(bytes), Fetch::encode)
}

pub fn fetch_response(bytes: &[u8]) -> bool {
    canonical(bytes, FetchResponse::decode(bytes), FetchResponse::encode)
}

pub fn read_offer(bytes: &[u8]) -> bool {
    canonical(bytes, ReadOffer::decode(bytes), ReadOffer::encode)
}

pub fn more_buffers(bytes: &[u8]) -> bool {
    canonical(bytes, MoreBuffers::decode(bytes), MoreBuffers::encode)
}

pub fn data_written(bytes: &[u8]) -> bool {
    canonical(bytes, DataWritten::decode(bytes), DataWritten::encode)
}

pub fn failed(bytes: &[u8]) -> bool {
    canonical(bytes, Failed::decode(bytes), Failed::encode)
}

pub fn join(bytes: &[u8]) -> bool {
    canonical(bytes, Join::decode(bytes), Join::encode)
}

pub fn clear_to_send(bytes: &[u8]) -> bool {
    canonical(bytes, ClearToSend::decode(bytes), ClearToSend::encode)
}

pub fn data_ready(bytes: &[u8]) -> bool {
    canonical(bytes, DataReady::decode(bytes), DataReady::encode)
}

pub fn abort(bytes: &[u8]) -> bool {
    canonical(bytes, Abort::decode(bytes), Abort::encode)
}

pub fn command(bytes: &[u8]) -> bool {
    canonical(bytes, MemberCommand::decode(bytes), MemberCommand::encode)
}

pub fn command_answer(bytes: &[u8]) -> bool {
    canonical(bytes, CommandReply::decode(bytes), CommandReply::encode)
}

/// Decodes a bootstrap id, which is checked like a card, since it ends in one.
pub fn bootstrap_id(bytes: &[u8]) -> bool {
    match BootstrapId::decode(bytes) {
        Ok(bootstrap_id) => {
            let again = bootstrap_id.encode();
            if bootstrap_id.card.encode().len() <= MAX_CARD_BYTES {
                assert_eq!(BootstrapId::decode(&again), Ok(bootstrap_id));
            }
            true
        }
        Err(error) => refused(&error),
    }
}

/// Decodes a card. A card may hold keys that this build skips, and its lines in any order, so the
/// decoded card must survive another round trip.
pub fn card(bytes: &[u8]) -> bool {
    match Card::decode(bytes) {
        Ok(card) => {
            let again = card.encode();
            if again.len() <= MAX_CARD_BYTES {
                assert_eq!(Card::decode(&again), Ok(card));
            }
            true
        }
        Err(error) => refused(&error),
    }
}
