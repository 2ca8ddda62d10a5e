//! The server: exposes memory and answers clients.

use super::args::{lengths, PerfMode, PerfOperation, ServerArgs, MAX_TRANSFER};
use super::protocol::{self, body, counters, message, ServerReady, Start};
use super::site::{not_accepted, PerfSite};
use super::PerfError;
use crate::CliError;
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Message, RejectedPost, RemoteRange, Write,
    WriteSource,
};
use faro_pool::{Lease, PAGE_BYTES};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Most unsent answers of one client.
const MAX_UNSENT: usize = 4_096;

/// A client, from `Accepted` to `Closed`.
struct ServedClient {
    writable: RemoteRange,
    readable: RemoteRange,
    /// Source of the writes in return.
    source: Arc<Lease>,
    job: Option<Start>,
    /// Of the job; the second one ends it.
    fences: u32,
    /// Answers that the fabric's queue had no room for.
    unsent: VecDeque<Message>,
}

struct Server<'t> {
    site: PerfSite,
    clients: HashMap<u64, ServedClient>,
    left: &'t dyn Fn(u64, Option<&CloseReason>),
}

pub fn run(args: &ServerArgs, out: &mut impl std::io::Write) -> Result<(), CliError> {
    let bind = SocketAddr::new(args.bind, args.port);
    let site = PerfSite::open(&args.fabric, bind, protocol::SERVER)?;
    writeln!(out, "{}", site.fabric.location())?;
    out.flush()?;
    let left = |client, reason: Option<&CloseReason>| match reason {
        None => eprintln!("faro perf: client {client} has finished"),
        Some(reason) => eprintln!("faro perf: client {client} disconnected: {reason}"),
    };
    Ok(serve(site, args.once, &left)?)
}

/// Serves clients; with `once` until the first one, and all that came meanwhile, have left. Calls
/// `left` for each that leaves, with the reason unless it has finished.
pub fn serve(
    site: PerfSite,
    once: bool,
    left: &dyn Fn(u64, Option<&CloseReason>),
) -> Result<(), PerfError> {
    let mut server = Server {
        site,
        clients: HashMap::new(),
        left,
    };
    let mut events = Vec::new();
    loop {
        let poll_wait = server.site.poll_wait;
        server.site.fabric.poll(&mut events, poll_wait)?;
        for event in events.drain(..) {
            let left = server.handle(event)?;
            if left && once && server.clients.is_empty() {
                return Ok(());
            }
        }
        server.send_unsent();
    }
}

