//! The connection of one executor: its hello, and the answers to its messages. It has a thread of its own.

use crate::application::Application;
use crate::disk::{DiskError, DISK_WAIT};
use crate::handed_over::HandedOverFiles;
use crate::lend::Loans;
use crate::message::{MessageError, Refusal, Reply, Request, VERSIONS};
use crate::service::{Refused, Service};
use crate::socket::{receive, send, ReceivedMessage, SocketError};
use crate::store::KeepError;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// How long an executor may take for its first message.
const HELLO_WAIT: Duration = Duration::from_secs(5);
/// How often a thread that waits looks whether the service stops.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// The first message and its answer have little time.
pub(crate) fn hello_waits(socket: &OwnedFd) -> Result<(), SocketError> {
    set_socket_timeout(socket, Timeout::Send, Some(HELLO_WAIT))?;
    set_socket_timeout(socket, Timeout::Recv, Some(HELLO_WAIT))?;
    Ok(())
}

pub(crate) fn refuse(socket: &OwnedFd, (why, text): Refused) -> Result<(), SocketError> {
    let bytes = Reply::Refused { why, text }.encode();
    send(socket.as_fd(), &bytes, &[])
}

pub(crate) fn not_served(user: u32) -> Refused {
    let text = format!("executors of user {user} are not served here");
    (Refusal::User, text)
}

fn late(error: &DiskError) -> Refused {
    (Refusal::System, error.to_string())
}

/// What a first message wants.
enum First {
    /// With the version that both sides speak.
    Executor(Arc<Application>, u16),
    Status {
        from: u16,
    },
}

/// To a message of an executor.
enum Answer {
    Plain(Reply),
    Lent(Loans),
}

/// One executor.
pub(crate) struct Connection<'a> {
    pub(crate) user: u32,
    pub(crate) service: &'a Arc<Service>,
    pub(crate) socket: &'a Arc<OwnedFd>,
    pub(crate) stop: &'a AtomicBool,
}

