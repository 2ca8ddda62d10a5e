//! Messages between client and server of `faro perf`, over the measured fabric.
//!
//! ```text
//!   client                       server
//!   START (job, range)  ------>  keeps the job, exposes memory
//!                       <------  READY (ranges, counters)  or  REFUSED (why)
//!   writes, reads, DATA <----->  answers each one in latency mode
//!   FENCE               ------>  everything posted before has arrived
//!                       <------  FENCED (counters)
//! ```
//! Bodies are JSON: their cost is not measured.

use super::args::{PerfMode, PerfOperation};
use super::PerfError;
use faro_fabric::{EndpointId, Message, RemoteRange};
use faro_wire::kind::FIRST_MESSAGE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The endpoint id of every server: clients need no card to connect.
pub const SERVER: EndpointId = 0x6661_726f_2070_6572_6620_7365_7276_6572;

pub const START: u8 = FIRST_MESSAGE;
pub const READY: u8 = FIRST_MESSAGE + 1;
pub const REFUSED: u8 = FIRST_MESSAGE + 2;
pub const DATA: u8 = FIRST_MESSAGE + 3;
/// Acknowledges a `DATA` of a bandwidth round.
pub const TAKEN: u8 = FIRST_MESSAGE + 4;
pub const FENCE: u8 = FIRST_MESSAGE + 5;
pub const FENCED: u8 = FIRST_MESSAGE + 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerfJob {
    pub operation: PerfOperation,
    pub mode: PerfMode,
    pub size: usize,
}

/// A [`RemoteRange`] as JSON.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RangeJson {
    key: u64,
    offset: u64,
    length: u32,
}

impl From<RemoteRange> for RangeJson {
    fn from(range: RemoteRange) -> Self {
        let RemoteRange {
            key,
            offset,
            length,
        } = range;
        Self {
            key,
            offset,
            length,
        }
    }
}

impl From<RangeJson> for RemoteRange {
    fn from(range: RangeJson) -> Self {
        let RangeJson {
            key,
            offset,
            length,
        } = range;
        Self {
            key,
            offset,
            length,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub job: PerfJob,
    /// Memory of the client that the server writes to in a write latency test.
    pub writable: RangeJson,
}

pub type CounterValues = BTreeMap<String, u64>;

#[derive(Debug, Serialize, Deserialize)]
pub struct ServerReady {
    pub writable: RangeJson,
    pub readable: RangeJson,
    pub counters: CounterValues,
}

pub fn message(kind: u8, id: u64, body: &impl Serialize) -> Result<Message, PerfError> {
    let body = serde_json::to_vec(body).map_err(|source| PerfError::Body { kind, source })?;
    Ok(Message { kind, id, body })
}

pub fn body<T: DeserializeOwned>(message: &Message) -> Result<T, PerfError> {
    let kind = message.kind;
    serde_json::from_slice(&message.body).map_err(|source| PerfError::Body { kind, source })
}

pub fn counters(named: Vec<(&'static str, u64)>) -> CounterValues {
    let owned = |(name, value): (&str, u64)| (name.to_owned(), value);
    named.into_iter().map(owned).collect()
}
