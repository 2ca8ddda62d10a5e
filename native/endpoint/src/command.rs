//! Commands: a member of the application tells a peer to do something, or asks it for something, and the peer answers.
//!
//! Sender: a command takes the best connection, as a `FETCH` does. If that ends before the answer, the command is sent
//! once more, since to get it twice is as to get it once. It ends with an answer, an error or its deadline, and what has
//! not ended is bounded ([`MAX_COMMANDS`]).
//!
//! Receiver: the connection has proven that its other end is a member of the application, as for every message. What a
//! command does is decided by the [`CommandHandler`] of the endpoint, which may answer later and from another thread. A
//! peer that does not take its answers gets no more of them, so nothing here grows with what it sends.

use crate::counters::EndpointCounters;
use crate::limits::{CONNECT_TIMEOUT, MAX_COMMANDS};
use crate::net::{
    ClosedConnection, Inbox, LinkState, MessageSource, Net, PeerTable, ProgressService, Route,
};
use crossbeam_channel::Receiver;
use faro_fabric::{ConnectionId, EndpointId, FabricKind};
use faro_sync::{clock, HashMap};
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand, ToCommands};
use faro_wire::WireError;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Number of times that a command is sent because its connection ended.
const MAX_TRIES: u8 = 2;
const CLOSING: &str = "this endpoint is closing";

/// Takes the commands of peers.
pub trait CommandHandler: fmt::Debug + Send + Sync {
    /// Answers the command, at once or later. Called on a progress thread, so it notes the command and must not block.
    /// The same command may come several times. The handler bounds the answers that it has not sent.
    fn handle(&self, command: MemberCommand, reply: ReplySender);
}

/// Sends the answer to one command, from any thread. Without it, the command ends at its sender's deadline.
pub struct ReplySender {
    connection: ConnectionId,
    id: u64,
    inbox: Inbox<CommandInput>,
}

impl ReplySender {
    /// Answers, unless the connection is gone or its peer takes no answers.
    pub fn send(self, reply: CommandReply) {
        let Self { connection, id, .. } = self;
        self.inbox.send(CommandInput::Reply(connection, id, reply));
    }
}

/// What other threads give to a [`CommandService`].
pub(crate) enum CommandInput {
    Send(SentCommand),
    Reply(ConnectionId, u64, CommandReply),
}

/// How a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandAnswer {
    /// The handle of the peer.
    pub peer: u64,
    /// What the peer has answered, or why there is no answer.
    pub outcome: Result<CommandReply, CommandError>,
}

/// Reason why a command has no answer. The peer may have carried it out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// No fabric reaches the peer.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(String),
    /// The connection was lost, and so was that of the second try.
    #[error("the connection was lost: {0}")]
    ConnectionLost(String),
    /// There was no answer in time.
    #[error("no answer in time")]
    TimedOut,
}

/// The reason that a command was not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandAdmitError {
    UnknownPeer(u64),
    Full { limit: usize },
    Closed,
}

/// A command that has not ended.
pub(crate) struct SentCommand {
    peer: u64,
    endpoint: EndpointId,
    /// The number that its answer has.
    id: u64,
    /// Set by the queue whenever the command is given to a progress thread.
    route: Option<Route>,
    command: MemberCommand,
    deadline: Instant,
    tries: u8,
    answers: Sender<CommandAnswer>,
    under_way: UnderWay,
}

/// Counts a command until it is dropped.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SentCommand {
    fn end(self, outcome: Result<CommandReply, CommandError>) {
        let Self { peer, answers, .. } = self;
        drop(self.under_way);
        // An error means that nobody waits for it.
        let _ = answers.send(CommandAnswer { peer, outcome });
    }
}

/// The way of commands to the progress threads. Shared by all threads.
pub(crate) struct CommandQueue {
    peers: Arc<PeerTable>,
    inboxes: Vec<(FabricKind, Inbox<CommandInput>)>,
    under_way: Arc<AtomicUsize>,
    next_id: AtomicU64,
    closing: AtomicBool,
}

