//! A client's connection to its server: opens it, polls it, and asks questions over it.

use super::args::ClientArgs;
use super::protocol::{self, body, message, SERVER};
use super::site::{local_address, not_accepted, PerfSite};
use super::PerfError;
use faro_fabric::{ConnectionId, Event, Identity, Message};
use std::time::{Duration, Instant};

pub struct ServerLink {
    pub site: PerfSite,
    pub connection: ConnectionId,
    /// The events of the last turn.
    pub events: Vec<Event>,
    pub timeout: Duration,
    next_id: u64,
}

impl ServerLink {
    /// Connects as client `number` of this process.
    pub fn connect(args: &ClientArgs, number: u32) -> Result<Self, PerfError> {
        let bind = local_address(args.fabric.fabric, &args.location)?;
        // Clients of a server must have different ids.
        let endpoint = u128::from(std::process::id()) << 32 | u128::from(number);
        let mut site = PerfSite::open(&args.fabric, bind, endpoint)?;
        let deadline = Instant::now() + args.timeout;
        let connection =
            site.fabric
                .connect(&args.location, &Identity::public(SERVER), deadline)?;
        let mut link = Self {
            site,
            connection,
            events: Vec::new(),
            timeout: args.timeout,
            next_id: 1,
        };
        link.wait("connection", |event| {
            matches!(event, Event::Connected { .. }).then_some(Ok(()))
        })?;
        Ok(link)
    }

    /// Returns the id of the next message.
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Polls once; a closed connection is an error.
    pub fn turn(&mut self) -> Result<(), PerfError> {
        self.site
            .fabric
            .poll(&mut self.events, self.site.poll_wait)?;
        for event in &self.events {
            if let Event::Closed { reason, .. } = event {
                return Err(PerfError::Closed(reason.clone()));
            }
        }
        Ok(())
    }

    /// Polls until `answer` finds what it looks for in an event, or the timeout is over.
    fn wait<T>(
        &mut self,
        what: &'static str,
        mut answer: impl FnMut(&Event) -> Option<Result<T, PerfError>>,
    ) -> Result<T, PerfError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            self.turn()?;
            let found = self.events.iter().find_map(&mut answer);
            self.events.clear();
            if let Some(found) = found {
                return found;
            }
            if Instant::now() > deadline {
                return Err(PerfError::Late {
                    what,
                    after: self.timeout,
                });
            }
        }
    }

    /// Asks the server a question, and returns its answer of the kind `answer`.
    pub fn ask(
        &mut self,
        kind: u8,
        answer: u8,
        question: &impl serde::Serialize,
    ) -> Result<Message, PerfError> {
        let asked = message(kind, self.next_id(), question)?;
        self.site
            .fabric
            .send(self.connection, asked)
            .map_err(|rejected| not_accepted("a message", &rejected))?;
        self.wait("answer", |event| match event {
            Event::Message { message, .. } if message.kind == answer => Some(Ok(message.clone())),
            Event::Message { message, .. } if message.kind == protocol::REFUSED => {
                Some(body(message).and_then(|why| Err(PerfError::Refused { why })))
            }
            _ => None,
        })
    }
}
