//! Tests that each decoder refuses bad input, by name and value: one case for each sentence of its contract.

mod support;

use faro_wire::card::{MAX_CARD_BYTES, MAX_NAME_BYTES};
use faro_wire::header::VERSIONS;
use faro_wire::message::{
    Abort, BlockEntry, ClearToSend, CommandReply, DataReady, DataWritten, Failed, FailureCode,
    Fetch, FetchResponse, Join, MemberCommand, MoreBuffers, ReadOffer, MAX_BLOCKS, MAX_BUFFERS,
    MAX_COMMAND_IDS, MAX_CONTENT_BYTES, MAX_DETAIL_BYTES, MAX_OFFERED_SLICES,
    MAX_OFFERED_SLICE_BYTES,
};
use faro_wire::{
    crc32c, BlockId, BlockStatus, BootstrapId, Card, FrameHeader, VersionGap, VersionRange,
    WireError,
};
use support::samples;
use zerocopy::IntoBytes;

/// Returns `bytes` with the word at `at` replaced.
fn with(mut bytes: Vec<u8>, at: usize, word: u32) -> Vec<u8> {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    bytes
}

fn bad_value<T: std::fmt::Debug>(result: Result<T, WireError>) -> (&'static str, u64) {
    match result {
        Err(WireError::BadValue { what, got }) => (what, got),
        other => panic!("{other:?}"),
    }
}

