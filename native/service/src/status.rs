//! What a service has and did, and how `faro doctor` asks for it. Sums only: nothing of an application is named.

use crate::client::{open, ClientError};
use crate::message::{put, Body, MessageError, Reply, Request};
use crate::socket::{receive, send};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// An answer's first byte; the others are those of `Reply`.
const KIND: u8 = 4;

/// Figures by their names for Prometheus; what only grows ends in `_total`.
pub type Figures = Vec<(&'static str, u64)>;

/// The figures of a service: what it has now, and what it counted since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    pub applications: u64,
    /// Connected now.
    pub executors: u64,
    pub outputs: u64,
    pub output_bytes: u64,
    /// Outputs kept as hard links.
    pub linked: u64,
    /// Outputs kept as open files.
    pub kept_open: u64,
    /// Executors, and messages of executors.
    pub refused: u64,
    pub removed: u64,
    pub served_blocks: u64,
    pub served_bytes: u64,
    /// Outputs whose files were given to readers of this host.
    pub lent: u64,
    /// Number of `outputs` that are copies of outputs of other hosts.
    pub replicas: u64,
    /// Copies of outputs of this host that other services have not reported yet.
    pub replicas_behind: u64,
    /// Bytes that were copied here.
    pub copied_bytes: u64,
    /// Copies that could not be made or kept here.
    pub copies_refused: u64,
    /// Bytes for blocks in transfer that all applications have now.
    pub memory: u64,
    /// The most that they have together.
    pub memory_limit: u64,
    /// Bytes of tables of outputs, and of readers' requests, that all applications have now.
    pub tables: u64,
    /// The most that they have together.
    pub tables_limit: u64,
    /// Most map outputs of all applications together.
    pub outputs_limit: u64,
    /// Connections of readers that were passed on to an application's endpoint.
    pub passed_on: u64,
    /// Connections that had to go because too many had proven nothing.
    pub connections_refused: u64,
    /// Connections that ended without the proof of an application's key.
    pub handshakes_failed: u64,
}

impl Status {
    /// Returns the figures in the order of the layout.
    #[must_use]
    pub fn figures(&self) -> Figures {
        vec![
            ("applications", self.applications),
            ("executors", self.executors),
            ("outputs", self.outputs),
            ("output_bytes", self.output_bytes),
            ("linked_total", self.linked),
            ("kept_open_total", self.kept_open),
            ("refused_total", self.refused),
            ("removed_total", self.removed),
            ("served_blocks_total", self.served_blocks),
            ("served_bytes_total", self.served_bytes),
            ("lent_total", self.lent),
            ("replicas", self.replicas),
            ("replicas_behind", self.replicas_behind),
            ("copied_bytes_total", self.copied_bytes),
            ("copies_refused_total", self.copies_refused),
            ("memory_bytes", self.memory),
            ("memory_limit_bytes", self.memory_limit),
            ("table_bytes", self.tables),
            ("table_limit_bytes", self.tables_limit),
            ("outputs_limit", self.outputs_limit),
            ("connections_passed_on_total", self.passed_on),
            ("connections_refused_total", self.connections_refused),
            ("handshakes_failed_total", self.handshakes_failed),
        ]
    }

    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![KIND];
        put(&mut out, self.version.as_bytes());
        for (_, value) in self.figures() {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out
    }

    /// # Errors
    /// The bytes are no status of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut body = Body(bytes);
        match body.u8("kind")? {
            KIND => {}
            got => return Err(MessageError::Kind { got }),
        }
        let status = Self {
            version: body.name("version")?,
            applications: body.u64("applications")?,
            executors: body.u64("executors")?,
            outputs: body.u64("outputs")?,
            output_bytes: body.u64("output bytes")?,
            linked: body.u64("linked")?,
            kept_open: body.u64("kept open")?,
            refused: body.u64("refused")?,
            removed: body.u64("removed")?,
            served_blocks: body.u64("served blocks")?,
            served_bytes: body.u64("served bytes")?,
            lent: body.u64("lent")?,
            replicas: body.u64("replicas")?,
            replicas_behind: body.u64("replicas behind")?,
            copied_bytes: body.u64("copied bytes")?,
            copies_refused: body.u64("copies refused")?,
            memory: body.u64("memory")?,
            memory_limit: body.u64("memory limit")?,
            tables: body.u64("tables")?,
            tables_limit: body.u64("tables limit")?,
            outputs_limit: body.u64("outputs limit")?,
            passed_on: body.u64("passed on")?,
            connections_refused: body.u64("connections refused")?,
            handshakes_failed: body.u64("handshakes failed")?,
        };
        body.end()?;
        Ok(status)
    }
}

/// Asks the service whose socket is in that directory; the user that it runs as, and what it has.
///
/// # Errors
/// There is none, it does not answer in time, or it refuses.
pub fn ask_status(directory: &Path, timeout: Duration) -> Result<(u32, Status), ClientError> {
    let (socket, user) = open(directory, timeout)?;
    send(socket.as_fd(), &Request::Status.encode(), &[])?;
    let answer = receive(socket.as_fd())?.bytes;
    if answer.first() == Some(&KIND) {
        return Ok((user, Status::decode(&answer)?));
    }
    match Reply::decode(&answer)? {
        Reply::Refused { why, text } => Err(ClientError::Refused { why, text }),
        Reply::Welcome { .. } | Reply::Done | Reply::Lent(_) | Reply::Behind(_) => {
            Err(ClientError::Unexpected)
        }
    }
}
