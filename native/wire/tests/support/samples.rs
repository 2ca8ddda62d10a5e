//! One value of every layout, the same ones that `tests/golden/*.hex` spell out.

use faro_wire::message::{
    Abort, AbortCause, BlockEntry, ClearToSend, ClearToSendHead, CommandReply, CommandStatus,
    DataReady, DataWritten, Failed, FailureCode, Fetch, FetchResponse, Join, MemberCommand,
    MoreBuffers, OfferedSlice, ReadOffer, RemoteBuffer, WrittenBuffer,
};
use faro_wire::{
    kind, BlockId, BlockStatus, BootstrapId, Card, CardAddress, FrameHeader, OutputId,
};
use zerocopy::IntoBytes;

pub fn block_ids() -> Vec<BlockId> {
    // (map, shuffle, start, end)
    [
        (0x0102_0304_0506_0708, 7, 3, 4),
        (0, 0, 0, 1),
        (i64::MAX, u32::MAX, 0, u32::MAX),
        (-1, 1, 199, 200),
    ]
    .into_iter()
    .map(
        |(map_id, shuffle_id, start, end): (i64, u32, u32, u32)| BlockId {
            map_id: map_id.into(),
            shuffle_id: shuffle_id.into(),
            start_reduce: start.into(),
            end_reduce: end.into(),
            piece: 0.into(),
        },
    )
    .collect()
}

pub fn buffers() -> Vec<RemoteBuffer> {
    [
        (0x1122_3344_5566_7788, 0x0001_0000_0000, 0x4_0000),
        (9, 4096, 1),
    ]
    .into_iter()
    .map(|(key, offset, length): (u64, u64, u32)| RemoteBuffer {
        key: key.into(),
        offset: offset.into(),
        length: length.into(),
        reserved: 0.into(),
    })
    .collect()
}

pub fn fetch() -> Fetch {
    // A range of outputs as well: three steps of two, then one back.
    let range = [40, 42, 44, 46, 45].map(|map_id: i64| BlockId {
        map_id: map_id.into(),
        shuffle_id: 9.into(),
        start_reduce: 5.into(),
        end_reduce: 8.into(),
        piece: 3.into(),
    });
    Fetch {
        deadline_ms: 30_000,
        writes_only: false,
        reader_verifies: false,
        buffers: buffers(),
        blocks: [block_ids(), range.to_vec()].concat(),
    }
}

pub fn fetch_response() -> FetchResponse {
    FetchResponse { blocks: entries() }
}

pub fn entries() -> Vec<BlockEntry> {
    vec![
        BlockEntry::found(0x1_0000_0001),
        BlockEntry::found(0),
        BlockEntry::missing(BlockStatus::UnknownOutput),
        BlockEntry::missing(BlockStatus::BadRange),
        BlockEntry::missing(BlockStatus::BadIndex),
        BlockEntry::missing(BlockStatus::Unreadable),
    ]
}

pub fn more_buffers() -> MoreBuffers {
    MoreBuffers { buffers: buffers() }
}

pub fn read_offer() -> ReadOffer {
    let slice = |key: u64, slot: u32, version: u64| OfferedSlice {
        key: key.into(),
        offset: 0x0001_0000_1000.into(),
        length: 0x4_0000.into(),
        slot: slot.into(),
        version: version.into(),
        crc: 0xdead_beef.into(),
        reserved: 0.into(),
    };
    ReadOffer {
        versions: RemoteBuffer {
            key: 0x99.into(),
            offset: 0x2000.into(),
            length: 4096.into(),
            reserved: 0.into(),
        },
        slices: vec![slice(0x77, 0, 2), slice(0x78, 511, u64::MAX - 1)],
    }
}

pub fn data_written() -> DataWritten {
    let buffers = [(0, 0x4_0000, 0xdead_beef), (1, 1, 1)]
        .into_iter()
        .map(|(buffer, length, crc): (u32, u32, u32)| WrittenBuffer {
            buffer: buffer.into(),
            length: length.into(),
            crc: crc.into(),
            unsummed: 0.into(),
        })
        .collect();
    DataWritten {
        buffers,
        last: true,
    }
}

