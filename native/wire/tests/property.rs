//! Round trips, truncations, flipped bits; for values of every layout.

mod support;

use faro_secure::Secret;
use faro_wire::card::{MAX_CARD_BYTES, MAX_NAME_BYTES};
use faro_wire::header::HEADER_BYTES;
use faro_wire::message::{
    Abort, AbortCause, BlockEntry, ClearToSend, ClearToSendHead, CommandReply, CommandStatus,
    DataReady, DataWritten, Failed, FailureCode, Fetch, FetchResponse, Join, MemberCommand,
    MoreBuffers, OfferedSlice, ReadOffer, RemoteBuffer, WrittenBuffer, MAX_DETAIL_BYTES,
    MAX_OFFERED_SLICE_BYTES, VERSION_BYTES,
};
use faro_wire::{
    BlockId, BlockStatus, BootstrapId, Card, CardAddress, FrameHeader, OutputId, WireError,
};
use proptest::prelude::*;
use proptest::sample::select;
use support::decoders;
use zerocopy::IntoBytes;

prop_compose! {
    fn block_id()(
        map in any::<i64>(), shuffle in any::<u32>(), start in any::<u32>(), end in any::<u32>(),
        piece in prop_oneof![Just(0), any::<u32>()],
    ) -> BlockId {
        BlockId {
            map_id: map.into(),
            shuffle_id: shuffle.into(),
            start_reduce: start.into(),
            end_reduce: end.into(),
            piece: piece.into(),
        }
    }
}

prop_compose! {
    /// Generates map outputs of one range of partitions, some of them evenly spaced.
    fn range()(
        first in block_id(),
        steps in prop::collection::vec((prop_oneof![Just(1), -4..9_i64, any::<i64>()], 1..6_usize), 0..8),
    ) -> Vec<BlockId> {
        let mut blocks = vec![first];
        for distance in steps.into_iter().flat_map(|(distance, times)| vec![distance; times]) {
            let last = blocks[blocks.len() - 1];
            blocks.push(BlockId {
                map_id: last.map_id.get().wrapping_add(distance).into(),
                ..last
            });
        }
        blocks
    }
}

prop_compose! {
    fn buffer()(key in any::<u64>(), offset in any::<u64>(), length in 1..=u32::MAX) -> RemoteBuffer {
        RemoteBuffer {
            key: key.into(),
            // Its end is an address as well.
            offset: offset.min(u64::MAX - u64::from(length)).into(),
            length: length.into(),
            reserved: 0.into(),
        }
    }
}

prop_compose! {
    /// What a member of a team has written always has a checksum.
    fn summed_buffer()(buffer in any::<u32>(), length in 1..=u32::MAX, crc in any::<u32>()) -> WrittenBuffer {
        WrittenBuffer { buffer: buffer.into(), length: length.into(), crc: crc.into(), unsummed: 0.into() }
    }
}

prop_compose! {
    fn written_buffer()(buffer in any::<u32>(), length in 1..=u32::MAX, sum in any::<Option<u32>>()) -> WrittenBuffer {
        WrittenBuffer {
            buffer: buffer.into(),
            length: length.into(),
            crc: sum.unwrap_or(0).into(),
            unsummed: u32::from(sum.is_none()).into(),
        }
    }
}

fn entry() -> impl Strategy<Value = BlockEntry> {
    const MISSING: [BlockStatus; 4] = [
        BlockStatus::UnknownOutput,
        BlockStatus::BadRange,
        BlockStatus::BadIndex,
        BlockStatus::Unreadable,
    ];
    prop_oneof![
        (0_u64..1 << 50).prop_map(BlockEntry::found),
        select(&MISSING[..]).prop_map(BlockEntry::missing),
    ]
}

/// Generates a code, and the time after which to ask again.
fn failure() -> impl Strategy<Value = (FailureCode, u32)> {
    (1_u32..=5, any::<u32>()).prop_map(|(code, retry_ms)| {
        match FailureCode::try_from(code).expect("0x11 to 0x15 are codes") {
            FailureCode::Busy => (FailureCode::Busy, retry_ms),
            other => (other, 0),
        }
    })
}

prop_compose! {
    fn fetch()(
        deadline_ms in any::<u32>(),
        buffers in prop::collection::vec(buffer(), 0..20),
        ranges in prop::collection::vec(range(), 1..10),
    ) -> Fetch {
        Fetch { deadline_ms, writes_only: deadline_ms % 2 == 1, reader_verifies: deadline_ms % 4 > 1, buffers, blocks: ranges.concat() }
    }
}

