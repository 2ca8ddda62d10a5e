//! The parts of an array, out and in: pages offered to partners, pages that they offer, what arrived.

use super::{RoundRun, Team, LOOK, MAX_EARLY, WINDOW};
use crate::collective::members::ReplyPath;
use crate::collective::pending::{PendingKind, PostedWrite, ReceiveBuffer};
use crate::collective::round::RoundShape;
use crate::collective::step::MemberStep;
use crate::collective::CollectiveError;
use faro_exchange::collective::Action;
use faro_fabric::RemoteRange;
use faro_pool::{Lease, Pool, PoolError, Purpose, PAGE_BYTES};
use faro_sync::clock;
use faro_wire::crc32c;
use faro_wire::message::{AbortCause, ClearToSend, ClearToSendHead, DataReady, WrittenBuffer};
use std::sync::Arc;

impl Team {
    pub(super) fn send_clear(
        &self,
        run: &RoundRun<'_>,
        to: u32,
        first_chunk: u32,
        leases: Vec<ReceiveBuffer>,
    ) -> Result<(), CollectiveError> {
        let head = ClearToSendHead {
            step: (run.step as u32).into(),
            from_rank: (self.rank as u32).into(),
            first_chunk: first_chunk.into(),
            ..run.shape.head(self.rounds)
        };
        let head = Box::new(head);
        self.send(to as usize, PendingKind::ClearToSend { head, leases })
    }

    /// Offers pages for the next parts, as far as memory allows.
    pub(super) fn offer_pages(
        &mut self,
        run: &RoundRun<'_>,
        step: &mut MemberStep,
    ) -> Result<(), CollectiveError> {
        // One message gives back half a window, not one for every chunk that was applied.
        if step.outstanding() > WINDOW / 2 {
            return Ok(());
        }
        let mut offers: Vec<(usize, u32, Vec<ReceiveBuffer>)> = Vec::new();
        while step.outstanding() < WINDOW {
            let Some((chunk, at, bytes)) = step.next_offer() else {
                break;
            };
            let lease = match self.pool.try_lease(bytes, Purpose::Read) {
                Ok(lease) => lease,
                Err(PoolError::Exhausted { .. }) => match self.home.take() {
                    Some(home) => home,
                    None => break,
                },
                Err(error) => return Err(CollectiveError::Memory(error)),
            };
            step.offered_one();
            let memory = (lease, bytes as u32);
            match offers.iter_mut().find(|(to, _, _)| *to == at) {
                Some((_, _, leases)) => leases.push(memory),
                None => offers.push((at, chunk, vec![memory])),
            }
        }
        for (at, first_chunk, leases) in offers {
            self.send_clear(run, step.incoming[at].part.partner, first_chunk, leases)?;
        }
        Ok(())
    }

    /// Notes that a partner has memory for a part.
    pub(super) fn on_clear(
        &mut self,
        run: &mut RoundRun<'_>,
        step: &mut MemberStep,
        reply: ReplyPath,
        clear: ClearToSend,
    ) -> Result<(), CollectiveError> {
        let (round, at) = (clear.head.round.get(), clear.head.step.get() as usize);
        let early = round > self.rounds || (round == self.rounds && at > run.step);
        if early && self.early.len() < MAX_EARLY {
            self.early.push((reply, clear));
            return Ok(());
        }
        let remote = RoundShape::of(&clear.head);
        let rank = clear.head.from_rank.get();
        let same_step = (round, at) == (self.rounds, run.step) && remote == run.shape;
        let wanted = step.outgoing.iter_mut();
        let outgoing = wanted
            .filter(|_| same_step)
            .find(|outgoing| outgoing.part.partner == rank);
        let Some(outgoing) = outgoing else {
            return Err(self.mismatch(run, rank, round, &remote));
        };
        outgoing.is_cleared = true;
        let numbers = clear.head.first_chunk.get()..;
        for (buffer, number) in clear.buffers.iter().zip(numbers) {
            let place = outgoing.part.chunk(number);
            let Some((first, bytes)) = place.filter(|(_, b)| *b == buffer.length.get() as usize)
            else {
                return Err(self.mismatch(run, rank, round, &remote));
            };
            outgoing.part.done += 1;
            let (source, crc) = stage(&self.pool, run, first, bytes)?.ok_or_else(|| {
                let name = &self.partners[self.rank].name;
                let detail =
                    format!("{name} had no memory to send from, or was stopped by its caller");
                CollectiveError::Failed {
                    cause: AbortCause::GaveUp,
                    rank: self.rank as u32,
                    round: self.rounds,
                    detail,
                }
            })?;
            self.dispatch.members.counters.bytes.add(bytes as u64);
            let posted = PostedWrite {
                member: self.member,
                connection: reply.connection,
                source,
                target: RemoteRange {
                    key: buffer.key.get(),
                    offset: buffer.offset.get(),
                    length: bytes as u32,
                },
                to: self.partners[rank as usize].address.member,
                ready: DataReady {
                    round,
                    step: at as u32,
                    from_rank: self.rank as u32,
                    buffers: vec![WrittenBuffer {
                        buffer: number.into(),
                        length: (bytes as u32).into(),
                        crc: crc.into(),
                        unsummed: 0.into(),
                    }],
                },
            };
            self.dispatch.write(reply.fabric, posted);
        }
        Ok(())
    }

