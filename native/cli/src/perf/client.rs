//! The client: runs rounds of transfers.

use super::args::{lengths, max_depth, operations, ClientArgs, PerfMode, PerfOperation};
use super::protocol::{self, body, counters, CounterValues, PerfJob, ServerReady, Start};
use super::server::post_writes;
use super::server_link::ServerLink;
use super::site::not_accepted;
use super::PerfError;
use faro_fabric::{Event, Exposure, Message, Outcome, Read, RemoteRange};
use faro_pool::{Lease, PAGE_BYTES};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Transfers before a measurement, which are not counted: they warm up connections and caches.
const WARM_UP: Duration = Duration::from_millis(100);

/// Result of one round.
pub struct RoundResult {
    pub transfers: u64,
    pub seconds: f64,
    /// Increase of the counters: client's, server's.
    pub grew: [CounterValues; 2],
}

pub struct PerfClient {
    link: ServerLink,
    depth: usize,
    /// The client's memory that the server writes to in a write latency test.
    writable: RemoteRange,
    source: Arc<Lease>,
    /// Memory that reads fill.
    targets: Vec<Lease>,
}

impl PerfClient {
    /// Connects as client `number` of this process.
    pub fn connect(args: &ClientArgs, number: u32) -> Result<Self, PerfError> {
        args.check()?;
        let mut link = ServerLink::connect(args, number)?;
        let source = Arc::new(link.site.lease(PAGE_BYTES)?);
        let writable = Exposure::Writable(link.site.lease(PAGE_BYTES)?);
        let writable = link.site.expose(link.connection, writable)?;
        Ok(Self {
            link,
            depth: args.depth as usize,
            writable,
            source,
            targets: Vec::new(),
        })
    }