fn data_written() -> impl Strategy<Value = DataWritten> {
    prop_oneof![
        prop::collection::vec(written_buffer(), 1..20).prop_map(|buffers| DataWritten {
            buffers,
            last: false
        }),
        prop::collection::vec(written_buffer(), 0..20).prop_map(|buffers| DataWritten {
            buffers,
            last: true
        }),
    ]
}

prop_compose! {
    fn slice(slots: u32)(
        (key, offset, version) in any::<(u64, u64, u64)>(),
        length in 1..=MAX_OFFERED_SLICE_BYTES, slot in 0..slots, crc in any::<u32>(),
    ) -> OfferedSlice {
        OfferedSlice {
            key: key.into(),
            offset: offset.min(u64::MAX - u64::from(length)).into(),
            length: length.into(),
            slot: slot.into(),
            version: (version & !1).into(),
            crc: crc.into(),
            reserved: 0.into(),
        }
    }
}

prop_compose! {
    fn read_offer()(slots in 1_u32..10_000)(
        (key, offset) in any::<(u64, u32)>(),
        length in Just(slots * VERSION_BYTES),
        slices in prop::collection::vec(slice(slots), 1..20),
    ) -> ReadOffer {
        let versions = RemoteBuffer {
            key: key.into(),
            offset: u64::from(offset).into(),
            length: length.into(),
            reserved: 0.into(),
        };
        ReadOffer { versions, slices }
    }
}

prop_compose! {
    fn join()(member in any::<u64>(), ranks in 1..=u32::MAX, from in any::<u32>(), to in any::<u32>()) -> Join {
        Join {
            from_member: member.into(),
            from_rank: (from % ranks).into(),
            to_rank: (to % ranks).into(),
            ranks: ranks.into(),
            reserved: 0.into(),
        }
    }
}

prop_compose! {
    fn clear_to_send()(
        (round, epoch, elements) in any::<(u64, u64, u64)>(),
        (step, from_rank, group) in any::<(u32, u32, u32)>(),
        (element, operation, mode) in (1_u32..=2, 1_u32..=2, 1_u32..=3),
        first_chunk in 0_u32..u32::MAX - 20,
        buffers in prop::collection::vec(buffer(), 0..20),
    ) -> ClearToSend {
        let head = ClearToSendHead {
            round: round.into(),
            epoch: epoch.into(),
            elements: elements.into(),
            step: step.into(),
            from_rank: from_rank.into(),
            element: element.into(),
            operation: operation.into(),
            mode: mode.into(),
            group: group.into(),
            first_chunk: first_chunk.into(),
            buffers: (buffers.len() as u32).into(),
        };
        ClearToSend { head, buffers }
    }
}

prop_compose! {
    fn data_ready()(
        round in any::<u64>(), step in any::<u32>(), from_rank in any::<u32>(),
        buffers in prop::collection::vec(summed_buffer(), 1..20),
    ) -> DataReady {
        DataReady { round, step, from_rank, buffers }
    }
}

prop_compose! {
    fn abort()(
        round in any::<u64>(), from_rank in any::<u32>(), culprit in any::<u32>(),
        cause in 1_u32..=7, detail in ".{0,60}",
    ) -> Abort {
        let cause = AbortCause::try_from(cause).expect("1 to 7 are causes");
        Abort { round, from_rank, culprit, cause, detail }
    }
}

fn command() -> impl Strategy<Value = MemberCommand> {
    prop_oneof![
        Just(MemberCommand::ApplicationEnded),
        prop::collection::vec(0..1_u32 << 31, 1..60).prop_map(MemberCommand::ShufflesRemoved),
        any::<u64>().prop_map(MemberCommand::SendPage),
        (
            prop::collection::vec((0..1_u32 << 31, any::<i64>()), 1..60),
            any::<u64>()
        )
            .prop_map(|(outputs, from)| {
                let output = |(shuffle_id, map_id)| OutputId { shuffle_id, map_id };
                let outputs = outputs.into_iter().map(output).collect();
                MemberCommand::SendIndexes { outputs, from }
            }),
    ]
}

fn command_answer() -> impl Strategy<Value = CommandReply> {
    prop_oneof![
        (0x11_u32..=0x15).prop_map(|code| {
            CommandReply::Status(CommandStatus::try_from(code).expect("0x11 to 0x15 are codes"))
        }),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(CommandReply::Content),
    ]
}