    fn mismatch(
        &self,
        run: &RoundRun<'_>,
        rank: u32,
        round: u64,
        remote: &RoundShape,
    ) -> CollectiveError {
        let (rank, local) = (rank as usize, &self.partners[self.rank].name);
        let Some(other) = self.partners.get(rank) else {
            let detail = format!(
                "{local} was asked for a part by rank {rank}, which the team does not have"
            );
            return self.error(AbortCause::Mismatch, self.rank, detail);
        };
        let detail = format!(
            "{} has {} in round {round}, {local} has {} in round {}",
            other.name,
            remote.differs_from(&run.shape),
            run.shape.differs_from(remote),
            self.rounds
        );
        self.error(AbortCause::Mismatch, rank, detail)
    }

    /// Works in what has arrived and whose turn it is.
    pub(super) fn apply(
        &mut self,
        run: &mut RoundRun<'_>,
        step: &mut MemberStep,
    ) -> Result<(), CollectiveError> {
        while let Some((at, first, lease, chunk)) = step.next_arrived() {
            let bytes = &lease.bytes()[..chunk.length.get() as usize];
            let (expected, got) = (chunk.crc.get(), crc32c(bytes));
            let incoming = &step.incoming[at];
            if expected != got {
                let (rank, length) = (incoming.part.partner as usize, bytes.len());
                let detail = format!(
                    "{length} bytes of {} arrived with CRC-32C {got:#010x} where it sent {expected:#010x}",
                    self.partners[rank].name
                );
                return Err(self.error(AbortCause::Corrupt, rank, detail));
            }
            match incoming.action {
                Action::Add => run.array.add(first, bytes)?,
                Action::Replace => run.array.store(first, bytes)?,
            }
            if self.home.is_none() && lease.capacity() == PAGE_BYTES {
                self.home = Some(lease);
            }
        }
        Ok(())
    }
}

/// Copies a chunk of the array to a lease, which partners that get the same chunk share. Returns
/// `None` if no memory came before the deadline, or if the caller gave up.
fn stage(
    pool: &Arc<Pool>,
    run: &mut RoundRun<'_>,
    first: usize,
    bytes: usize,
) -> Result<Option<(Arc<Lease>, u32)>, CollectiveError> {
    if let Some((lease, crc)) = run.staged.get(&first) {
        if let Some(lease) = lease.upgrade() {
            return Ok(Some((lease, *crc)));
        }
    }
    let mut lease = loop {
        let now = clock::now();
        match pool.lease_before(bytes, Purpose::Serve, run.deadline.min(now + LOOK)) {
            Ok(lease) => break lease,
            Err(PoolError::Exhausted { .. }) if now < run.deadline && !(run.cancelled)() => {}
            Err(PoolError::Exhausted { .. }) => return Ok(None),
            Err(error) => return Err(CollectiveError::Memory(error)),
        }
    };
    let target = &mut lease.bytes_mut()[..bytes];
    run.array.load(first, target)?;
    let (crc, lease) = (crc32c(target), Arc::new(lease));
    run.staged.insert(first, (Arc::downgrade(&lease), crc));
    Ok(Some((lease, crc)))
}