    /// Runs one round; adds latencies in nanoseconds to `latencies`.
    pub fn round(
        &mut self,
        job: PerfJob,
        length: Duration,
        latencies: &mut Histogram<u64>,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<RoundResult, PerfError> {
        let start = Start {
            job,
            writable: self.writable.into(),
        };
        let ready: ServerReady = body(&self.link.ask(protocol::START, protocol::READY, &start)?)?;
        self.prepare(job)?;
        self.drive(job, &ready, WARM_UP, None, &mut |_| {})?;
        let warm: CounterValues = body(&self.link.ask(protocol::FENCE, protocol::FENCED, &())?)?;
        let before = counters(self.link.site.fabric.counters());
        let from = Instant::now();
        let transfers = match job.mode {
            PerfMode::Bandwidth => self.drive(job, &ready, length, None, tick)?,
            PerfMode::Latency => self.drive(job, &ready, length, Some(latencies), tick)?,
        };
        // Bytes count when they are in the server's memory, not when the kernel has taken them.
        let fenced: CounterValues =
            body(&self.link.ask(protocol::FENCE, protocol::FENCED, &())?)?;
        let seconds = from.elapsed().as_secs_f64();
        let after = counters(self.link.site.fabric.counters());
        Ok(RoundResult {
            transfers,
            seconds,
            grew: [grown(&before, &after), grown(&warm, &fenced)],
        })
    }

    fn prepare(&mut self, job: PerfJob) -> Result<(), PerfError> {
        self.targets.clear();
        if job.operation == PerfOperation::Read {
            let deep = match job.mode {
                PerfMode::Bandwidth => self.depth.min(max_depth(job.size)),
                PerfMode::Latency => 1,
            };
            for _ in 0..deep {
                for length in lengths(job.size) {
                    self.targets.push(self.link.site.lease(length)?);
                }
            }
        }
        Ok(())
    }

    /// Keeps transfers in flight for `length`, with `latencies` one at a time. Returns how many ended.
    fn drive(
        &mut self,
        job: PerfJob,
        ready: &ServerReady,
        length: Duration,
        mut latencies: Option<&mut Histogram<u64>>,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<u64, PerfError> {
        let one = job.mode == PerfMode::Latency;
        let depth = if one {
            1
        } else {
            self.depth.min(max_depth(job.size)) as u64
        };
        let cut = if job.operation == PerfOperation::Message {
            1
        } else {
            operations(job.size) as u64
        };
        // A write's round trip ends with the server's write, not with the client's own.
        let notify = one && job.operation == PerfOperation::Write;
        let halves = if job.operation == PerfOperation::Read {
            1
        } else {
            2
        };
        let from = Instant::now();
        let (mut begun, mut last_end) = (from, from);
        let (mut posted, mut ended, mut own_open) = (0u64, 0u64, 0usize);
        let mut shown = Duration::ZERO;
        loop {
            let running = begun.duration_since(from) < length;
            while running && posted < ended / cut + depth {
                let count = self.post(job, ready, notify)?;
                own_open += if notify { count } else { 0 };
                posted += 1;
            }
            if !running && ended == posted * cut && own_open == 0 {
                return Ok(posted);
            }
            self.link.turn()?;
            let before = ended;
            let mut events = std::mem::take(&mut self.link.events);
            for event in events.drain(..) {
                match self.progress(event)? {
                    TransferProgress::OwnWrite if notify => own_open = own_open.saturating_sub(1),
                    TransferProgress::Notified => ended += cut,
                    TransferProgress::OwnWrite | TransferProgress::Part => ended += 1,
                    TransferProgress::Nothing => {}
                }
            }
            self.link.events = events;
            begun = Instant::now();
            if ended > before {
                if let (Some(latencies), 0) = (&mut latencies, ended % cut) {
                    let took = begun.duration_since(last_end).as_nanos() as u64 / halves;
                    latencies.saturating_record(took.max(1));
                    last_end = begun;
                } else if !one {
                    last_end = begun;
                }
            } else if begun.duration_since(last_end) > self.link.timeout {
                return Err(PerfError::Late {
                    what: "end of a transfer",
                    after: self.link.timeout,
                });
            }
            let now = begun.duration_since(from).min(length);
            if now - shown > Duration::from_millis(50) {
                tick(now - shown);
                shown = now;
            }
        }
    }

    /// Posts one transfer. Returns the number of its operations.
    fn post(
        &mut self,
        job: PerfJob,
        ready: &ServerReady,
        notify: bool,
    ) -> Result<usize, PerfError> {
        let count = operations(job.size);
        match job.operation {
            PerfOperation::Write => {
                let target = ready.writable.into();
                post_writes(
                    &mut self.link.site,
                    self.link.connection,
                    &self.source,
                    target,
                    job.size,
                    notify,
                )
                .map_err(|rejected| not_accepted("a write", &rejected))
            }
            PerfOperation::Read => {
                for length in lengths(job.size) {
                    let target = match self.targets.pop() {
                        Some(target) => target,
                        None => self.link.site.lease(length)?,
                    };
                    let source = RemoteRange {
                        length: length as u32,
                        ..ready.readable.into()
                    };
                    let read = Read {
                        token: length as u64,
                        source,
                        target,
                    };
                    self.link
                        .site
                        .fabric
                        .read(self.link.connection, read)
                        .map_err(|rejected| not_accepted("a read", &rejected))?;
                }
                Ok(count)
            }
            PerfOperation::Message => {
                let data = Message {
                    kind: protocol::DATA,
                    id: self.link.next_id(),
                    body: vec![0x5a; job.size],
                };
                self.link
                    .site
                    .fabric
                    .send(self.link.connection, data)
                    .map_err(|rejected| not_accepted("a message", &rejected))?;
                Ok(1)
            }
        }
    }

    fn progress(&mut self, event: Event) -> Result<TransferProgress, PerfError> {
        let ended = |what, outcome| match outcome {
            Outcome::Done => Ok(()),
            outcome => Err(PerfError::Ended { what, outcome }),
        };
        Ok(match event {
            Event::WriteEnded { outcome, .. } => {
                ended("write", outcome)?;
                TransferProgress::OwnWrite
            }
            Event::ReadEnded {
                outcome, target, ..
            } => {
                self.targets.push(target);
                ended("read", outcome)?;
                TransferProgress::Part
            }
            Event::Written { .. } => TransferProgress::Notified,
            Event::Message { message, .. } => match message.kind {
                protocol::DATA | protocol::TAKEN => TransferProgress::Part,
                protocol::REFUSED => {
                    return Err(PerfError::Refused {
                        why: body(&message)?,
                    })
                }
                _ => TransferProgress::Nothing,
            },
            _ => TransferProgress::Nothing,
        })
    }
}

enum TransferProgress {
    /// A write of the client ended.
    OwnWrite,
    /// A part of a transfer ended.
    Part,
    /// The server's write in return has arrived.
    Notified,
    Nothing,
}

fn grown(before: &CounterValues, after: &CounterValues) -> CounterValues {
    after
        .iter()
        .map(|(name, value)| {
            let was = before.get(name).copied().unwrap_or(0);
            (name.clone(), value.saturating_sub(was))
        })
        .collect()
}
