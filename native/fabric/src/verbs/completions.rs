//! What comes back from the device: completions, and news about itself.

use super::carrier::Verbs;
use super::device::{AsyncEvent, Completion, CompletionKind, Status, VerbsError};
use super::frames::{open_segment, Immediate};
use super::pair::{completed_by, parse_id, Id, Pair, Posted};
use super::protocol::say_revoked;
use crate::stream::dispatch::Receiver;
use crate::stream::hub::Hub;
use crate::stream::session::{Context, Phase};
use crate::{CloseReason, ConnectionId, Event, FabricError, Outcome};
use faro_wire::WireError;
use std::time::{Duration, Instant};

/// Completions taken in one turn, so that sockets and deadlines get theirs.
const TURN_COMPLETIONS: usize = 4_096;
/// How long a peer may take to let go of an exposure.
const REVOKE_PATIENCE: Duration = Duration::from_secs(10);
/// How often the device's place and address in sysfs are looked at; a few system calls.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Hub<Verbs> {
    /// Before a wait. True: there is something already.
    pub(crate) fn arm_device(&mut self) -> Result<bool, FabricError> {
        // Arming is a system call, and so is the wake-up that it leads to: not for what is there.
        if self.found_completions() {
            return Ok(true);
        }
        let armed = match &mut self.carrier.rig {
            Some(rig) => rig.arm(),
            None => return Ok(false),
        };
        if let Err(error) = armed {
            self.lose_device(&error.to_string());
            return Ok(true);
        }
        // A completion between the last look and the arming wakes nobody.
        Ok(self.found_completions())
    }

    fn found_completions(&mut self) -> bool {
        let before = self.carrier.tally.completions;
        self.take_completions();
        self.flush();
        self.carrier.tally.completions > before
    }

    /// See `Carrier::turn`.
    pub(crate) fn device_turn(&mut self) {
        let [channel, events] = std::mem::take(&mut self.carrier.signalled);
        if channel {
            self.carrier.tally.wakeups += 1;
            if let Some(rig) = &mut self.carrier.rig {
                rig.drain();
            }
        }
        if events {
            self.take_events();
        }
        self.take_completions();
        self.look_for_device();
        if let Some(rig) = &mut self.carrier.rig {
            if let Err(error) = rig.registrations.follow() {
                self.lose_device(&error.to_string());
            }
        }
        self.expire_revocations();
    }

    fn take_completions(&mut self) {
        let Some(rig) = &self.carrier.rig else {
            return;
        };
        let queues: Vec<_> = rig.queues().collect();
        let mut completions = Vec::new();
        for queue in queues {
            for _ in 0..TURN_COMPLETIONS / 32 {
                match queue.poll(&mut completions) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) => return self.lose_device(&error.to_string()),
                }
                self.carrier.tally.completions += completions.len() as u64;
                for completion in completions.drain(..) {
                    self.completed(&completion);
                }
            }
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let (connection, id) = parse_id(completion.id);
        let connection = ConnectionId(connection);
        // Of a connection that is over: its device memory is kept by what remains of it.
        if !self.conns.contains_key(&connection.0) {
            return;
        }
        let result = match &completion.status {
            Status::Done => match (id, completion.kind) {
                (Id::Send { number }, _) => self.sent(connection, number),
                (Id::Receive { segment }, CompletionKind::ReceivedImmediate(bits)) => {
                    self.written(connection, segment, bits, completion.bytes)
                }
                (Id::Receive { segment }, _) => {
                    self.received(connection, segment, completion.bytes)
                }
            },
            Status::Flushed => Err(CloseReason::Lost {
                detail: "the queue pair went into error".to_owned(),
            }),
            Status::Failed { what, vendor, .. } => Err(CloseReason::Lost {
                detail: format!("{what}, vendor code {vendor:#x}"),
            }),
        };
        match result {
            Ok(()) => self.go_on(connection),
            Err(reason) => self.close(connection, reason),
        }
    }

    /// Has the connection send what it could not before.
    fn go_on(&mut self, connection: ConnectionId) {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return;
        };
        let mut cx = Context::<Verbs> {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let waits = |pair: &Pair| !pair.urgent.is_empty() || pair.owes_much();
        let waits = cx.session.carrier.pair.as_deref().is_some_and(waits);
        if cx.session.phase == Phase::Open && (waits || !cx.session.outbound.is_empty()) {
            cx.touch();
        }
    }

    /// Work requests of ours are complete, up to `number`.
    fn sent(&mut self, connection: ConnectionId, number: u32) -> Result<(), CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let mut cx = Context::<Verbs> {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let Some(mut pair) = cx.session.carrier.pair.take() else {
            return Ok(());
        };
        let mut let_go = Vec::new();
        let count = completed_by(pair.first, number).min(pair.posted.len());
        pair.first = pair.first.wrapping_add(count as u32);
        for posted in pair.posted.drain(..count) {
            match posted {
                Posted::Segment => pair.free_sends += 1,
                Posted::Write {
                    token, key, bytes, ..
                } => {
                    cx.shared.counters.bytes_out += bytes as u64;
                    if pair.grants.completed(key) {
                        let_go.push(key);
                    }
                    cx.retire(bytes);
                    let outcome = Outcome::Done;
                    cx.event(Event::WriteEnded {
                        connection,
                        token,
                        outcome,
                    });
                }
                Posted::Read { sequence, key } => {
                    if pair.grants.completed(key) {
                        let_go.push(key);
                    }
                    if let Some(read) = cx.session.reads.remove(&sequence) {
                        cx.shared.counters.bytes_in += read.length as u64;
                        cx.read_ended(read, Outcome::Done);
                    }
                }
            }
        }
        cx.session.carrier.pair = Some(pair);
        let_go
            .into_iter()
            .try_for_each(|key| say_revoked(&mut cx, key))
    }

    /// A write of the peer's is in memory.
    fn written(
        &mut self,
        connection: ConnectionId,
        segment: u32,
        bits: u32,
        bytes: u32,
    ) -> Result<(), CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let mut cx = Context::<Verbs> {
            connection,
            session: &mut conn.session,
            shared: &mut self.shared,
        };
        let immediate = Immediate::decode(bits);
        let Some(pair) = &mut cx.session.carrier.pair else {
            return Ok(());
        };
        pair.spend(connection.0, segment);
        let Some(key) = pair.slots.written(immediate.slot, immediate.last) else {
            return Err(WireError::BadValue {
                what: "slot of a write",
                got: u64::from(immediate.slot),
            }
            .into());
        };
        cx.shared.counters.bytes_in += u64::from(bytes);
        cx.write_came(key, immediate.word, Some(bytes as usize));
        self.repost(connection)
    }

    /// A segment of the peer's stream came.
    fn received(
        &mut self,
        connection: ConnectionId,
        segment: u32,
        bytes: u32,
    ) -> Result<(), CloseReason> {
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        let Some(pair) = &mut conn.session.carrier.pair else {
            return Ok(());
        };
        let whole = pair.receives.bytes(segment);
        let Some(came) = whole.get(..bytes as usize) else {
            return Err(WireError::BadValue {
                what: "bytes of a segment",
                got: u64::from(bytes),
            }
            .into());
        };
        let (credits, came) = open_segment(came)?;
        let length = came.len();
        // Out of the segment, which can then be posted again, whatever the frames lead to.
        self.staging[..length].copy_from_slice(came);
        pair.credits = pair.credits.saturating_add(credits);
        pair.spend(connection.0, segment);
        self.shared.counters.bytes_in += length as u64;
        let mut receiver = Receiver {
            cx: Context::<Verbs> {
                connection,
                session: &mut conn.session,
                shared: &mut self.shared,
            },
            carrier: &mut self.carrier,
        };
        conn.inbound.feed(&self.staging[..length], &mut receiver)?;
        conn.writable |= conn.session.phase == Phase::Open;
        self.repost(connection)
    }

    /// Posts receive requests again, several in one call.
    fn repost(&mut self, connection: ConnectionId) -> Result<(), CloseReason> {
        const SEVERAL: usize = 8;
        let Some(conn) = self.conns.get_mut(&connection.0) else {
            return Ok(());
        };
        match &mut conn.session.carrier.pair {
            Some(pair) if pair.spent.len() >= SEVERAL => {
                pair.post_receives().map_err(|error| CloseReason::Lost {
                    detail: format!("cannot post receive requests: {error}"),
                })
            }
            _ => Ok(()),
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self
            .carrier
            .rig
            .as_ref()
            .and_then(|rig| rig.device.next_async())
        {
            match event {
                AsyncEvent::QueuePair {
                    number,
                    fatal: true,
                    what,
                } => {
                    let pair = |conn: &crate::stream::hub::Conn<Verbs>| {
                        let pair = conn.session.carrier.pair.as_ref();
                        pair.is_some_and(|pair| pair.queue.number() == number)
                    };
                    let found = self.conns.iter().find(|(_, conn)| pair(conn));
                    if let Some(connection) = found.map(|(connection, _)| ConnectionId(*connection))
                    {
                        self.close(connection, CloseReason::Lost { detail: what });
                    }
                }
                AsyncEvent::Device { what } => return self.lose_device(&what),
                AsyncEvent::Port { up: false, what } => log::warn!(
                    "verbs: {what}; requests wait for its retries and then take TCP: check the \
                     cable or `ip link`"
                ),
                AsyncEvent::Port { up: true, what } => log::info!("verbs: {what}"),
                AsyncEvent::QueuePair { what, .. } | AsyncEvent::Other { what } => {
                    log::debug!("verbs: {what}");
                }
                // The table may change after the news of it; `look_for_device` looks in any case.
                AsyncEvent::Gids => {}
            }
        }
    }

    /// Some drivers (rdma_rxe) take a device away without a word, and wait for those that have it
    /// open.
    fn look_for_device(&mut self) {
        let Some(rig) = &mut self.carrier.rig else {
            return;
        };
        if rig.looked.elapsed() < LOOK_EVERY {
            return;
        }
        rig.looked = Instant::now();
        if !rig.device.is_there() {
            self.lose_device("it was deleted");
        } else if !rig.device.has_its_gid() {
            self.lose_device("its address (GID) changed");
        }
    }

    /// The device cannot be used any more: every connection ends, peers take another fabric,
    /// and the next connect looks for the device again.
    fn lose_device(&mut self, what: &str) {
        log::warn!("verbs: the RDMA device is lost: {what}; its peers are reached over TCP until it is back");
        let peers: Vec<ConnectionId> = self
            .conns
            .keys()
            .map(|connection| ConnectionId(*connection))
            .collect();
        for connection in peers {
            let detail = format!("the RDMA device is lost: {what}");
            self.close(connection, CloseReason::Lost { detail });
        }
        let lingering: Vec<ConnectionId> = self
            .lingering
            .keys()
            .map(|connection| ConnectionId(*connection))
            .collect();
        for connection in lingering {
            self.let_go(connection);
        }
        self.carrier.lose_rig();
    }

    /// A peer that does not let go keeps our memory: it goes.
    fn expire_revocations(&mut self) {
        let now = Instant::now();
        let late = self
            .carrier
            .revoking
            .values()
            .find(|revoking| now.duration_since(revoking.since) > REVOKE_PATIENCE)
            .map(|revoking| revoking.connection);
        if let Some(connection) = late {
            let reason = CloseReason::Bound {
                what: "seconds for letting go of memory",
                limit: REVOKE_PATIENCE.as_secs(),
            };
            self.close(connection, reason);
        }
    }
}

/// A fault of the device as one of the fabric.
impl From<VerbsError> for FabricError {
    fn from(error: VerbsError) -> Self {
        Self::Unavailable {
            fabric: "verbs",
            reason: error.to_string(),
            absent: matches!(error, VerbsError::NoDevice { .. }),
        }
    }
}
