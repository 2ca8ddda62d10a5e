//! The listener: which connections come from it, and its pause when the process has no file
//! descriptors left.

use super::listener::{AcceptedSocket, ListenSocket};
use super::unauthenticated::Origin;
use crate::rare_log::RareLog;
use faro_sync::clock;
use std::io;
use std::time::{Duration, Instant};

/// Length of the pause.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Result of one accept.
pub(crate) enum AcceptResult<S> {
    Taken(S, Origin),
    /// The peer may not connect.
    Refused,
    /// The peer ended the connection before it was accepted.
    Gone,
    /// No connection waits.
    Nothing,
}

/// A listener with its state.
pub(crate) struct ListenerState<L> {
    listener: L,
    /// It has more connections.
    has_more: bool,
    paused_until: Option<Instant>,
    refused: RareLog,
    not_accepted: RareLog,
}

impl<L: ListenSocket> ListenerState<L> {
    pub(crate) fn new(listener: L) -> Self {
        Self {
            listener,
            has_more: false,
            paused_until: None,
            refused: RareLog::default(),
            not_accepted: RareLog::default(),
        }
    }

    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Notes that the kernel reports more connections.
    pub(crate) fn ready(&mut self) {
        self.has_more = true;
    }

    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Ends a pause that is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            self.has_more = true;
        }
    }

    /// Accepts one connection.
    pub(crate) fn accept(&mut self) -> AcceptResult<L::Socket> {
        match self.listener.accept() {
            Ok(AcceptedSocket::Taken(socket, origin)) => AcceptResult::Taken(socket, origin),
            Ok(AcceptedSocket::Refused(error)) => {
                if let Some(left_out) = self.refused.at(clock::now()) {
                    log::warn!("refused a same-host connection: {error}{left_out}");
                }
                AcceptResult::Refused
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => {
                    self.has_more = false;
                    AcceptResult::Nothing
                }
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => AcceptResult::Gone,
                _ => {
                    let now = clock::now();
                    if let Some(left_out) = self.not_accepted.at(now) {
                        log::warn!("cannot accept connections for now: {error}{left_out}");
                    }
                    self.has_more = false;
                    self.paused_until = Some(now + ACCEPT_PAUSE);
                    AcceptResult::Nothing
                }
            },
        }
    }
}
