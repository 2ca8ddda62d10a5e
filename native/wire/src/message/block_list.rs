//! The blocks of a `FETCH`, as ranges: the same partitions of many map outputs.
//!
//! ```text
//!  range   shuffle, start_reduce, end_reduce, piece, first map, outputs (n), then steps until n outputs are named
//!  step    distance from one map id to the next, how many times in a row
//! ```
//! All are variable-length integers (seven bits a byte, lowest first), signed ones zigzag-coded, as in Protocol Buffers.
//! The map outputs of one server whose ids are evenly spaced take one step, whatever their number; other ids take
//! two to three bytes each. A list of unrelated blocks is a list of ranges of one output each.

use super::body::BodyReader;
use crate::block::BlockId;
use crate::WireError;
use integer_encoding::VarInt;

/// Maximum bytes that one block takes: as its own range.
pub(super) const MAX_BYTES_PER_BLOCK: usize = 5 + 5 + 5 + 5 + 10 + 3;

/// Appends `blocks`, in their order.
pub(super) fn put(out: &mut Vec<u8>, blocks: &[BlockId]) {
    let same_range = |a: &BlockId, b: &BlockId| partitions(a) == partitions(b);
    for range in blocks.chunk_by(same_range) {
        for field in partitions(&range[0]) {
            put_var(out, u64::from(field));
        }
        put_var(out, range[0].map_id.get());
        put_var(out, range.len() as u64);
        let distances: Vec<i64> = range.windows(2).map(distance).collect();
        for step in distances.chunk_by(|a, b| a == b) {
            put_var(out, step[0]);
            put_var(out, step.len() as u64);
        }
    }
}

/// Reads `count` blocks, named as [`put`] names them and in no other way: equal requests are equal bytes.
pub(super) fn read(body: &mut BodyReader<'_>, count: usize) -> Result<Vec<BlockId>, WireError> {
    let received = body.rest();
    let blocks = ranges(body, count)?;
    let mut canonical = Vec::with_capacity(received.len());
    put(&mut canonical, &blocks);
    if received.starts_with(&canonical) && received.len() - canonical.len() == body.rest().len() {
        return Ok(blocks);
    }
    Err(WireError::BadValue {
        what: "ranges that could be fewer or shorter, of blocks",
        got: count as u64,
    })
}

fn ranges(body: &mut BodyReader<'_>, count: usize) -> Result<Vec<BlockId>, WireError> {
    let mut blocks = Vec::with_capacity(count);
    while blocks.len() < count {
        let mut block = BlockId {
            shuffle_id: body.small("shuffle id")?.into(),
            start_reduce: body.small("first partition")?.into(),
            end_reduce: body.small("end of partitions")?.into(),
            piece: body.small("piece of a block")?.into(),
            map_id: body.var::<i64>()?.into(),
        };
        let outputs = repeats(body, "outputs of a range", count - blocks.len())?;
        let end = blocks.len() + outputs;
        blocks.push(block);
        while blocks.len() < end {
            let distance = body.var::<i64>()?;
            for _ in 0..repeats(body, "repeats of a step", end - blocks.len())? {
                block.map_id = block.map_id.get().wrapping_add(distance).into();
                blocks.push(block);
            }
        }
    }
    Ok(blocks)
}

/// Takes a count from 1 to `max`.
fn repeats(body: &mut BodyReader<'_>, what: &'static str, max: usize) -> Result<usize, WireError> {
    let got = body.var::<u64>()?;
    if got == 0 {
        return Err(WireError::BadValue { what, got });
    }
    WireError::check_limit(what, got, max as u64)?;
    Ok(got as usize)
}

/// Returns the values that the blocks of a range share.
fn partitions(block: &BlockId) -> [u32; 4] {
    let BlockId {
        map_id: _,
        shuffle_id,
        start_reduce,
        end_reduce,
        piece,
    } = block;
    [shuffle_id, start_reduce, end_reduce, piece].map(|field| field.get())
}

/// Ids may be any: the sum with what `read` adds wraps as well.
fn distance(pair: &[BlockId]) -> i64 {
    pair[1].map_id.get().wrapping_sub(pair[0].map_id.get())
}

fn put_var<T: VarInt>(out: &mut Vec<u8>, value: T) {
    let mut bytes = [0; 10];
    let length = value.encode_var(&mut bytes);
    out.extend_from_slice(&bytes[..length]);
}