impl Connection<'_> {
    /// Answers until the executor or the service ends.
    pub(crate) fn serve(&self) {
        let served = self.handshake().and_then(|application| {
            application.connected();
            let served = self.answer_all(&application);
            application.disconnected();
            served
        });
        match served {
            Ok(()) | Err(SocketError::Closed) => {}
            Err(error) => self.service.say(
                self.user,
                format_args!("an executor's connection ends: {error}"),
            ),
        }
    }

    /// The first message; `Closed` after a refusal, and after the status.
    fn handshake(&self) -> Result<Arc<Application>, SocketError> {
        hello_waits(self.socket)?;
        let first = self.read_hello()?.map_err(|refused| {
            self.service.refuses(self.user, &refused.1);
            refuse(self.socket, refused)
                .err()
                .unwrap_or(SocketError::Closed)
        })?;
        let (application, version) = match first {
            First::Executor(application, version) => (application, version),
            First::Status { from } => {
                let status = self.service.status(self.user).encode(from);
                send(self.socket.as_fd(), &status, &[])?;
                return Err(SocketError::Closed);
            }
        };
        set_socket_timeout(self.socket, Timeout::Recv, Some(LOOK))?;
        let card = application.card();
        self.reply(&Reply::Welcome { version, card })?;
        Ok(application)
    }

    fn read_hello(&self) -> Result<Result<First, Refused>, SocketError> {
        // Also of a user who is refused: closing with a message unread would take the answer from the other side.
        let received = receive(self.socket.as_fd())?;
        let request = Request::decode(&received.bytes);
        if !self.service.serves(self.user) && !matches!(request, Ok(Request::Status { .. })) {
            return Ok(Err(not_served(self.user)));
        }
        Ok(match request {
            Ok(Request::Hello(hello, offered)) => match VERSIONS.spoken().common(offered) {
                Ok(version) => {
                    let registered = self.service.register(&hello, self.user);
                    registered.map(|application| First::Executor(application, version))
                }
                Err(gap) => Err((Refusal::Version, MessageError::Version(gap).to_string())),
            },
            Ok(Request::Status { from }) => Ok(First::Status { from }),
            Ok(
                Request::Output { .. }
                | Request::Lend { .. }
                | Request::Forget { .. }
                | Request::End
                | Request::Host { .. }
                | Request::Behind,
            ) => {
                let text = "the first message is no hello".to_owned();
                Err((Refusal::Message, text))
            }
            Err(error @ MessageError::Version(_)) => Err((Refusal::Version, error.to_string())),
            Err(error) => Err((Refusal::Message, error.to_string())),
        })
    }

    fn answer_all(&self, application: &Arc<Application>) -> Result<(), SocketError> {
        while !self.stop.load(Ordering::Relaxed) {
            let received = receive(self.socket.as_fd());
            if application.has_made_room() {
                // Without an answer: the executor connects again, and hands over once more what this message did.
                return Err(SocketError::Closed);
            }
            let received = match received {
                Err(SocketError::TimedOut) => continue,
                other => other?,
            };
            let answer = self.answer(application, received);
            match answer {
                Err(_) if application.has_made_room() => return Err(SocketError::Closed),
                Ok(Answer::Plain(reply)) => self.reply(&reply)?,
                Ok(Answer::Lent(loans)) => self.lend(loans)?,
                Err(refused) => {
                    self.service
                        .counters
                        .refused
                        .fetch_add(1, Ordering::Relaxed);
                    log::debug!("application {} is refused: {}", application.name, refused.1);
                    let ends = refused.0 == Refusal::Message;
                    refuse(self.socket, refused)?;
                    if ends {
                        return Err(SocketError::Closed);
                    }
                }
            }
        }
        Ok(())
    }

    /// What may wait for a disk is done by the application's threads for it, and waited for for a bounded time.
    fn answer(
        &self,
        application: &Arc<Application>,
        received: ReceivedMessage,
    ) -> Result<Answer, Refused> {
        let message = |text: String| (Refusal::Message, text);
        let request = Request::decode(&received.bytes).map_err(|e| message(e.to_string()))?;
        match request {
            Request::Hello(..) | Request::Status { .. } => {
                Err(message("a second hello".to_owned()))
            }
            Request::Output { id, has_data } => {
                let mut files = received.descriptors.into_iter().map(File::from);
                let wanted = 1 + usize::from(has_data);
                if files.len() != wanted {
                    let got = files.len();
                    return Err(message(format!("{got} descriptors where {wanted} belong")));
                }
                let (Some(index), data) = (files.next(), files.next()) else {
                    return Err(message("no index".to_owned()));
                };
                let (of, user) = (Arc::clone(application), self.user);
                let kept = application.disk().ask(move || {
                    let handed = HandedOverFiles::check(index, data, user)?;
                    of.keep(id, handed)
                });
                let kept = kept.map_err(|error| late(&error))?.map_err(|error| {
                    let why = match &error {
                        KeepError::Files(_) => Refusal::Files,
                        KeepError::Quota { .. } => Refusal::Quota,
                        KeepError::Full { .. } => Refusal::Full,
                        KeepError::Ended => Refusal::Ended,
                        // These two are of copies.
                        KeepError::Removed | KeepError::Own => Refusal::Message,
                        KeepError::Descriptors { .. }
                        | KeepError::Linking(_)
                        | KeepError::Directory(_)
                        | KeepError::Unreadable(_) => Refusal::System,
                    };
                    (why, error.to_string())
                })?;
                self.service.counters.kept(kept.how);
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Forget { shuffle } => {
                let of = Arc::clone(application);
                let forgotten = application.disk().ask(move || of.forget(shuffle));
                let forgotten = forgotten.map_err(|error| late(&error))?;
                self.service.counters.removed(forgotten);
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Host {
                replicas,
                at,
                of,
                card,
            } => application
                .host((replicas, at, of), card)
                .map(|()| Answer::Plain(Reply::Done))
                // The connection goes on: outputs are handed over by it.
                .map_err(|text| (Refusal::Full, text)),
            Request::Behind => {
                let behind = application.replicas_behind();
                Ok(Answer::Plain(Reply::Behind(behind)))
            }
            Request::End => {
                if let Some(ends) = self.service.end(application.key, "has ended") {
                    // What hangs is removed later.
                    let _ = ends.recv_timeout(DISK_WAIT);
                }
                Ok(Answer::Plain(Reply::Done))
            }
            Request::Lend {
                shuffle,
                files,
                maps,
            } => {
                let of = Arc::clone(application);
                let lending = Arc::clone(&self.service.lending);
                let lend = move || of.lend(&lending, shuffle, &maps, files);
                let loans = application.disk().ask(lend);
                Ok(Answer::Lent(loans.map_err(|error| late(&error))?))
            }
        }
    }

    /// A reader that does not take its answer ends this connection only, which has its own thread and timeout; what it
    /// leaves in its socket counts on (`lending`).
    fn lend(&self, loans: Loans) -> Result<(), SocketError> {
        let files: Vec<_> = loans.files().iter().map(AsFd::as_fd).collect();
        let outputs = loans.all.iter().filter(|lent| lent.files() > 0).count();
        if !files.is_empty() {
            // Before the answer, so that a reader that has it finds it counted.
            let lent = &self.service.counters.lent;
            lent.fetch_add(outputs as u64, Ordering::Relaxed);
        }
        let bytes = Reply::Lent(loans.all.clone()).encode();
        match send(self.socket.as_fd(), &bytes, &files) {
            Err(SocketError::TooManyOnTheirWay) => {
                let text = SocketError::TooManyOnTheirWay.to_string();
                refuse(self.socket, (Refusal::System, text))
            }
            Ok(()) => {
                loans.sent(&self.service.lending, self.socket);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn reply(&self, reply: &Reply) -> Result<(), SocketError> {
        send(self.socket.as_fd(), &reply.encode(), &[])
    }
}
