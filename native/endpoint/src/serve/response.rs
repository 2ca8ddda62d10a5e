//! Makes the response to a fetch: the entry of each block, and the bytes that follow.

use super::content::Content;
use crate::files::{LocateError, OutputAnswer};
use crate::net::EncodedMessage;
use faro_region::Sleep;
use faro_sync::{HashMap, TableKeys};
use faro_wire::message::{BlockEntry, FetchResponse, ToClient};
use faro_wire::{BlockId, BlockStatus, OutputId};

/// Result of a finished job: what it has sent.
#[derive(Default, Clone, Copy)]
pub(crate) struct JobResult {
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) refused: u64,
}

/// A response, and what belongs to it.
pub(super) struct Response {
    pub(super) encoded: EncodedMessage,
    pub(super) content: Content,
    pub(super) served: JobResult,
}

/// Reason why no response can be made now.
pub(super) enum NotNow {
    /// An index is not in memory, and the caller may not sleep.
    Cold,
    /// A file is another one by now, or gone.
    Replaced,
}

/// Turns blocks into entries and ranges.
pub(super) fn respond(
    blocks: &[BlockId],
    answers: &HashMap<OutputId, OutputAnswer>,
    sleep: Sleep,
) -> Result<Response, NotNow> {
    let mut positions: HashMap<OutputId, usize> =
        HashMap::with_capacity_and_hasher(answers.len(), TableKeys::default());
    let mut content = Content::default();
    let mut served = JobResult::default();
    let mut entries = Vec::with_capacity(blocks.len());
    for block in blocks {
        let id = block.output();
        let located = match answers.get(&id) {
            Some(Ok(output)) => output
                .locate(block.start_reduce.get(), block.end_reduce.get(), sleep)
                .map(|range| (output, range.of(block))),
            Some(Err(status)) => Err(LocateError::Status(*status)),
            None => Err(LocateError::Status(BlockStatus::UnknownOutput)),
        };
        let (output, range) = match located {
            Ok(found) => found,
            Err(LocateError::Status(status)) => {
                served.refused += 1;
                entries.push(BlockEntry::missing(status));
                continue;
            }
            Err(LocateError::Cold) => return Err(NotNow::Cold),
            Err(LocateError::Replaced) => return Err(NotNow::Replaced),
        };
        served.blocks += 1;
        served.bytes += range.length;
        entries.push(BlockEntry::found(range.length));
        if range.length > 0 {
            let position = *positions
                .entry(id)
                .or_insert_with(|| content.add_output(output));
            content.add(position, range);
        }
    }
    Ok(Response {
        encoded: ToClient::FetchResponse(FetchResponse { blocks: entries }).into(),
        content,
        served,
    })
}
