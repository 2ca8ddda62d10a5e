//! What a service has and did, and how `faro serve status` and `faro doctor` ask for it.
//!
//! ```text
//!  u8 4 | text version | u16 oldest | u16 newest | figures | u16 left | u8 n | n applications
//!   application  text name | u32 user | text state | figures
//!   figures      u8 n | n (text name, u64)
//! ```
//! Figures have names, so that a command and a daemon of neighbouring versions understand each other: what one does not know it
//! leaves out. An answer has as many applications as a message holds; `left` more come after them. Root and the daemon's user see
//! all applications, another user its own.

use crate::client::{open, ClientError};
use crate::message::{put, Body, MessageError, Reply, Request, MAX_MESSAGE};
use crate::socket::{receive, send};
use faro_wire::VersionRange;
use std::borrow::Cow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// An answer's first byte; the others are those of `Reply`.
const KIND: u8 = 4;
/// Most applications of an answer.
const MAX_APPLICATIONS: u16 = 255;

/// Figures by their names for Prometheus; what only grows ends in `_total`.
pub type Figures = Vec<(Cow<'static, str>, u64)>;

/// The figures of a service: what it has now, and what it counted since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    /// The versions of the protocol that it speaks.
    pub protocols: VersionRange,
    /// Sums over all applications.
    pub figures: Figures,
    /// Those that the one who asks may see.
    pub applications: Vec<ApplicationStatus>,
}

/// One application of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationStatus {
    /// Spark's id; its key, where only that is known.
    pub name: String,
    /// The user of its executors; `u32::MAX`: not known.
    pub user: u32,
    /// `serving`, `starting`, `ending`, or `left`: a service before this one has left its outputs, and none of its executors
    /// has come yet.
    pub state: Cow<'static, str>,
    /// Its own figures.
    pub figures: Figures,
}

/// Returns a figure; 0: the daemon does not have it.
#[must_use]
pub fn figure(figures: &Figures, name: &str) -> u64 {
    let found = figures.iter().find(|(known, _)| known == name);
    found.map_or(0, |(_, value)| *value)
}

fn put_figures(out: &mut Vec<u8>, figures: &Figures) {
    debug_assert!(u8::try_from(figures.len()).is_ok(), "too many figures");
    out.push(figures.len() as u8);
    for (name, value) in figures {
        put(out, name.as_bytes());
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn take_figures(body: &mut Body) -> Result<Figures, MessageError> {
    let count = body.u8("number of figures")?;
    let figure = |_| Ok((body.name("a figure")?.into(), body.u64("a figure")?));
    (0..count).map(figure).collect()
}

impl ApplicationStatus {
    fn put(&self, out: &mut Vec<u8>) {
        put(out, self.name.as_bytes());
        out.extend_from_slice(&self.user.to_le_bytes());
        put(out, self.state.as_bytes());
        put_figures(out, &self.figures);
    }

    fn take(body: &mut Body) -> Result<Self, MessageError> {
        Ok(Self {
            name: body.name("application")?,
            user: body.u32("user")?,
            state: body.name("state")?.into(),
            figures: take_figures(body)?,
        })
    }
}

impl Status {
    /// Returns a figure of the service; 0: the daemon does not have it.
    #[must_use]
    pub fn figure(&self, name: &str) -> u64 {
        figure(&self.figures, name)
    }

    /// Returns the packet with the applications from number `from` on, as many as it holds.
    #[must_use]
    pub fn encode(&self, from: u16) -> Vec<u8> {
        let mut out = vec![KIND];
        put(&mut out, self.version.as_bytes());
        out.extend_from_slice(&self.protocols.oldest.to_le_bytes());
        out.extend_from_slice(&self.protocols.newest.to_le_bytes());
        put_figures(&mut out, &self.figures);
        let wanted = self.applications.get(usize::from(from)..);
        let wanted = wanted.unwrap_or_default();
        let mut entries = Vec::new();
        let mut count: u8 = 0;
        for application in wanted.iter().take(MAX_APPLICATIONS.into()) {
            let before = entries.len();
            application.put(&mut entries);
            if out.len() + 3 + entries.len() > MAX_MESSAGE {
                entries.truncate(before);
                break;
            }
            count += 1;
        }
        let left = wanted.len() - usize::from(count);
        let left = u16::try_from(left).unwrap_or(u16::MAX);
        out.extend_from_slice(&left.to_le_bytes());
        out.push(count);
        out.extend_from_slice(&entries);
        out
    }

    /// Reads a packet; returns how many applications come after those of it, too.
    ///
    /// # Errors
    /// The bytes are no status.
    pub fn decode(bytes: &[u8]) -> Result<(Self, u16), MessageError> {
        let mut body = Body(bytes);
        match body.u8("kind")? {
            KIND => {}
            got => return Err(MessageError::Kind { got }),
        }
        let version = body.name("version")?;
        let protocols = VersionRange::new(body.u16("version")?, body.u16("version")?);
        let figures = take_figures(&mut body)?;
        let left = body.u16("number of applications")?;
        let count = body.u8("number of applications")?;
        let applications = (0..count).map(|_| ApplicationStatus::take(&mut body));
        let status = Self {
            version,
            protocols,
            figures,
            applications: applications.collect::<Result<_, _>>()?,
        };
        body.end()?;
        Ok((status, left))
    }
}

/// Asks the service whose socket is in that directory; the user that it runs as, and what it has.
///
/// # Errors
/// There is none, it does not answer in time, or it refuses.
pub fn ask_status(directory: &Path, timeout: Duration) -> Result<(u32, Status), ClientError> {
    let (user, mut status, mut left) = ask(directory, 0, timeout)?;
    while left > 0 {
        let from = u16::try_from(status.applications.len()).map_err(|_| ClientError::Unexpected)?;
        let (_, more, then) = ask(directory, from, timeout)?;
        // Fewer have come than were left: some have ended meanwhile.
        let came = !more.applications.is_empty();
        status.applications.extend(more.applications);
        left = if came { then } else { 0 };
    }
    Ok((user, status))
}

fn ask(directory: &Path, from: u16, timeout: Duration) -> Result<(u32, Status, u16), ClientError> {
    let (socket, user) = open(directory, timeout)?;
    send(socket.as_fd(), &Request::Status { from }.encode(), &[])?;
    let answer = receive(socket.as_fd())?.bytes;
    if answer.first() == Some(&KIND) {
        let (status, left) = Status::decode(&answer)?;
        return Ok((user, status, left));
    }
    match Reply::decode(&answer)? {
        Reply::Refused { why, text } => Err(ClientError::Refused { why, text }),
        Reply::Welcome { .. } | Reply::Done | Reply::Lent(_) | Reply::Behind(_) => {
            Err(ClientError::Unexpected)
        }
    }
}
