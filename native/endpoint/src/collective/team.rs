//! A seat, and the team that its holder is a member of: rounds, from the caller's side.

use super::hub::{nobody, Event, Mailbox, Reply};
use super::room::{Errand, Memory, Order, Partner, Posting, What};
use super::round::{Grouping, NanPolicy, Operation, Round, Shape};
use super::step::Step;
use super::{Array, CollectiveError};
use crate::progress::Command;
use crate::router::Router;
use faro_exchange::collective::{Action, Plan};
use faro_fabric::RemoteRange;
use faro_pool::{Lease, Pool, PoolError, Purpose, FRAME_BYTES};
use faro_wire::message::{Chunk, Farewell, FarewellCause, Grant, GrantHead, Knock, Landed};
use faro_wire::{crc32c, Card, Invitation};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Frames that one member has out for its partners to write (8 MiB, as for a fetch).
const WINDOW: usize = 32;
/// Grants for steps to come that are kept; members that keep to the plan send far fewer.
const MAX_EARLY: usize = 1 << 16;
/// How often a waiting caller looks whether it has been told to stop.
const LOOK: Duration = Duration::from_millis(50);
/// How long a new team waits for its frame.
const JOIN_WAIT: Duration = Duration::from_secs(5);

/// A place that others can be told of. Becomes a member of a team, or is given up by dropping it.
pub struct Seat {
    router: Arc<Router>,
    pool: Arc<Pool>,
    card: Card,
    number: u64,
    mailbox: Arc<Mailbox>,
    joined: bool,
}

impl Seat {
    pub(crate) fn new(
        router: Arc<Router>,
        pool: Arc<Pool>,
        card: Card,
    ) -> Result<Self, CollectiveError> {
        let (number, mailbox) = router.hub.sit()?;
        Ok(Self {
            router,
            pool,
            card,
            number,
            mailbox,
            joined: false,
        })
    }

    /// What the other members need, as text.
    #[must_use]
    pub fn invitation(&self) -> Vec<u8> {
        let invitation = Invitation {
            seat: self.number,
            card: self.card.clone(),
        };
        invitation.encode()
    }

    /// Takes this seat's place in the team of all who are invited, by rank. Talks to nobody yet.
    ///
    /// # Errors
    /// A rank that there is not, invitations that cannot be read, no memory.
    pub fn join(mut self, rank: usize, invitations: &[Vec<u8>]) -> Result<Team, CollectiveError> {
        let ranks = invitations.len();
        if rank >= ranks || ranks > faro_exchange::MAX_MEMBERS {
            return Err(CollectiveError::BadRank { rank, ranks });
        }
        let mut members = Vec::with_capacity(ranks);
        for (rank, bytes) in invitations.iter().enumerate() {
            let invitation = Invitation::decode(bytes)
                .map_err(|source| CollectiveError::Invitation { rank, source })?;
            members.push(Member {
                partner: Partner {
                    handle: self.router.add_peer(&invitation.card),
                    seat: invitation.seat,
                    rank: rank as u32,
                },
                name: format!("rank {rank} ({})", invitation.card.name),
                greeted: false,
                gone: None,
            });
        }
        if members[rank].partner.seat != self.number {
            return Err(CollectiveError::NotOurs { rank });
        }
        let home = self
            .pool
            .lease_before(FRAME_BYTES, Purpose::Read, Instant::now() + JOIN_WAIT)
            .map_err(CollectiveError::Memory)?;
        self.joined = true;
        Ok(Team {
            router: Arc::clone(&self.router),
            pool: Arc::clone(&self.pool),
            seat: self.number,
            mailbox: Arc::clone(&self.mailbox),
            rank,
            members,
            rounds: 0,
            failed: None,
            early: Vec::new(),
            home: Some(home),
            exact: None,
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !self.joined {
            say_farewell(&self.router, self.number, &nobody(u32::MAX));
        }
    }
}

struct Member {
    partner: Partner,
    /// For people: rank and executor.
    name: String,
    /// It was knocked at.
    greeted: bool,
    gone: Option<Gone>,
}

/// A member that takes no further part.
struct Gone {
    /// From the round of this number on.
    from: u64,
    cause: FarewellCause,
    /// With whom it began.
    culprit: usize,
    detail: String,
}

/// Ends a team from another thread than the one that is in its round.
pub struct Closer(Arc<Mailbox>);

impl Closer {
    /// The round under way, and every later one, ends with `Closed`.
    pub fn close(&self) {
        self.0.push(Event::Closing);
    }
}

/// A member of a team. Dropping it tells the others.
pub struct Team {
    router: Arc<Router>,
    pool: Arc<Pool>,
    seat: u64,
    mailbox: Arc<Mailbox>,
    rank: usize,
    members: Vec<Member>,
    /// Completed.
    rounds: u64,
    failed: Option<CollectiveError>,
    /// Grants for steps to come.
    early: Vec<(Reply, Grant)>,
    /// The frame that is ours whatever the arena's state; `None` while it is granted.
    home: Option<Lease>,
    /// The plan of the last exact grouping, which is the same in every round.
    exact: Option<(Grouping, Arc<Plan>)>,
}

/// One round under way.
struct Run<'a> {
    array: &'a mut dyn Array,
    cancelled: &'a mut dyn FnMut() -> bool,
    round: Round,
    shape: Shape,
    deadline: Instant,
    next_look: Instant,
    step: usize,
    steps: usize,
    /// Chunks that are in a lease already, for the partners that get the same: by first element.
    staged: HashMap<usize, (Weak<Lease>, u32)>,
}

impl Team {
    /// This member.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Members.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.members.len()
    }