impl Server<'_> {
    /// Returns true if a client left.
    fn handle(&mut self, event: Event) -> Result<bool, PerfError> {
        match event {
            Event::Accepted { connection, .. } => match self.welcome(connection) {
                Ok(client) => drop(self.clients.insert(connection.0, client)),
                Err(error) => {
                    let detail = error.to_string();
                    let reason = CloseReason::Unable { detail };
                    self.site.fabric.disconnect(connection, reason);
                }
            },
            Event::Message {
                connection,
                message,
            } => self.take(connection, message)?,
            Event::Written { connection, .. } => self.write_back(connection)?,
            Event::Closed { connection, reason } => {
                let client = self.clients.remove(&connection.0);
                let has_finished = client.as_ref().is_some_and(|client| client.fences > 1);
                (self.left)(connection.0, (!has_finished).then_some(&reason));
                if let Some(client) = client {
                    // Memory that comes back later comes in an event, which needs no answer.
                    for key in [client.writable.key, client.readable.key] {
                        drop(self.site.fabric.revoke(key));
                    }
                    return Ok(true);
                }
            }
            _ => {}
        }
        Ok(false)
    }

    fn welcome(&mut self, connection: ConnectionId) -> Result<ServedClient, PerfError> {
        let writable = Exposure::Writable(self.site.lease(PAGE_BYTES)?);
        let readable = Exposure::Readable(Arc::new(self.site.lease(PAGE_BYTES)?));
        Ok(ServedClient {
            writable: self.site.expose(connection, writable)?,
            readable: self.site.expose(connection, readable)?,
            source: Arc::new(self.site.lease(PAGE_BYTES)?),
            job: None,
            fences: 0,
            unsent: VecDeque::new(),
        })
    }

    fn take(&mut self, connection: ConnectionId, came: Message) -> Result<(), PerfError> {
        let Some(client) = self.clients.get_mut(&connection.0) else {
            return Ok(());
        };
        let now = || counters(self.site.fabric.counters());
        let answer = match came.kind {
            protocol::START => match body::<Start>(&came) {
                Ok(start) if !(1..=MAX_TRANSFER).contains(&start.job.size) => {
                    let why = format!(
                        "transfers of {} bytes; allowed are 1 to {MAX_TRANSFER}",
                        start.job.size
                    );
                    message(protocol::REFUSED, came.id, &why)?
                }
                Ok(start) => {
                    client.job = Some(start);
                    client.fences = 0;
                    let ready = ServerReady {
                        writable: client.writable.into(),
                        readable: client.readable.into(),
                        counters: now(),
                    };
                    message(protocol::READY, came.id, &ready)?
                }
                Err(error) => message(protocol::REFUSED, came.id, &error.to_string())?,
            },
            protocol::DATA => match &client.job {
                Some(start) if start.job.mode == PerfMode::Latency => came,
                _ => Message {
                    kind: protocol::TAKEN,
                    id: came.id,
                    body: Vec::new(),
                },
            },
            protocol::FENCE => {
                client.fences = client.fences.saturating_add(1);
                message(protocol::FENCED, came.id, &now())?
            }
            kind => message(
                protocol::REFUSED,
                came.id,
                &format!(
                    "message of unknown kind {kind}; client and server must have the same version"
                ),
            )?,
        };
        client.unsent.push_back(answer);
        if client.unsent.len() > MAX_UNSENT {
            let reason = CloseReason::Bound {
                what: "unsent answers of a client",
                limit: MAX_UNSENT as u64,
            };
            self.site.fabric.disconnect(connection, reason);
        }
        Ok(())
    }

    fn send_unsent(&mut self) {
        for (connection, client) in &mut self.clients {
            while let Some(answer) = client.unsent.pop_front() {
                match self.site.fabric.send(ConnectionId(*connection), answer) {
                    Ok(()) => {}
                    Err(RejectedPost::Full(answer)) => {
                        client.unsent.push_front(answer);
                        break;
                    }
                    // `Closed` follows.
                    Err(_) => break,
                }
            }
        }
    }

    /// Writes back: the second half of a write's round trip.
    fn write_back(&mut self, connection: ConnectionId) -> Result<(), PerfError> {
        let Some(client) = self.clients.get(&connection.0) else {
            return Ok(());
        };
        let Some(start) = &client.job else {
            return Ok(());
        };
        if (start.job.operation, start.job.mode) != (PerfOperation::Write, PerfMode::Latency) {
            return Ok(());
        }
        match post_writes(
            &mut self.site,
            connection,
            &client.source,
            start.writable.into(),
            start.job.size,
            true,
        ) {
            // `Closed` follows.
            Ok(_) | Err(RejectedPost::NotConnected(..)) => Ok(()),
            Err(rejected) => Err(not_accepted("a write", &rejected)),
        }
    }
}

/// Posts one transfer as writes into `target`. Returns how many; with `notify` the last one has an
/// immediate.
pub fn post_writes(
    site: &mut PerfSite,
    connection: ConnectionId,
    source: &Arc<Lease>,
    target: RemoteRange,
    size: usize,
    notify: bool,
) -> Result<usize, RejectedPost<Write>> {
    let count = super::args::operations(size);
    for (at, length) in lengths(size).enumerate() {
        site.fabric.write(
            connection,
            Write {
                token: at as u64,
                source: WriteSource::part(Arc::clone(source), 0, length),
                target: RemoteRange {
                    length: length as u32,
                    ..target
                },
                immediate: (notify && at + 1 == count).then_some(1),
                last: false,
            },
        )?;
    }
    Ok(count)
}
