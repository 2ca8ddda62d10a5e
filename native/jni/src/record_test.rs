//! A record's bytes: those of `tests/golden/record_*.hex`, which Java reads as well, and those that
//! the diagram promises for any record.

use crate::record::{CompletionRecord, SlabRun};
use faro_wire::codes::{FabricCode, FetchErrorCode};
use faro_wire::message::BlockEntry;
use faro_wire::BlockStatus;
use proptest::prelude::*;
use proptest::sample::select;

/// Returns the bytes of a file of hex digits, white space, and comments from `#` to the end of a
/// line.
fn golden(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../tests/golden/{name}.hex",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace())
        .map(|byte| u8::from_str_radix(byte, 16).unwrap_or_else(|e| panic!("{path}: {byte}: {e}")))
        .collect()
}

fn encoded(record: &CompletionRecord<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(&mut out);
    out
}

#[test]
fn delivered_blocks_are_the_golden_bytes() {
    let record = CompletionRecord {
        error: None,
        request: 0x0123_4567_89ab_cdef,
        first_block: 2,
        block_count: 6,
        batch: 0x7fff_0000_1234_5678,
        fabric: FabricCode(2),
        last: true,
        scarce: false,
        slices: &[
            SlabRun {
                slab: 0,
                offset: 0x00fc_0000,
                length: 0x4_0000,
            },
            SlabRun {
                slab: 3,
                offset: 4096,
                length: 17,
            },
        ],
        blocks: &[
            BlockEntry::found(0x1_0000_0001),
            BlockEntry::found(0),
            BlockEntry::missing(BlockStatus::UnknownOutput),
            BlockEntry::missing(BlockStatus::BadRange),
            BlockEntry::missing(BlockStatus::BadIndex),
            BlockEntry::missing(BlockStatus::Unreadable),
        ],
        detail: "",
    };
    assert_eq!(encoded(&record), golden("record_delivered"));
}

#[test]
fn an_error_is_the_golden_bytes() {
    let record = CompletionRecord {
        error: Some(FetchErrorCode::TimedOut),
        request: 42,
        first_block: 10,
        block_count: 990,
        batch: 0,
        fabric: FabricCode(1),
        last: true,
        scarce: false,
        slices: &[],
        blocks: &[],
        detail: "no answer in 30000 ms – executor-3",
    };
    assert_eq!(encoded(&record), golden("record_error"));
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

proptest! {
    #[test]
    fn a_record_is_what_its_diagram_says(
        error in prop::option::of(select(&[FetchErrorCode::Unreachable, FetchErrorCode::Cancelled][..])),
        (request, batch) in any::<(u64, u64)>(),
        first_block in any::<u32>(),
        fabric in (0..=3_u32).prop_map(FabricCode),
        last in any::<bool>(),
        scarce in any::<bool>(),
        slices in prop::collection::vec(any::<(u32, u32, u32)>(), 0..20),
        blocks in prop::collection::vec(entry(), 0..20),
        detail in ".{0,40}",
        before in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let slices: Vec<_> = slices
            .into_iter()
            .map(|(slab, offset, length)| SlabRun { slab, offset, length })
            .collect();
        let record = CompletionRecord {
            error, request, first_block, block_count: blocks.len() as u32, batch, fabric, last, scarce,
            slices: &slices, blocks: &blocks, detail: &detail,
        };
        let mut out = before.clone();
        record.encode(&mut out);
        prop_assert_eq!(&out[..before.len()], &before[..], "appends");
        let bytes = &out[before.len()..];
        prop_assert_eq!(bytes.len(), record.encoded_bytes());
        prop_assert_eq!(bytes.len() % 8, 0);

        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        prop_assert_eq!(u32_at(0) as usize, bytes.len());
        prop_assert_eq!(u32_at(4), error.map_or(0, |e| e as u32));
        prop_assert_eq!(u64_at(8), request);
        prop_assert_eq!((u32_at(16), u32_at(20)), (first_block, blocks.len() as u32));
        prop_assert_eq!(u64_at(24), batch);
        prop_assert_eq!((u32_at(32), u32_at(36)), (slices.len() as u32, fabric.0));
        prop_assert_eq!((u32_at(40), u32_at(44)), (u32::from(last) + 2 * u32::from(scarce), detail.len() as u32));
        let mut at = 48;
        for slice in &slices {
            let got = (u32_at(at), u32_at(at + 4), u32_at(at + 8), u32_at(at + 12));
            prop_assert_eq!(got, (slice.slab, slice.offset, slice.length, 0));
            at += 16;
        }
        for block in &blocks {
            let got = (u32_at(at), u32_at(at + 4), u64_at(at + 8));
            prop_assert_eq!(got, (block.status.get(), 0, block.length.get()));
            at += 16;
        }
        prop_assert_eq!(&bytes[at..at + detail.len()], detail.as_bytes());
        prop_assert!(bytes[at + detail.len()..].iter().all(|byte| *byte == 0));
    }
}