    /// Rounds completed.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// What another thread ends this team with.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.mailbox))
    }

    /// One round: `array` becomes the mean or sum over the members that `round` says. All members
    /// call it equally often. Returns when this member's part is done; others may still be at theirs.
    /// `cancelled` is asked now and then. After an error the array holds anything, and every later
    /// round ends with the same error.
    ///
    /// # Errors
    /// See [`CollectiveError`].
    pub fn all_reduce(
        &mut self,
        array: &mut dyn Array,
        round: &Round,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<(), CollectiveError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let router = Arc::clone(&self.router);
        match self.run(array, round, cancelled) {
            Ok(()) => {
                self.rounds += 1;
                router.hub.tally.rounds.add(1);
                Ok(())
            }
            Err(error) => {
                router.hub.tally.rounds_failed.add(1);
                self.leave(&error);
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }

    fn run(
        &mut self,
        array: &mut dyn Array,
        round: &Round,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<(), CollectiveError> {
        let now = Instant::now();
        let plan = self.plan(round)?;
        let mut run = Run {
            shape: Shape::new(round, array.element(), array.len()),
            array,
            cancelled,
            round: *round,
            deadline: now + round.timeout,
            next_look: now,
            step: 0,
            steps: plan.steps().len(),
            staged: HashMap::new(),
        };
        self.refuse_not_numbers(&mut run, "brings")?;
        for step in 0..run.steps {
            run.step = step;
            run.staged.clear();
            self.step(&mut run, &plan)?;
        }
        if round.operation == Operation::Mean {
            run.array.divide(plan.divisor(self.rank).unwrap_or(1))?;
        }
        self.refuse_not_numbers(
            &mut run,
            "ends (infinities of both signs, or another member's policy) with",
        )
    }

    fn plan(&mut self, round: &Round) -> Result<Arc<Plan>, CollectiveError> {
        if let Some((grouping, plan)) = &self.exact {
            if *grouping == round.grouping {
                return Ok(Arc::clone(plan));
            }
        }
        let plan = Arc::new(round.plan(self.members.len(), self.rounds)?);
        if !matches!(round.grouping, Grouping::DsSync { .. }) {
            self.exact = Some((round.grouping, Arc::clone(&plan)));
        }
        Ok(plan)
    }

    fn refuse_not_numbers(&self, run: &mut Run<'_>, does: &str) -> Result<(), CollectiveError> {
        if run.round.nan == NanPolicy::Propagate {
            return Ok(());
        }
        let Some(found) = run.array.not_numbers()? else {
            return Ok(());
        };
        let (name, count, first) = (&self.members[self.rank].name, found.count, found.first);
        let detail = format!("{name} {does} {count} NaN, the first at element {first}");
        Err(self.error(FarewellCause::NotANumber, self.rank, detail))
    }

    fn step(&mut self, run: &mut Run<'_>, plan: &Plan) -> Result<(), CollectiveError> {
        let (elements, size) = (run.array.len(), run.array.element().bytes());
        let mut step = Step::new(plan, run.step, self.rank, elements, size);
        for partner in step.partners() {
            self.greet(partner as usize)?;
        }
        for at in 0..step.incoming.len() {
            if step.incoming[at].part.chunks() == 0 {
                self.send_grant(run, step.incoming[at].part.partner, 0, Vec::new())?;
            }
        }
        for (reply, grant) in std::mem::take(&mut self.early) {
            self.granted(run, &mut step, reply, grant)?;
        }
        loop {
            self.apply(run, &mut step)?;
            self.grant(run, &mut step)?;
            if step.is_done() {
                return Ok(());
            }
            self.look(run, &step)?;
            let until = run.deadline.min(run.next_look);
            let mut next = self.mailbox.take(until);
            while let Some(event) = next {
                self.on_event(run, &mut step, event)?;
                next = self.mailbox.take_now();
            }
        }
    }

    /// Whether there is any use in going on.
    fn look(&self, run: &mut Run<'_>, step: &Step) -> Result<(), CollectiveError> {
        let needed = step.needed();
        for rank in &needed {
            let gone = &self.members[*rank as usize].gone;
            if let Some(gone) = gone.as_ref().filter(|gone| gone.from <= self.rounds) {
                return Err(self.error(gone.cause, gone.culprit, gone.detail.clone()));
            }
        }
        let now = Instant::now();
        if now >= run.deadline {
            let names: Vec<&str> = needed
                .iter()
                .take(5)
                .map(|rank| self.members[*rank as usize].name.as_str())
                .collect();
            let more = if needed.len() > 5 { " and others" } else { "" };
            let detail = format!(
                "{} waited {} ms in step {} of {} for {}{more}",
                self.members[self.rank].name,
                run.round.timeout.as_millis(),
                run.step + 1,
                run.steps,
                names.join(", ")
            );
            let culprit = needed.first().map_or(self.rank, |rank| *rank as usize);
            return Err(self.error(FarewellCause::TimedOut, culprit, detail));
        }
        if now >= run.next_look {
            run.next_look = now + LOOK;
            if (run.cancelled)() {
                let detail = format!("{} was told to stop", self.members[self.rank].name);
                return Err(self.error(FarewellCause::GaveUp, self.rank, detail));
            }
        }
        Ok(())
    }

    fn on_event(
        &mut self,
        run: &mut Run<'_>,
        step: &mut Step,
        event: Event,
    ) -> Result<(), CollectiveError> {
        match event {
            Event::Granted(reply, grant) => self.granted(run, step, reply, grant),
            Event::Landed { rank, chunk, lease } => {
                step.keep(rank, chunk, lease);
                self.apply(run, step)
            }
            Event::Knocked(knock) => self.knocked(&knock),
            Event::Lost { rank, detail } => {
                let member = &mut self.members[rank as usize];
                let detail = format!("{} was lost: {detail}", member.name);
                member.gone.get_or_insert(Gone {
                    from: 0,
                    cause: FarewellCause::Lost,
                    culprit: rank as usize,
                    detail,
                });
                Ok(())
            }
            Event::Farewell(farewell) => {
                self.farewell(farewell);
                Ok(())
            }
            Event::Closing => Err(CollectiveError::Closed),
        }
    }

    fn knocked(&self, knock: &Knock) -> Result<(), CollectiveError> {
        let (as_rank, of) = (knock.to_rank.get() as usize, knock.ranks.get() as usize);
        if (as_rank, of) == (self.rank, self.members.len()) {
            return Ok(());
        }
        let (other, name) = (knock.from_rank.get(), &self.members[self.rank].name);
        let ranks = self.members.len();
        let detail = format!(
            "rank {other} takes {name} of {ranks} for rank {as_rank} of {of}: their invitations differ"
        );
        Err(self.error(FarewellCause::Mismatch, other as usize, detail))
    }

    /// What it did for the rounds before stays done, so that only who needs it later fails. Why is
    /// passed on as it was said: all members that fail name the same rank.
    fn farewell(&mut self, farewell: Farewell) {
        if let Some(member) = self.members.get_mut(farewell.from_rank as usize) {
            member.gone.get_or_insert(Gone {
                from: farewell.round,
                cause: farewell.cause,
                culprit: farewell.culprit as usize,
                detail: farewell.detail,
            });
        }
    }

    /// Makes us known to a partner, which also shows whether it is there.
    fn greet(&mut self, rank: usize) -> Result<(), CollectiveError> {
        if self.members[rank].greeted {
            return Ok(());
        }
        self.members[rank].greeted = true;
        let knock = Knock {
            from_seat: self.seat.into(),
            from_rank: (self.rank as u32).into(),
            to_rank: (rank as u32).into(),
            ranks: (self.members.len() as u32).into(),
            reserved: 0.into(),
        };
        self.send(rank, What::Knock { knock, tries: 0 })
    }

    fn send(&self, rank: usize, what: What) -> Result<(), CollectiveError> {
        let member = &self.members[rank];
        let errand = Errand {
            seat: self.seat,
            to: member.partner,
            what,
        };
        self.router.send_errand(errand).map_err(|(_, why)| {
            let detail = format!("{} was lost: {why}", member.name);
            self.error(FarewellCause::Lost, rank, detail)
        })
    }

    fn send_grant(
        &self,
        run: &Run<'_>,
        to: u32,
        first_chunk: u32,
        leases: Vec<Memory>,
    ) -> Result<(), CollectiveError> {
        let head = GrantHead {
            step: (run.step as u32).into(),
            from_rank: (self.rank as u32).into(),
            first_chunk: first_chunk.into(),
            ..run.shape.head(self.rounds)
        };
        let head = Box::new(head);
        self.send(to as usize, What::Grant { head, leases })
    }

    /// Gives memory for what comes next, as far as there is some.
    fn grant(&mut self, run: &Run<'_>, step: &mut Step) -> Result<(), CollectiveError> {
        // Not for every chunk that was applied, but for half a window at once.
        if step.outstanding() > WINDOW / 2 {
            return Ok(());
        }
        let mut grants: Vec<(usize, u32, Vec<Memory>)> = Vec::new();
        while step.outstanding() < WINDOW {
            let Some((chunk, at, bytes)) = step.next_grant() else {
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
            step.granted_one();
            let memory = (lease, bytes as u32);
            match grants.iter_mut().find(|(to, _, _)| *to == at) {
                Some((_, _, leases)) => leases.push(memory),
                None => grants.push((at, chunk, vec![memory])),
            }
        }
        for (at, first_chunk, leases) in grants {
            self.send_grant(run, step.incoming[at].part.partner, first_chunk, leases)?;
        }
        Ok(())
    }

    /// A partner wants a part.
    fn granted(
        &mut self,
        run: &mut Run<'_>,
        step: &mut Step,
        reply: Reply,
        grant: Grant,
    ) -> Result<(), CollectiveError> {
        let (round, at) = (grant.head.round.get(), grant.head.step.get() as usize);
        let early = round > self.rounds || (round == self.rounds && at > run.step);
        if early && self.early.len() < MAX_EARLY {
            self.early.push((reply, grant));
            return Ok(());
        }
        let theirs = Shape::of(&grant.head);
        let rank = grant.head.from_rank.get();
        let same_step = (round, at) == (self.rounds, run.step) && theirs == run.shape;
        let wanted = step.outgoing.iter_mut();
        let outgoing = wanted
            .filter(|_| same_step)
            .find(|outgoing| outgoing.part.partner == rank);
        let Some(outgoing) = outgoing else {
            return Err(self.mismatch(run, rank, round, &theirs));
        };
        outgoing.heard = true;
        let numbers = grant.head.first_chunk.get()..;
        for (credit, number) in grant.credits.iter().zip(numbers) {
            let place = outgoing.part.chunk(number);
            let Some((first, bytes)) = place.filter(|(_, b)| *b == credit.length.get() as usize)
            else {
                return Err(self.mismatch(run, rank, round, &theirs));
            };
            outgoing.part.done += 1;
            let (source, crc) = stage(&self.pool, run, first, bytes)?.ok_or_else(|| {
                let name = &self.members[self.rank].name;
                let detail = format!("{name} had no memory to send from, or was told to stop");
                CollectiveError::Failed {
                    cause: FarewellCause::GaveUp,
                    rank: self.rank as u32,
                    round: self.rounds,
                    detail,
                }
            })?;
            self.router.hub.tally.bytes.add(bytes as u64);
            let posting = Posting {
                seat: self.seat,
                peer: reply.peer,
                source,
                target: RemoteRange {
                    key: credit.key.get(),
                    offset: credit.offset.get(),
                    length: bytes as u32,
                },
                to: self.members[rank as usize].partner.seat,
                landed: Landed {
                    round,
                    step: at as u32,
                    from_rank: self.rank as u32,
                    chunks: vec![Chunk {
                        credit: number.into(),
                        length: (bytes as u32).into(),
                        crc: crc.into(),
                        reserved: 0.into(),
                    }],
                },
            };
            let mut inboxes = self.router.inboxes().iter();
            if let Some((_, inbox)) = inboxes.find(|(kind, _)| *kind == reply.fabric) {
                inbox.send(Command::Collective(Order::Post(posting)));
            }
        }
        Ok(())
    }

    fn mismatch(&self, run: &Run<'_>, rank: u32, round: u64, theirs: &Shape) -> CollectiveError {
        let (rank, ours) = (rank as usize, &self.members[self.rank].name);
        let Some(other) = self.members.get(rank) else {
            let detail = format!("{ours} was asked for a part by rank {rank}, which there is not");
            return self.error(FarewellCause::Mismatch, self.rank, detail);
        };
        let detail = format!(
            "{} has {} in round {round}, {ours} has {} in round {}",
            other.name,
            theirs.differs_from(&run.shape),
            run.shape.differs_from(theirs),
            self.rounds
        );
        self.error(FarewellCause::Mismatch, rank, detail)
    }

    /// Works in what has arrived and whose turn it is.
    fn apply(&mut self, run: &mut Run<'_>, step: &mut Step) -> Result<(), CollectiveError> {
        while let Some((at, first, lease, chunk)) = step.next_arrived() {
            let bytes = &lease.bytes()[..chunk.length.get() as usize];
            let (expected, got) = (chunk.crc.get(), crc32c(bytes));
            let incoming = &step.incoming[at];
            if expected != got {
                let (rank, length) = (incoming.part.partner as usize, bytes.len());
                let detail = format!(
                    "{length} bytes of {} arrived with CRC-32C {got:#010x} where it sent {expected:#010x}",
                    self.members[rank].name
                );
                return Err(self.error(FarewellCause::Corrupt, rank, detail));
            }
            match incoming.action {
                Action::Add => run.array.add(first, bytes)?,
                Action::Replace => run.array.store(first, bytes)?,
            }
            if self.home.is_none() && lease.capacity() == FRAME_BYTES {
                self.home = Some(lease);
            }
        }
        Ok(())
    }

    fn error(&self, cause: FarewellCause, rank: usize, detail: String) -> CollectiveError {
        CollectiveError::Failed {
            cause,
            rank: rank as u32,
            round: self.rounds,
            detail,
        }
    }

    /// Tells the others why this member takes no further part.
    fn leave(&self, why: &CollectiveError) {
        let name = &self.members[self.rank].name;
        let (cause, culprit, detail) = match why {
            CollectiveError::Failed {
                cause,
                rank,
                detail,
                ..
            } => (*cause, *rank, detail.clone()),
            CollectiveError::Closed => {
                let detail = format!("{name} left the team after {} rounds", self.rounds);
                (FarewellCause::Left, self.rank as u32, detail)
            }
            other => {
                let detail = format!("{name}: {other}");
                (FarewellCause::GaveUp, self.rank as u32, detail)
            }
        };
        let farewell = Farewell {
            round: self.rounds,
            from_rank: self.rank as u32,
            culprit,
            cause,
            detail,
        };
        say_farewell(&self.router, self.seat, &farewell);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.leave(&CollectiveError::Closed);
    }
}

/// Ends a seat and tells whoever knocked at it; once.
fn say_farewell(router: &Router, seat: u64, farewell: &Farewell) {
    if router.hub.leave(seat, farewell) {
        for (_, inbox) in router.inboxes() {
            let order = Order::Leave(seat, farewell.clone());
            inbox.send(Command::Collective(order));
        }
    }
}

/// A chunk of the array in a lease, shared with the partners that get the same one; `None`: no
/// memory came before the deadline, or the caller gave up.
fn stage(
    pool: &Arc<Pool>,
    run: &mut Run<'_>,
    first: usize,
    bytes: usize,
) -> Result<Option<(Arc<Lease>, u32)>, CollectiveError> {
    if let Some((lease, crc)) = run.staged.get(&first) {
        if let Some(lease) = lease.upgrade() {
            return Ok(Some((lease, *crc)));
        }
    }
    let mut lease = loop {
        let now = Instant::now();
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