impl CommandQueue {
    pub(crate) fn new(
        peers: Arc<PeerTable>,
        inboxes: Vec<(FabricKind, Inbox<CommandInput>)>,
    ) -> Self {
        Self {
            peers,
            inboxes,
            under_way: Arc::default(),
            next_id: AtomicU64::new(1),
            closing: AtomicBool::new(false),
        }
    }

    /// # Errors
    /// The peer is unknown, `MAX_COMMANDS` are under way, or the endpoint is closing.
    pub(crate) fn admit(
        &self,
        peer: u64,
        command: MemberCommand,
        timeout: Duration,
        answers: Sender<CommandAnswer>,
    ) -> Result<(), CommandAdmitError> {
        if self.closing.load(Ordering::Acquire) {
            return Err(CommandAdmitError::Closed);
        }
        let endpoint = self.peers.endpoint(peer);
        let endpoint = endpoint.ok_or(CommandAdmitError::UnknownPeer(peer))?;
        let before = self.under_way.fetch_add(1, Ordering::AcqRel);
        let under_way = UnderWay(Arc::clone(&self.under_way));
        if before >= MAX_COMMANDS {
            let limit = MAX_COMMANDS;
            return Err(CommandAdmitError::Full { limit });
        }
        self.dispatch(SentCommand {
            peer,
            endpoint,
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            route: None,
            command,
            deadline: clock::now() + timeout,
            tries: 0,
            answers,
            under_way,
        });
        Ok(())
    }

    /// Gives a command to the progress thread of the best route that is not in back-off, or ends it.
    fn dispatch(&self, mut sent: SentCommand) {
        if self.closing.load(Ordering::Acquire) {
            return sent.end(Err(CommandError::Unreachable(CLOSING.to_owned())));
        }
        let route = match self.peers.route_to(sent.endpoint) {
            Ok(route) => route,
            Err(why) => return sent.end(Err(CommandError::Unreachable(why))),
        };
        let inbox = self.inboxes.iter().find(|(kind, _)| *kind == route.fabric);
        match inbox {
            Some((_, inbox)) => {
                sent.route = Some(route);
                inbox.send(CommandInput::Send(sent));
            }
            None => sent.end(Err(CommandError::Unreachable(format!(
                "no {}",
                route.fabric.name()
            )))),
        }
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }
}

/// The commands of one progress thread, to peers and of peers.
pub(crate) struct CommandService {
    queue: Arc<CommandQueue>,
    inbox: Inbox<CommandInput>,
    inputs: Receiver<CommandInput>,
    handler: Option<Arc<dyn CommandHandler>>,
    counters: Arc<EndpointCounters>,
    /// Those that wait for a connection to open.
    waiting: HashMap<EndpointId, VecDeque<SentCommand>>,
    /// Those that wait for their answers, by their numbers.
    sent: HashMap<u64, (ConnectionId, SentCommand)>,
}

impl CommandService {
    pub(crate) fn new(
        queue: Arc<CommandQueue>,
        (inbox, inputs): (Inbox<CommandInput>, Receiver<CommandInput>),
        handler: Option<Arc<dyn CommandHandler>>,
        counters: Arc<EndpointCounters>,
    ) -> Self {
        Self {
            queue,
            inbox,
            inputs,
            handler,
            counters,
            waiting: HashMap::default(),
            sent: HashMap::default(),
        }
    }

    fn start(&mut self, net: &mut Net, mut sent: SentCommand) {
        let left = sent.deadline.saturating_duration_since(clock::now());
        if left.is_zero() {
            return sent.end(Err(CommandError::TimedOut));
        }
        let link = match &sent.route {
            Some(route) => net.open_to(route, CONNECT_TIMEOUT.min(left)),
            None => LinkState::None,
        };
        match link {
            LinkState::Open(connection) => {
                sent.tries += 1;
                let message = ToCommands::Command(sent.command.clone());
                net.send(connection, sent.id, message);
                self.sent.insert(sent.id, (connection, sent));
            }
            LinkState::Opening => {
                let waiting = self.waiting.entry(sent.endpoint).or_default();
                waiting.push_back(sent);
            }
            LinkState::None => self.queue.dispatch(sent),
        }
    }

