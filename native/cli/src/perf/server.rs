//! The server: exposes memory, answers.

use super::args::{lengths, Mode, Operation, ServerArgs, MAX_TRANSFER};
use super::protocol::{self, body, counters, message, Ready, Start};
use super::site::{not_accepted, Site};
use super::PerfError;
use crate::CliError;
use faro_fabric::{
    CloseReason, ConnectionId, Event, Exposure, Message, Rejected, RemoteRange, Write,
};
use faro_pool::{Lease, PAGE_BYTES};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// Answers of one client that wait for room.
const WAITING: usize = 4_096;

/// A client, from `Accepted` to `Closed`.
struct Client {
    writable: RemoteRange,
    readable: RemoteRange,
    /// What answers are written from.
    source: Arc<Lease>,
    job: Option<Start>,
    /// Answers that found no room.
    waiting: VecDeque<Message>,
}

struct Server<'t> {
    site: Site,
    clients: HashMap<u64, Client>,
    told: &'t dyn Fn(u64, &CloseReason),
}

pub fn run(args: &ServerArgs, out: &mut impl std::io::Write) -> Result<(), CliError> {
    let bind = SocketAddr::new(args.bind, args.port);
    let site = Site::open(&args.fabric, bind, protocol::SERVER)?;
    writeln!(out, "{}", site.fabric.location())?;
    out.flush()?;
    let left =
        |client, reason: &CloseReason| eprintln!("faro perf: client {client} left: {reason}");
    Ok(serve(site, args.once, &left)?)
}

/// Serves clients; with `once` until the first one, and all that came meanwhile, have left. `told`
/// is told of each that leaves.
pub fn serve(site: Site, once: bool, told: &dyn Fn(u64, &CloseReason)) -> Result<(), PerfError> {
    let mut server = Server {
        site,
        clients: HashMap::new(),
        told,
    };
    let mut events = Vec::new();
    loop {
        let nap = server.site.nap;
        server.site.fabric.poll(&mut events, nap)?;
        for event in events.drain(..) {
            let left = server.handle(event)?;
            if left && once && server.clients.is_empty() {
                return Ok(());
            }
        }
        server.send_waiting();
    }
}

impl Server<'_> {
    /// True: a client left.
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
                (self.told)(connection.0, &reason);
                if let Some(client) = self.clients.remove(&connection.0) {
                    // What comes back later does so in an event that needs no answer.
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

    fn welcome(&mut self, connection: ConnectionId) -> Result<Client, PerfError> {
        let writable = Exposure::Writable(self.site.lease(PAGE_BYTES)?);
        let readable = Exposure::Readable(Arc::new(self.site.lease(PAGE_BYTES)?));
        Ok(Client {
            writable: self.site.expose(connection, writable)?,
            readable: self.site.expose(connection, readable)?,
            source: Arc::new(self.site.lease(PAGE_BYTES)?),
            job: None,
            waiting: VecDeque::new(),
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
                        "transfers of {} bytes; 1 to {MAX_TRANSFER} are possible",
                        start.job.size
                    );
                    message(protocol::REFUSED, came.id, &why)?
                }
                Ok(start) => {
                    client.job = Some(start);
                    let ready = Ready {
                        writable: client.writable.into(),
                        readable: client.readable.into(),
                        counters: now(),
                    };
                    message(protocol::READY, came.id, &ready)?
                }
                Err(error) => message(protocol::REFUSED, came.id, &error.to_string())?,
            },
            protocol::DATA => match &client.job {
                Some(start) if start.job.mode == Mode::Latency => came,
                _ => Message {
                    kind: protocol::TAKEN,
                    id: came.id,
                    body: Vec::new(),
                },
            },
            protocol::FENCE => message(protocol::FENCED, came.id, &now())?,
            kind => message(
                protocol::REFUSED,
                came.id,
                &format!("message of unknown kind {kind}: are both sides of one version?"),
            )?,
        };
        client.waiting.push_back(answer);
        if client.waiting.len() > WAITING {
            let reason = CloseReason::Bound {
                what: "answers that a client does not fetch",
                limit: WAITING as u64,
            };
            self.site.fabric.disconnect(connection, reason);
        }
        Ok(())
    }

    fn send_waiting(&mut self) {
        for (connection, client) in &mut self.clients {
            while let Some(answer) = client.waiting.pop_front() {
                match self.site.fabric.send(ConnectionId(*connection), answer) {
                    Ok(()) => {}
                    Err(Rejected::Full(answer)) => {
                        client.waiting.push_front(answer);
                        break;
                    }
                    // `Closed` follows.
                    Err(_) => break,
                }
            }
        }
    }

    /// The other half of a round trip.
    fn write_back(&mut self, connection: ConnectionId) -> Result<(), PerfError> {
        let Some(client) = self.clients.get(&connection.0) else {
            return Ok(());
        };
        let Some(start) = &client.job else {
            return Ok(());
        };
        if (start.job.operation, start.job.mode) != (Operation::Write, Mode::Latency) {
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
            Ok(_) | Err(Rejected::NotConnected(..)) => Ok(()),
            Err(rejected) => Err(not_accepted("a write", &rejected)),
        }
    }
}

/// One transfer as writes into `target`; how many. `told`: the last has an immediate.
pub fn post_writes(
    site: &mut Site,
    connection: ConnectionId,
    source: &Arc<Lease>,
    target: RemoteRange,
    size: usize,
    told: bool,
) -> Result<usize, Rejected<Write>> {
    let count = super::args::chunks(size);
    for (at, length) in lengths(size).enumerate() {
        site.fabric.write(
            connection,
            Write {
                token: at as u64,
                source: Arc::clone(source),
                offset: 0,
                length,
                target: RemoteRange {
                    length: length as u32,
                    ..target
                },
                immediate: (told && at + 1 == count).then_some(1),
                last: false,
            },
        )?;
    }
    Ok(count)
}