pub fn failed() -> Failed {
    Failed {
        code: FailureCode::Busy,
        retry_ms: 200,
        detail: "256 requests are open – try later".to_owned(),
    }
}

pub fn join() -> Join {
    Join {
        from_member: 0x0123_4567_89ab_cdef.into(),
        from_rank: 2.into(),
        to_rank: 5.into(),
        ranks: 9.into(),
        reserved: 0.into(),
    }
}

pub fn clear_to_send() -> ClearToSend {
    let buffers = buffers();
    ClearToSend {
        head: ClearToSendHead {
            round: 41.into(),
            epoch: 0x5eed.into(),
            elements: 0x1_0000_0001.into(),
            step: 3.into(),
            from_rank: 5.into(),
            element: 2.into(),
            operation: 1.into(),
            mode: 1.into(),
            group: 4.into(),
            first_chunk: 7.into(),
            buffers: (buffers.len() as u32).into(),
        },
        buffers,
    }
}

pub fn data_ready() -> DataReady {
    DataReady {
        round: 41,
        step: 3,
        from_rank: 2,
        buffers: data_written().buffers,
    }
}

pub fn abort() -> Abort {
    Abort {
        round: 41,
        from_rank: 2,
        culprit: 5,
        cause: AbortCause::Mismatch,
        detail: "rank 5 has 100 floats – rank 2 has 99".to_owned(),
    }
}

pub fn command() -> MemberCommand {
    MemberCommand::ShufflesRemoved(vec![0, 7, 0x7fff_ffff])
}

pub fn command_page() -> MemberCommand {
    MemberCommand::SendPage(0x0102_0304_0506_0708)
}

pub fn command_indexes() -> MemberCommand {
    let output = |shuffle_id, map_id| OutputId { shuffle_id, map_id };
    MemberCommand::SendIndexes {
        outputs: vec![output(7, 0x0102_0304_0506_0708), output(0x7fff_ffff, -1)],
        from: 0x10_0000,
    }
}

pub fn command_answer() -> CommandReply {
    CommandReply::Status(CommandStatus::Busy)
}

pub fn command_content() -> CommandReply {
    CommandReply::Content(b"page".to_vec())
}

pub fn bootstrap_id() -> BootstrapId {
    BootstrapId {
        member: 0x0123_4567_89ab_cdef,
        rack: "/row-1:7".to_owned(),
        card: card(),
    }
}

pub fn card() -> Card {
    let address = |scheme: &str, location: &str| CardAddress {
        scheme: scheme.to_owned(),
        location: location.to_owned(),
    };
    Card {
        endpoint: 0x5f0c_a1b2_c3d4_e5f6_0718_293a_4b5c_6d7e,
        name: "executor-3".to_owned(),
        addresses: vec![
            address("shm", "0123456789abcdef/faro-4711"),
            address("tcp", "10.0.0.7:41234"),
        ],
        secret: faro_secure::Secret::new([0xa5; 32]),
    }
}

/// Returns the header of a `FETCH` whose body is [`fetch`].
pub fn header() -> FrameHeader {
    FrameHeader::for_body(kind::FETCH, 0x0123_4567_89ab_cdef, &fetch().encode())
}

/// Returns each file's name in `tests/golden`, and its bytes.
pub fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("block_ids", block_ids().as_bytes().to_vec()),
        ("card", card().encode()),
        ("frame_header", header().as_bytes().to_vec()),
        ("bootstrap_id", bootstrap_id().encode()),
        ("message_more_buffers", more_buffers().encode()),
        ("message_failed", failed().encode()),
        ("message_abort", abort().encode()),
        ("message_command", command().encode()),
        ("message_command_page", command_page().encode()),
        ("message_command_indexes", command_indexes().encode()),
        ("message_command_answer", command_answer().encode()),
        ("message_command_content", command_content().encode()),
        ("message_fetch", fetch().encode()),
        ("message_clear_to_send", clear_to_send().encode()),
        ("message_join", join().encode()),
        ("message_data_ready", data_ready().encode()),
        ("message_fetch_response", fetch_response().encode()),
        ("message_read_offer", read_offer().encode()),
        ("message_data_written", data_written().encode()),
    ]
}

pub fn header_bytes() -> Vec<u8> {
    header().as_bytes().to_vec()
}