prop_compose! {
    fn card()(
        endpoint in any::<u128>(),
        name in "[^\r\n]{0,60}",
        addresses in prop::collection::vec(("[a-z]{1,8}", "[^\r\n]{0,60}"), 0..6),
        secret in any::<[u8; 32]>(),
    ) -> Card {
        let addresses = addresses
            .into_iter()
            .map(|(scheme, location)| CardAddress { scheme, location })
            .collect();
        Card { endpoint, name, addresses, secret: Secret::new(secret) }
    }
}

/// A decoder of one message that keeps only the error.
type Check = fn(&[u8]) -> Result<(), WireError>;

/// Generates encoded messages of every kind, each with its decoder.
fn any_message() -> impl Strategy<Value = (Vec<u8>, Check)> {
    prop_oneof![
        fetch().prop_map(|m| (m.encode(), (|b: &[u8]| Fetch::decode(b).map(drop)) as Check)),
        prop::collection::vec(entry(), 1..60).prop_map(|blocks| {
            (
                FetchResponse { blocks }.encode(),
                (|b: &[u8]| FetchResponse::decode(b).map(drop)) as Check,
            )
        }),
        prop::collection::vec(buffer(), 1..20).prop_map(|buffers| {
            (
                MoreBuffers { buffers }.encode(),
                (|b: &[u8]| MoreBuffers::decode(b).map(drop)) as Check,
            )
        }),
        data_written().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| DataWritten::decode(b).map(drop)) as Check
        )),
        read_offer().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| ReadOffer::decode(b).map(drop)) as Check
        )),
        join().prop_map(|m| (m.encode(), (|b: &[u8]| Join::decode(b).map(drop)) as Check)),
        clear_to_send().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| ClearToSend::decode(b).map(drop)) as Check
        )),
        data_ready().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| DataReady::decode(b).map(drop)) as Check
        )),
        abort().prop_map(|m| (m.encode(), (|b: &[u8]| Abort::decode(b).map(drop)) as Check)),
        command().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| MemberCommand::decode(b).map(drop)) as Check
        )),
        command_answer().prop_map(|m| (
            m.encode(),
            (|b: &[u8]| CommandReply::decode(b).map(drop)) as Check
        )),
        (failure(), ".{0,60}").prop_map(|((code, retry_ms), detail)| {
            (
                Failed {
                    code,
                    retry_ms,
                    detail,
                }
                .encode(),
                (|b: &[u8]| Failed::decode(b).map(drop)) as Check,
            )
        }),
    ]
}

/// Generates one to three different bits of `length` bytes: CRC-32C detects that many at any length
/// here.
fn bits(length: usize) -> impl Strategy<Value = std::collections::BTreeSet<usize>> {
    prop::collection::btree_set(0..length * 8, 1..=3)
}