    /// Removes all that wait for an answer or a connection and for which `is` holds.
    fn take(
        &mut self,
        is: impl Fn(&SentCommand, Option<ConnectionId>) -> bool,
    ) -> Vec<SentCommand> {
        let gone = self
            .sent
            .iter()
            .filter(|(_, (at, sent))| is(sent, Some(*at)));
        let gone: Vec<u64> = gone.map(|(id, _)| *id).collect();
        let gone = gone.iter().filter_map(|id| self.sent.remove(id));
        let mut taken: Vec<SentCommand> = gone.map(|(_, sent)| sent).collect();
        self.waiting.retain(|_, waiting| {
            for sent in std::mem::take(waiting) {
                match is(&sent, None) {
                    true => taken.push(sent),
                    false => waiting.push_back(sent),
                }
            }
            !waiting.is_empty()
        });
        taken
    }
}

impl ProgressService for CommandService {
    type Message = ToCommands;

    fn on_message(
        &mut self,
        net: &mut Net,
        source: MessageSource,
        id: u64,
        message: ToCommands,
    ) -> Result<(), WireError> {
        match message {
            ToCommands::Command(command) => {
                let reply = ReplySender {
                    connection: source.connection,
                    id,
                    inbox: self.inbox.clone(),
                };
                match &self.handler {
                    _ if net.has_waiting_posts(source.connection) => {}
                    Some(handler) => handler.handle(command, reply),
                    None => reply.send(CommandReply::Status(CommandStatus::Unsupported)),
                }
            }
            ToCommands::Answer(reply) => match self.sent.remove(&id) {
                // An answer of another peer is none.
                Some((at, sent)) if sent.endpoint != source.endpoint => {
                    self.counters.late_messages.add(1);
                    self.sent.insert(id, (at, sent));
                }
                Some((_, sent)) => sent.end(Ok(reply)),
                None => self.counters.late_messages.add(1),
            },
        }
        Ok(())
    }

    fn on_commands(&mut self, net: &mut Net) {
        while let Ok(input) = self.inputs.try_recv() {
            match input {
                CommandInput::Send(sent) => self.start(net, sent),
                CommandInput::Reply(connection, ..) if net.has_waiting_posts(connection) => {}
                CommandInput::Reply(connection, id, reply) => {
                    net.send(connection, id, ToCommands::Answer(reply));
                }
            }
        }
    }

    fn on_open(&mut self, net: &mut Net, endpoint: EndpointId) {
        for sent in self.waiting.remove(&endpoint).unwrap_or_default() {
            self.start(net, sent);
        }
    }

    fn on_closed(&mut self, net: &mut Net, closed: &ClosedConnection<'_>) {
        for sent in self.take(|_, at| at == Some(closed.connection)) {
            match sent.tries < MAX_TRIES {
                true => self.queue.dispatch(sent),
                false => sent.end(Err(CommandError::ConnectionLost(closed.reason.to_string()))),
            }
        }
        let Some(endpoint) = closed.endpoint else {
            return;
        };
        match net.link(endpoint) {
            LinkState::Opening => {}
            LinkState::Open(_) => self.on_open(net, endpoint),
            LinkState::None => {
                for sent in self.waiting.remove(&endpoint).unwrap_or_default() {
                    self.queue.dispatch(sent);
                }
            }
        }
    }

    fn tick(&mut self, _net: &mut Net, now: Instant) {
        for sent in self.take(|sent, _| sent.deadline <= now) {
            sent.end(Err(CommandError::TimedOut));
        }
    }

    fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.waiting.is_empty()
    }

    fn uses(&self, connection: ConnectionId) -> bool {
        self.sent.values().any(|(at, _)| *at == connection)
    }

    fn close(&mut self, _net: &mut Net) {
        for sent in self.take(|_, _| true) {
            sent.end(Err(CommandError::Unreachable(CLOSING.to_owned())));
        }
        self.redirect_commands();
    }

    fn redirect_commands(&mut self) {
        while let Ok(input) = self.inputs.try_recv() {
            if let CommandInput::Send(sent) = input {
                self.queue.dispatch(sent);
            }
        }
    }
}