fn too_large<T: std::fmt::Debug>(result: Result<T, WireError>) -> (u64, u64) {
    match result {
        Err(WireError::TooLarge { got, limit, .. }) => (got, limit),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reserved_fields_must_be_zero() {
    let reserved = ("reserved field", 7);
    let fetch = samples::fetch().encode();
    // First buffer, second buffer.
    for at in [16 + 20, 16 + 44] {
        assert_eq!(
            bad_value(Fetch::decode(&with(fetch.clone(), at, 7))),
            reserved,
            "at {at}"
        );
    }
    for at in [4, 8 + 4, 8 + 5 * 16 + 4] {
        let fetch_response = samples::fetch_response().encode();
        assert_eq!(
            bad_value(FetchResponse::decode(&with(fetch_response, at, 7))),
            reserved,
            "at {at}"
        );
    }
    for at in [4, 8 + 20, 8 + 44] {
        let more_buffers = samples::more_buffers().encode();
        assert_eq!(
            bad_value(MoreBuffers::decode(&with(more_buffers, at, 7))),
            reserved,
            "at {at}"
        );
    }
    // The first buffer has no checksum and one.
    let data_written = samples::data_written().encode();
    let both = with(data_written.clone(), 8 + 12, 1);
    assert_eq!(
        bad_value(DataWritten::decode(&both)),
        ("reserved field", 0xdead_beef)
    );
    assert_eq!(
        bad_value(DataWritten::decode(&with(data_written, 8 + 28, 7))),
        ("unsummed of a written buffer", 7)
    );
}

/// Decodes a `FETCH` of `count` blocks without buffers, whose ranges are `list`.
fn fetch_of(count: u32, list: &[u8]) -> Result<Fetch, WireError> {
    let head = [30_000, 0, count, 0].map(u32::to_le_bytes).concat();
    Fetch::decode(&[&head, list].concat())
}

#[test]
fn ranges_of_blocks_that_do_not_add_up_are_refused() {
    // Shuffle 1, partitions 0 to 1, piece 0, first map 5 (zigzag 10), 3 outputs; twice one step of 1 (zigzag 2).
    let fetch = fetch_of(3, &[1, 0, 1, 0, 10, 3, 2, 2]).expect("a range of three outputs");
    let maps: Vec<i64> = fetch.blocks.iter().map(|b| b.map_id.get()).collect();
    assert_eq!(maps, [5, 6, 7]);
    assert_eq!(
        bad_value(fetch_of(3, &[1, 0, 1, 0, 10, 0])),
        ("outputs of a range", 0)
    );
    assert_eq!(too_large(fetch_of(3, &[1, 0, 1, 0, 10, 4])), (4, 3));
    assert_eq!(
        bad_value(fetch_of(3, &[1, 0, 1, 0, 10, 3, 2, 0])),
        ("repeats of a step", 0)
    );
    assert_eq!(too_large(fetch_of(3, &[1, 0, 1, 0, 10, 3, 2, 3])), (3, 2));
    // 2^32, in five bytes, as a shuffle id.
    let wide = [0x80, 0x80, 0x80, 0x80, 0x10, 0, 1, 0, 10, 1];
    assert_eq!(
        too_large(fetch_of(1, &wide)),
        (1 << 32, u64::from(u32::MAX))
    );
    let (what, got) = bad_value(fetch_of(1, &[0xff; 20]));
    assert_eq!(
        (what, got),
        ("tenth byte of a variable-length integer", 0xff)
    );
    // One step twice, one range twice, an integer with a byte too many.
    for longer in [
        &[1, 0, 1, 0, 10, 3, 2, 1, 2, 1][..],
        &[1, 0, 1, 0, 10, 1, 1, 0, 1, 0, 12, 2, 2, 1],
        &[1, 0x80, 0, 1, 0, 10, 3, 2, 2],
    ] {
        assert_eq!(
            bad_value(fetch_of(3, longer)),
            ("ranges that could be fewer or shorter, of blocks", 3)
        );
    }
    assert!(matches!(
        fetch_of(3, &[1, 0, 1, 0, 10, 3, 2]),
        Err(WireError::Truncated { .. })
    ));
    assert!(matches!(
        fetch_of(3, &[1, 0, 1, 0, 10, 3, 2, 2, 0]),
        Err(WireError::Trailing { extra: 1, .. })
    ));
}

#[test]
fn a_request_of_evenly_spaced_outputs_is_as_short_as_one_of_a_block() {
    let mut fetch = samples::fetch();
    fetch.blocks.truncate(1);
    let block = fetch.blocks[0];
    let one = fetch.encode().len();
    fetch.blocks = (0..i64::from(MAX_BLOCKS))
        .map(|n| BlockId {
            map_id: (1_000 + 3 * n).into(),
            ..block
        })
        .collect();
    let encoded = fetch.encode();
    assert!(
        encoded.len() <= one + 8,
        "{} bytes, {one} for one block",
        encoded.len()
    );
    assert_eq!(Fetch::decode(&encoded), Ok(fetch));
}

#[test]
fn unknown_flags_are_refused() {
    let fetch = samples::fetch().encode();
    for flags in [4, 7, 1 << 31] {
        let decoded = Fetch::decode(&with(fetch.clone(), 12, flags));
        assert_eq!(bad_value(decoded), ("flags of FETCH", u64::from(flags)));
    }
    let flags = |flags| {
        let fetch = Fetch::decode(&with(fetch.clone(), 12, flags)).unwrap();
        (fetch.writes_only, fetch.reader_verifies)
    };
    assert_eq!(
        [1, 2, 3].map(flags),
        [(true, false), (false, true), (true, true)]
    );
}

#[test]
fn slices_that_a_client_cannot_check_are_refused() {
    let read_offer = samples::read_offer().encode();
    // Versions' length 4096: 512 slots. The first slice begins at 32.
    for (at, word, what) in [
        (0, 0, "READ_OFFER slices"),
        (4, 7, "reserved field"),
        (28, 7, "reserved field"),
        (32 + 36, 7, "reserved field"),
        (32 + 16, 0, "length of a slice"),
        (32 + 20, 512, "slot of a slice"),
        (32 + 24, 7, "version of a slice (odd)"),
    ] {
        let decoded = ReadOffer::decode(&with(read_offer.clone(), at, word));
        assert_eq!(bad_value(decoded), (what, u64::from(word)), "at {at}");
    }
    let (got, limit) = too_large(ReadOffer::decode(&with(
        read_offer,
        0,
        MAX_OFFERED_SLICES + 1,
    )));
    assert_eq!(
        (got, limit),
        (
            u64::from(MAX_OFFERED_SLICES) + 1,
            u64::from(MAX_OFFERED_SLICES)
        )
    );
}

/// Messages that are well-formed and cannot be true: no endpoint has such memory.
#[test]
fn memory_that_no_endpoint_has_is_refused() {
    let high = u64::MAX - 7;
    let offset = |mut bytes: Vec<u8>, at: usize| {
        bytes[at..at + 8].copy_from_slice(&high.to_le_bytes());
        bytes
    };
    let buffer = ("offset of a buffer", high);
    // The first buffer's offset, after the head and its key.
    let fetch = offset(samples::fetch().encode(), 16 + 8);
    assert_eq!(bad_value(Fetch::decode(&fetch)), buffer);
    let more_buffers = offset(samples::more_buffers().encode(), 8 + 8);
    assert_eq!(bad_value(MoreBuffers::decode(&more_buffers)), buffer);
    let clear_to_send = offset(samples::clear_to_send().encode(), 56 + 8);
    assert_eq!(bad_value(ClearToSend::decode(&clear_to_send)), buffer);
    let read_offer = samples::read_offer().encode();
    for (at, what) in [
        (8 + 8, "offset of the versions"),
        (32 + 8, "offset of a slice"),
    ] {
        let decoded = ReadOffer::decode(&offset(read_offer.clone(), at));
        assert_eq!(bad_value(decoded), (what, high), "at {at}");
    }
    // A slice of more than a page, into which no client can read.
    for length in [MAX_OFFERED_SLICE_BYTES + 1, u32::MAX] {
        let decoded = ReadOffer::decode(&with(read_offer.clone(), 32 + 16, length));
        let limit = u64::from(MAX_OFFERED_SLICE_BYTES);
        assert_eq!(too_large(decoded), (u64::from(length), limit));
    }
}

#[test]
fn messages_of_collectives_with_bad_fields_are_refused() {
    let join = samples::join().encode();
    for (at, rank) in [(8, 9), (12, 17)] {
        let refused = bad_value(Join::decode(&with(join.clone(), at, rank)));
        assert_eq!(refused, ("rank in JOIN", u64::from(rank)));
    }
    assert_eq!(
        bad_value(Join::decode(&with(join, 20, 7))),
        ("reserved field", 7)
    );
    let clear_to_send = samples::clear_to_send().encode();
    for (at, max, what) in [
        (32, 2, "element of CLEAR_TO_SEND"),
        (36, 2, "operation of CLEAR_TO_SEND"),
        (40, 3, "mode of CLEAR_TO_SEND"),
    ] {
        for got in [0, max + 1] {
            let refused = bad_value(ClearToSend::decode(&with(clear_to_send.clone(), at, got)));
            assert_eq!(refused, (what, u64::from(got)));
        }
    }
    assert_eq!(
        bad_value(ClearToSend::decode(&with(
            clear_to_send.clone(),
            48,
            u32::MAX
        )))
        .0,
        "first chunk of CLEAR_TO_SEND"
    );
    assert_eq!(
        bad_value(ClearToSend::decode(&with(
            clear_to_send.clone(),
            56 + 16,
            0
        ))),
        ("length of a buffer", 0)
    );
    let data_ready = samples::data_ready().encode();
    assert_eq!(
        bad_value(DataReady::decode(&with(data_ready.clone(), 16, 0))),
        ("DATA_READY buffers", 0)
    );
    for got in [MAX_BUFFERS + 1, u32::MAX] {
        let expected = (u64::from(got), u64::from(MAX_BUFFERS));
        assert_eq!(
            too_large(ClearToSend::decode(&with(clear_to_send.clone(), 52, got))),
            expected
        );
        assert_eq!(
            too_large(DataReady::decode(&with(data_ready.clone(), 16, got))),
            expected
        );
    }
    let abort = samples::abort().encode();
    for cause in [0, 8] {
        let refused = bad_value(Abort::decode(&with(abort.clone(), 16, cause)));
        assert_eq!(refused, ("cause of ABORT", u64::from(cause)));
    }
    let text = String::from_utf8(samples::bootstrap_id().encode()).unwrap();
    for (from, to, what) in [
        ("=2:", "=1:", "version of a bootstrap id, with its length"),
        (
            "0123456789abcdef",
            "123456789abcdef",
            "member of a bootstrap id, with its length",
        ),
        (
            "faro-seat",
            "faro-sofa",
            "first line of a bootstrap id, with its length",
        ),
        (
            ":/row-1:7",
            "",
            "first line of a bootstrap id, with its length",
        ),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_eq!(bad_value(BootstrapId::decode(bad.as_bytes())).0, what);
    }
    let long = text.replacen("/row-1:7", &"r".repeat(257), 1);
    let expected = Err(WireError::TooLarge {
        what: "rack",
        got: 257,
        limit: 256,
    });
    assert_eq!(BootstrapId::decode(long.as_bytes()), expected);
}

#[test]
fn commands_with_bad_fields_are_refused() {
    let removed = samples::command().encode();
    for got in [0, 5] {
        let refused = bad_value(MemberCommand::decode(&with(removed.clone(), 0, got)));
        assert_eq!(refused, ("command", u64::from(got)));
    }
    // The end of an application and a page name no shuffle, and a removal some.
    for command in [2, 3] {
        assert!(MemberCommand::decode(&with(removed.clone(), 0, command)).is_err());
    }
    let none = with(removed[..8].to_vec(), 4, 0);
    assert_eq!(
        bad_value(MemberCommand::decode(&none)),
        ("ids of COMMAND", 0)
    );
    for got in [MAX_COMMAND_IDS + 1, u32::MAX] {
        assert_eq!(
            too_large(MemberCommand::decode(&with(removed.clone(), 4, got))),
            (u64::from(got), u64::from(MAX_COMMAND_IDS))
        );
    }
    let no_int = with(removed, 12, 1 << 31);
    assert_eq!(
        too_large(MemberCommand::decode(&no_int)),
        (1 << 31, i32::MAX as u64)
    );
    let most = MemberCommand::ShufflesRemoved((0..MAX_COMMAND_IDS).collect());
    assert_eq!(MemberCommand::decode(&most.encode()), Ok(most));
}

#[test]
fn commands_that_ask_with_bad_fields_are_refused() {
    let indexes = samples::command_indexes().encode();
    for got in [MAX_COMMAND_IDS + 1, u32::MAX] {
        assert_eq!(
            too_large(MemberCommand::decode(&with(indexes.clone(), 4, got))),
            (u64::from(got), u64::from(MAX_COMMAND_IDS))
        );
    }
    let none = with(indexes[..16].to_vec(), 4, 0);
    assert_eq!(
        bad_value(MemberCommand::decode(&none)),
        ("ids of COMMAND", 0)
    );
    let no_int = with(indexes, 16, 1 << 31);
    assert_eq!(
        too_large(MemberCommand::decode(&no_int)),
        (1 << 31, i32::MAX as u64)
    );
    let busy = samples::command_answer().encode();
    for got in [0, 2, 0x10, 0x17] {
        let refused = bad_value(CommandReply::decode(&with(busy.clone(), 0, got)));
        assert_eq!(refused, ("status of a command", u64::from(got)));
    }
    let content = samples::command_content().encode();
    assert!(CommandReply::decode(&with(content.clone(), 0, 0x12)).is_err());
    let longer = MAX_CONTENT_BYTES + 1;
    assert_eq!(
        too_large(CommandReply::decode(&with(content, 4, longer))),
        (u64::from(longer), u64::from(MAX_CONTENT_BYTES))
    );
    let most = CommandReply::Content(vec![0; MAX_CONTENT_BYTES as usize]);
    assert_eq!(CommandReply::decode(&most.encode()), Ok(most));
}

#[test]
fn the_header_names_what_is_wrong_with_it() {
    let header = samples::header_bytes();
    assert_eq!(
        FrameHeader::parse(&with(header.clone(), 0, 0x5054_5448)),
        Err(WireError::BadMagic { got: 0x5054_5448 })
    );
    let mut other = header.clone();
    other[4] = 6;
    assert_eq!(
        FrameHeader::parse(&other),
        Err(WireError::UnsupportedVersion(VersionGap {
            own: VERSIONS,
            peer: VersionRange::new(6, 6),
        }))
    );
    let mut resealed = with(with(header.clone(), 28, 9), 12, 0);
    let crc = crc32c(&resealed);
    resealed = with(resealed, 12, crc);
    assert_eq!(
        bad_value(FrameHeader::parse(&resealed)),
        ("frame header's reserved field", 9)
    );
    for length in 0..header.len() {
        assert_eq!(
            FrameHeader::parse(&header[..length]),
            Err(WireError::Truncated {
                what: "frame header",
                needed: 32,
                got: length
            })
        );
    }
}

#[test]
fn empty_runs_are_refused() {
    let fetch = samples::fetch().encode();
    assert_eq!(
        bad_value(Fetch::decode(&with(fetch.clone(), 8, 0))),
        ("FETCH blocks", 0)
    );
    assert_eq!(
        bad_value(Fetch::decode(&with(fetch, 16 + 16, 0))),
        ("length of a buffer", 0)
    );
    let more_buffers = samples::more_buffers().encode();
    assert_eq!(
        bad_value(MoreBuffers::decode(&with(more_buffers, 8 + 24 + 16, 0))),
        ("length of a buffer", 0)
    );
    assert_eq!(
        bad_value(MoreBuffers::decode(&[0; 8])),
        ("MORE_BUFFERS buffers", 0)
    );
    assert_eq!(
        bad_value(FetchResponse::decode(&[0; 8])),
        ("FETCH_RESPONSE blocks", 0)
    );
    assert_eq!(
        bad_value(DataWritten::decode(&[0; 8])),
        ("DATA_WRITTEN buffers", 0)
    );
    let last_without_buffers = DataWritten {
        buffers: vec![],
        last: true,
    };
    assert_eq!(
        DataWritten::decode(&last_without_buffers.encode()),
        Ok(last_without_buffers)
    );
    let data_written = samples::data_written().encode();
    assert_eq!(
        bad_value(DataWritten::decode(&with(data_written, 8 + 16 + 4, 0))),
        ("length of a written buffer", 0)
    );
}

#[test]
fn counts_beyond_their_bound_are_refused_before_anything_is_sized_by_them() {
    for got in [MAX_BLOCKS + 1, u32::MAX] {
        let expected = (u64::from(got), u64::from(MAX_BLOCKS));
        assert_eq!(
            too_large(Fetch::decode(&with(samples::fetch().encode(), 8, got))),
            expected
        );
        assert_eq!(
            too_large(FetchResponse::decode(&with(
                samples::fetch_response().encode(),
                0,
                got
            ))),
            expected
        );
    }
    for got in [MAX_BUFFERS + 1, u32::MAX] {
        let expected = (u64::from(got), u64::from(MAX_BUFFERS));
        assert_eq!(
            too_large(Fetch::decode(&with(samples::fetch().encode(), 4, got))),
            expected
        );
        assert_eq!(
            too_large(MoreBuffers::decode(&with(
                samples::more_buffers().encode(),
                0,
                got
            ))),
            expected
        );
        assert_eq!(
            too_large(DataWritten::decode(&with(
                samples::data_written().encode(),
                0,
                got
            ))),
            expected
        );
    }
    let got = MAX_DETAIL_BYTES as u32 + 1;
    assert_eq!(
        too_large(Failed::decode(&with(samples::failed().encode(), 8, got))),
        (u64::from(got), MAX_DETAIL_BYTES as u64)
    );
}

#[test]
fn the_largest_messages_are_accepted() {
    let mut fetch = samples::fetch();
    fetch.blocks = vec![fetch.blocks[0]; MAX_BLOCKS as usize];
    fetch.buffers = vec![fetch.buffers[0]; MAX_BUFFERS as usize];
    assert_eq!(Fetch::decode(&fetch.encode()), Ok(fetch));
    let fetch_response = FetchResponse {
        blocks: vec![BlockEntry::found(1); MAX_BLOCKS as usize],
    };
    assert_eq!(
        FetchResponse::decode(&fetch_response.encode()),
        Ok(fetch_response)
    );
}

#[test]
fn unknown_codes_are_refused_with_their_value() {
    let failed = samples::failed().encode();
    for got in [0, 6, u32::MAX] {
        let expected = ("failure code", u64::from(got));
        assert_eq!(
            bad_value(Failed::decode(&with(failed.clone(), 0, got))),
            expected
        );
    }
    let closing = with(failed, 0, FailureCode::Closing as u32);
    assert_eq!(
        bad_value(Failed::decode(&closing)),
        ("retry of FAILED (its code is not BUSY)", 200)
    );
    let fetch_response = samples::fetch_response().encode();
    assert_eq!(
        bad_value(FetchResponse::decode(&with(fetch_response, 8, 5))),
        ("block status", 5)
    );
    let data_written = samples::data_written().encode();
    assert_eq!(
        bad_value(DataWritten::decode(&with(data_written, 4, 2))),
        ("DATA_WRITTEN last", 2)
    );
}

#[test]
fn lengths_of_a_fetch_response_must_be_possible() {
    let mut missing = BlockEntry::missing(BlockStatus::BadRange);
    missing.length = 3.into();
    let decode =
        |blocks: Vec<BlockEntry>| FetchResponse::decode(&FetchResponse { blocks }.encode());
    assert_eq!(
        bad_value(decode(vec![missing])),
        ("length of a missing block", 3)
    );
    let half = 1 << 62;
    let sum = "length of a block, summed with those before";
    assert!(decode(vec![BlockEntry::found(half), BlockEntry::found(half - 1)]).is_ok());
    for last in [half, u64::MAX] {
        let blocks = vec![BlockEntry::found(half), BlockEntry::found(last)];
        assert_eq!(bad_value(decode(blocks)), (sum, last));
    }
}

#[test]
fn text_must_be_utf_8() {
    let mut failed = samples::failed().encode();
    failed[12] = 0xff;
    assert_eq!(
        Failed::decode(&failed),
        Err(WireError::NotUtf8 {
            what: "FAILED detail"
        })
    );
    assert_eq!(
        Card::decode(&[0xff]),
        Err(WireError::NotUtf8 {
            what: "endpoint card"
        })
    );
}

/// Returns `text` with its checksum line.
fn sealed(text: &str) -> Vec<u8> {
    format!("{text}crc={:08x}\n", crc32c(text.as_bytes())).into_bytes()
}

const ENDPOINT: &str = "endpoint=5f0ca1b2c3d4e5f60718293a4b5c6d7e\n";
const SECRET: &str = "secret=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n";

#[test]
fn a_card_of_another_version_is_told_from_a_broken_one() {
    let newer = Card::decode(b"faro-card=3\nwhatever comes then");
    assert_eq!(bad_value(newer), ("endpoint card version", 3));
    let mut broken = samples::card().encode();
    broken[20] ^= 1;
    assert!(matches!(
        Card::decode(&broken),
        Err(WireError::BadChecksum { .. })
    ));
}

#[test]
fn a_card_needs_its_lines() {
    let full = format!("faro-card=2\n{ENDPOINT}{SECRET}name=x\n");
    assert!(Card::decode(&sealed(&full)).is_ok());
    for line in ["faro-card=2\n", ENDPOINT, SECRET, "name=x\n"] {
        let without = sealed(&full.replace(line, ""));
        let Err(WireError::Truncated { what, .. }) = Card::decode(&without) else {
            panic!("accepted without {line}");
        };
        assert!(what.contains("line"), "{what}");
    }
    assert!(matches!(
        Card::decode(full.as_bytes()),
        Err(WireError::Truncated { .. })
    ));
}

#[test]
fn a_card_skips_what_it_does_not_know() {
    let text = format!(
        "faro-card=2\n{ENDPOINT}{SECRET}colour=blue\nno key\nname=a=b crc=00000000\naddress=nowhere\n\
         address=tcp://h:1\n"
    );
    let card = Card::decode(&sealed(&text)).unwrap();
    assert_eq!(card.name, "a=b crc=00000000");
    assert_eq!(card.addresses.len(), 1);
    assert_eq!(card.addresses[0].location, "h:1");
}

#[test]
fn a_card_has_one_spelling_of_its_numbers() {
    let short = format!("faro-card=2\n{}name=x\n", "endpoint=5f\n");
    assert!(matches!(
        Card::decode(&sealed(&short)),
        Err(WireError::BadValue { .. })
    ));
    for secret in [
        SECRET.replace("ab", "AB"),
        SECRET.replace("0123", ""),
        SECRET.replace("89", "+9"),
    ] {
        let text = format!("faro-card=2\n{ENDPOINT}{secret}name=x\n");
        assert!(matches!(
            Card::decode(&sealed(&text)),
            Err(WireError::BadValue { .. })
        ));
    }
    let upper = String::from_utf8(samples::card().encode()).unwrap();
    let at = upper.rfind("crc=").unwrap() + 4;
    let upper = format!("{}{}", &upper[..at], upper[at..].to_uppercase());
    assert!(
        upper.as_bytes() != samples::card().encode(),
        "the sample's checksum has letters"
    );
    assert!(matches!(
        Card::decode(upper.as_bytes()),
        Err(WireError::BadValue { .. })
    ));
}

#[test]
fn cards_and_names_are_bounded() {
    let got = MAX_CARD_BYTES + 1;
    assert_eq!(
        too_large(Card::decode(&vec![b'x'; got])),
        (got as u64, MAX_CARD_BYTES as u64)
    );
    let long = "é".repeat(MAX_NAME_BYTES);
    let text = format!("faro-card=2\n{ENDPOINT}{SECRET}name={long}\n");
    assert_eq!(
        too_large(Card::decode(&sealed(&text))),
        (long.len() as u64, MAX_NAME_BYTES as u64)
    );
    let card = Card {
        name: format!("x{long}"),
        ..samples::card()
    };
    let got = Card::decode(&card.encode()).unwrap();
    assert_eq!(
        got.name,
        format!("x{}", "é".repeat((MAX_NAME_BYTES - 1) / 2))
    );
    let broken = Card {
        name: "two\r\nlines".to_owned(),
        ..samples::card()
    };
    assert_eq!(Card::decode(&broken.encode()).unwrap().name, "two  lines");
}

#[test]
fn checksums_are_crc_32c() {
    // RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    let ascending: Vec<u8> = (0..32).collect();
    assert_eq!(crc32c(&ascending), 0x46dd_794e);
    let header = samples::header();
    assert_eq!(header.as_bytes().len(), 32);
}