fn flip(bytes: &mut [u8], bits: &std::collections::BTreeSet<usize>) {
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

proptest! {
    #[test]
    fn fetch_makes_the_round_trip(message in fetch()) {
        prop_assert_eq!(Fetch::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn fetch_response_makes_the_round_trip(blocks in prop::collection::vec(entry(), 1..200)) {
        let message = FetchResponse { blocks };
        prop_assert_eq!(FetchResponse::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn more_buffers_makes_the_round_trip(buffers in prop::collection::vec(buffer(), 1..200)) {
        let message = MoreBuffers { buffers };
        prop_assert_eq!(MoreBuffers::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn data_written_makes_the_round_trip(message in data_written()) {
        prop_assert_eq!(DataWritten::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn read_offer_makes_the_round_trip(message in read_offer()) {
        prop_assert_eq!(ReadOffer::decode(&message.encode()), Ok(message));
    }

    #[test]
    fn messages_of_collectives_make_the_round_trip(
        join in join(), clear_to_send in clear_to_send(), data_ready in data_ready(), abort in abort(),
    ) {
        prop_assert_eq!(Join::decode(&join.encode()), Ok(join));
        prop_assert_eq!(ClearToSend::decode(&clear_to_send.encode()), Ok(clear_to_send));
        prop_assert_eq!(DataReady::decode(&data_ready.encode()), Ok(data_ready));
        prop_assert_eq!(Abort::decode(&abort.encode()), Ok(abort));
    }

    #[test]
    fn commands_make_the_round_trip(command in command(), answer in command_answer()) {
        prop_assert_eq!(MemberCommand::decode(&command.encode()), Ok(command));
        prop_assert_eq!(CommandReply::decode(&answer.encode()), Ok(answer));
    }

    #[test]
    fn a_bootstrap_id_makes_the_round_trip(member in any::<u64>(), rack in "[^\n]{0,60}", card in card()) {
        let bootstrap_id = BootstrapId { member, rack, card };
        let card = bootstrap_id.card.encode();
        prop_assume!(card.len() <= MAX_CARD_BYTES && bootstrap_id.card.name.len() <= MAX_NAME_BYTES);
        prop_assert_eq!(BootstrapId::decode(&bootstrap_id.encode()), Ok(bootstrap_id));
    }

    #[test]
    fn failed_makes_the_round_trip_up_to_its_bound(
        (code, retry_ms) in failure(),
        detail in ".{0,1500}",
    ) {
        let failed = Failed { code, retry_ms, detail: detail.clone() };
        let got = Failed::decode(&failed.encode()).unwrap();
        prop_assert_eq!((got.code, got.retry_ms), (code, retry_ms));
        prop_assert!(detail.starts_with(&got.detail));
        if detail.len() <= MAX_DETAIL_BYTES {
            prop_assert_eq!(got.detail, detail);
        } else {
            prop_assert!(got.detail.len() <= MAX_DETAIL_BYTES);
            prop_assert!(got.detail.len() + 4 > MAX_DETAIL_BYTES, "cut within a character at most");
        }
    }

    #[test]
    fn card_makes_the_round_trip(card in card()) {
        let bytes = card.encode();
        prop_assume!(bytes.len() <= MAX_CARD_BYTES && card.name.len() <= MAX_NAME_BYTES);
        prop_assert_eq!(Card::decode(&bytes), Ok(card));
    }

    #[test]
    fn header_makes_the_round_trip(
        kind in any::<u8>(), flags in any::<u16>(), id in any::<u64>(), length in any::<u32>(),
        crc in any::<u32>(), tail in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let header = FrameHeader::sealed(kind, flags, id, length, crc);
        prop_assert_eq!(
            (header.kind, header.flags.get(), header.id.get(), header.length.get()),
            (kind, flags, id, length)
        );
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(tail);
        prop_assert_eq!(FrameHeader::parse(&bytes), Ok(header), "whatever follows it");
    }

    #[test]
    fn a_message_cut_anywhere_is_truncated((bytes, decode) in any_message()) {
        prop_assert_eq!(decode(&bytes), Ok(()));
        for length in 0..bytes.len() {
            let cut = decode(&bytes[..length]);
            prop_assert!(
                matches!(cut, Err(WireError::Truncated { .. })),
                "{} of {} bytes: {:?}", length, bytes.len(), cut
            );
        }
    }

    #[test]
    fn a_message_with_more_behind_it_is_refused(
        (mut bytes, decode) in any_message(),
        extra in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        bytes.extend(&extra);
        let refused = match decode(&bytes) {
            Err(WireError::Trailing { extra, .. }) => extra,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(refused, extra.len());
    }

    #[test]
    fn a_card_cut_anywhere_is_refused(card in card()) {
        let bytes = card.encode();
        prop_assume!(bytes.len() <= MAX_CARD_BYTES);
        for length in 0..bytes.len() {
            prop_assert!(Card::decode(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
    }

    #[test]
    fn flipped_bits_of_a_header_are_noticed(
        kind in any::<u8>(), flags in any::<u16>(), id in any::<u64>(), length in any::<u32>(),
        crc in any::<u32>(), bits in bits(HEADER_BYTES),
    ) {
        let mut bytes = FrameHeader::sealed(kind, flags, id, length, crc).as_bytes().to_vec();
        flip(&mut bytes, &bits);
        prop_assert!(FrameHeader::parse(&bytes).is_err());
    }

    #[test]
    fn flipped_bits_of_a_body_are_noticed(
        (mut body, bits) in prop::collection::vec(any::<u8>(), 1..4096)
            .prop_flat_map(|body| { let bits = bits(body.len()); (Just(body), bits) }),
    ) {
        let header = FrameHeader::for_body(1, 2, &body);
        prop_assert_eq!(header.check_body(&body), Ok(()));
        flip(&mut body, &bits);
        let noticed = matches!(header.check_body(&body), Err(WireError::BadChecksum { .. }));
        prop_assert!(noticed);
    }

    #[test]
    fn a_flipped_bit_of_a_card_is_noticed(card in card()) {
        let mut bytes = card.encode();
        prop_assume!(bytes.len() <= MAX_CARD_BYTES);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Card::decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (_, decode) in decoders::ALL {
            decode(&bytes);
        }
    }
}
