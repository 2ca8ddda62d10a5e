//! The caller of an endpoint: checks that its requests get the blocks that they ask for.

use crate::outputs::MapOutputs;
use faro_endpoint::{Completion, Delivery};
use faro_wire::codes::FetchErrorCode;
use faro_wire::{BlockId, BlockStatus};
use std::time::Duration;

/// A request that has not ended.
pub(crate) struct PendingRequest {
    /// The request's number in the plan.
    pub(crate) number: usize,
    pub(crate) blocks: Vec<BlockId>,
    /// Number of blocks that were answered.
    pub(crate) received: usize,
    /// The time for which the caller keeps the blocks.
    pub(crate) keeps: Duration,
}

/// The end of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Right,
    Failed(FetchErrorCode, String),
    /// Its caller was killed, or slept at the time of the request.
    NotAsked,
}

impl PendingRequest {
    /// Checks a completion. Returns the request's end if it was the last one.
    ///
    /// # Errors
    /// Fails if the completion does not match the request.
    pub(crate) fn take(
        &mut self,
        completion: &Completion,
        outputs: &MapOutputs,
    ) -> Result<Option<RequestEnd>, String> {
        let (first, count) = (
            completion.first_block as usize,
            completion.block_count as usize,
        );
        if first != self.received || first + count > self.blocks.len() {
            let (at, of) = (self.received, self.blocks.len());
            return Err(format!(
                "blocks {first} to {} where {at} of {of} have come",
                first + count
            ));
        }
        self.received += count;
        let blocks = &self.blocks[first..first + count];
        match &completion.outcome {
            Ok(delivery) => {
                check(delivery, blocks, outputs)?;
                match (completion.last, self.received == self.blocks.len()) {
                    (true, true) => Ok(Some(RequestEnd::Right)),
                    (false, _) => Ok(None),
                    (true, false) => Err("the last blocks came before all had".to_owned()),
                }
            }
            Err(failure) if completion.last => Ok(Some(RequestEnd::Failed(
                failure.code,
                failure.detail.clone(),
            ))),
            Err(failure) => Err(format!("a failure that is not the last: {failure:?}")),
        }
    }
}

/// Checks the bytes of a delivery.
///
/// # Errors
/// Fails if they are not those of the blocks.
pub(crate) fn check(
    delivery: &Delivery,
    blocks: &[BlockId],
    outputs: &MapOutputs,
) -> Result<(), String> {
    let mut slices = delivery.slices.iter().map(|slice| {
        let from = slice.offset as usize;
        &slice.lease.bytes()[from..from + slice.length as usize]
    });
    let mut rest: &[u8] = &[];
    for (entry, block) in delivery.blocks.iter().zip(blocks) {
        let expected = outputs.bytes(block);
        let unknown = BlockStatus::UnknownOutput as u32;
        match (entry.status.get(), expected) {
            (0, Some(_)) => {}
            (status, None) if status == unknown => continue,
            (status, _) => return Err(format!("status {status} of {block:?}")),
        }
        let mut expected = expected.unwrap_or_default();
        if entry.length.get() != expected.len() as u64 {
            let (got, is) = (entry.length.get(), expected.len());
            return Err(format!("{got} bytes of {block:?}, which has {is}"));
        }
        while !expected.is_empty() {
            if rest.is_empty() {
                rest = slices.next().ok_or("bytes are missing")?;
            }
            let length = rest.len().min(expected.len());
            if rest[..length] != expected[..length] {
                return Err(format!("wrong bytes of {block:?}"));
            }
            (rest, expected) = (&rest[length..], &expected[length..]);
        }
    }
    match rest.is_empty() && slices.all(<[u8]>::is_empty) {
        true => Ok(()),
        false => Err("more bytes than the blocks have".to_owned()),
    }
}
