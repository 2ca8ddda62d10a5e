//! A team, from its member's side: rounds, and the steps of one.

mod member;
mod partners;
mod parts;
mod slow_members;

pub use member::TeamMember;

use super::dispatch::Dispatch;
use super::members::{Mailbox, MemberEvent, ReplyPath};
use super::round::{Grouping, NanPolicy, Operation, Round, RoundShape};
use super::step::MemberStep;
use super::{Array, CollectiveError};
use faro_exchange::collective::{Plan, RankPlaces, Stopwatch};
use faro_pool::{Lease, Pool};
use faro_sync::{clock, HashMap};
use faro_wire::message::{AbortCause, ClearToSend};
use partners::{DepartedMember, Partner};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Number of pages that one member offers its partners to write (8 MiB, as for a fetch).
const WINDOW: usize = 32;
/// Maximum number of CLEAR_TO_SEND for later steps that are kept; members that keep to the plan send
/// far fewer.
const MAX_EARLY: usize = 1 << 16;
/// Interval at which a waiting caller checks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Time for which a new team waits for its page.
const JOIN_WAIT: Duration = Duration::from_secs(5);

/// Ends a team from another thread than the one that is in its round.
pub struct Closer(Arc<Mailbox>);

impl Closer {
    /// Ends the current round and every later one with `Closed`.
    pub fn close(&self) {
        self.0.push(MemberEvent::Closing);
    }
}

/// A member of a team. Dropping it tells the others.
pub struct Team {
    dispatch: Arc<Dispatch>,
    pool: Arc<Pool>,
    /// The number of this member at its endpoint.
    member: u64,
    mailbox: Arc<Mailbox>,
    rank: usize,
    /// All members by rank, this one included.
    partners: Vec<Partner>,
    places: RankPlaces,
    /// Measures the rounds in groups, if slow members are to be kept apart.
    stopwatch: Option<Stopwatch>,
    /// Number of completed rounds.
    rounds: u64,
    failed: Option<CollectiveError>,
    /// CLEAR_TO_SEND for later steps.
    early: Vec<(ReplyPath, ClearToSend)>,
    /// The page that this team keeps whatever the arena's state; `None` while a partner may write it.
    home: Option<Lease>,
    /// The plan of the last exact grouping, which is the same in every round.
    exact: Option<(Grouping, Arc<Plan>)>,
}

/// The state of a round while it runs.
struct RoundRun<'a> {
    array: &'a mut dyn Array,
    cancelled: &'a mut dyn FnMut() -> bool,
    round: Round,
    shape: RoundShape,
    deadline: Instant,
    next_look: Instant,
    step: usize,
    steps: usize,
    /// Time when the last partner of the first step had come.
    met: Option<Instant>,
    /// Chunks that are in a lease already, for partners that get the same ones: by first element.
    staged: HashMap<usize, (Weak<Lease>, u32)>,
}

impl Team {
    /// Returns the rank of this member.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of members.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.partners.len()
    }

    /// Returns the number of completed rounds.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Returns a handle by which another thread ends this team.
    #[must_use]
    pub fn closer(&self) -> Closer {
        Closer(Arc::clone(&self.mailbox))
    }

    /// Runs one round: `array` becomes the mean or sum over the members that `round` says. All
    /// members call it equally often. Returns when this member's part is done; others may still be busy.
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
        let looked = self.look_for_slow_members(round, cancelled);
        let done = looked.and_then(|()| self.run(array, round, cancelled));
        done.inspect_err(|error| {
            self.dispatch.members.counters.rounds_failed.add(1);
            self.leave(error);
            self.failed = Some(error.clone());
        })
    }

    fn run(
        &mut self,
        array: &mut dyn Array,
        round: &Round,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<(), CollectiveError> {
        let now = clock::now();
        let plan = self.plan(round)?;
        let mut run = RoundRun {
            shape: RoundShape::new(round, array.element(), array.len()),
            array,
            cancelled,
            round: *round,
            deadline: now + round.timeout,
            next_look: now,
            step: 0,
            steps: plan.steps().len(),
            met: None,
            staged: HashMap::default(),
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
        )?;
        self.note_time(round, &plan, run.met);
        self.rounds += 1;
        self.dispatch.members.counters.rounds.add(1);
        Ok(())
    }

    fn plan(&mut self, round: &Round) -> Result<Arc<Plan>, CollectiveError> {
        if let Some((grouping, plan)) = &self.exact {
            if *grouping == round.grouping {
                return Ok(Arc::clone(plan));
            }
        }
        let plan = Arc::new(round.plan(&self.places, self.rounds)?);
        if !matches!(round.grouping, Grouping::DsSync { .. }) {
            self.exact = Some((round.grouping, Arc::clone(&plan)));
        }
        Ok(plan)
    }

    fn refuse_not_numbers(
        &self,
        run: &mut RoundRun<'_>,
        does: &str,
    ) -> Result<(), CollectiveError> {
        if run.round.nan == NanPolicy::Propagate {
            return Ok(());
        }
        let Some(found) = run.array.not_numbers()? else {
            return Ok(());
        };
        let (name, count, first) = (&self.partners[self.rank].name, found.count, found.first);
        let detail = format!("{name} {does} {count} NaN, the first at element {first}");
        Err(self.error(AbortCause::NotANumber, self.rank, detail))
    }

    fn step(&mut self, run: &mut RoundRun<'_>, plan: &Plan) -> Result<(), CollectiveError> {
        let (elements, size) = (run.array.len(), run.array.element().bytes());
        let mut step = MemberStep::new(plan, run.step, self.rank, elements, size);
        for partner in step.partners() {
            self.join(partner as usize)?;
        }
        for at in 0..step.incoming.len() {
            if step.incoming[at].part.chunks() == 0 {
                self.send_clear(run, step.incoming[at].part.partner, 0, Vec::new())?;
            }
        }
        // First what lets the partners send: a connection keeps the order, and what they were found to
        // have memory for already may fill its link for the rest of the step.
        self.offer_pages(run, &mut step)?;
        for (reply, clear) in std::mem::take(&mut self.early) {
            self.on_clear(run, &mut step, reply, clear)?;
        }
        loop {
            self.apply(run, &mut step)?;
            self.offer_pages(run, &mut step)?;
            if run.met.is_none() && step.is_cleared_by_all() {
                run.met = Some(clock::now());
            }
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

    /// Fails the step if it cannot end: a member is gone, the deadline has passed, or the caller stops.
    fn look(&self, run: &mut RoundRun<'_>, step: &MemberStep) -> Result<(), CollectiveError> {
        let needed = step.needed();
        for rank in &needed {
            let gone = &self.partners[*rank as usize].gone;
            if let Some(gone) = gone.as_ref().filter(|gone| gone.from <= self.rounds) {
                return Err(self.error(gone.cause, gone.culprit, gone.detail.clone()));
            }
        }
        let now = clock::now();
        if now >= run.deadline {
            let names: Vec<&str> = needed
                .iter()
                .take(5)
                .map(|rank| self.partners[*rank as usize].name.as_str())
                .collect();
            let more = if needed.len() > 5 { " and others" } else { "" };
            let detail = format!(
                "{} waited {} ms in step {} of {} for {}{more}",
                self.partners[self.rank].name,
                run.round.timeout.as_millis(),
                run.step + 1,
                run.steps,
                names.join(", ")
            );
            let culprit = needed.first().map_or(self.rank, |rank| *rank as usize);
            return Err(self.error(AbortCause::TimedOut, culprit, detail));
        }
        if now >= run.next_look {
            run.next_look = now + LOOK;
            if (run.cancelled)() {
                let detail = format!(
                    "{} was stopped by its caller",
                    self.partners[self.rank].name
                );
                return Err(self.error(AbortCause::GaveUp, self.rank, detail));
            }
        }
        Ok(())
    }

    fn on_event(
        &mut self,
        run: &mut RoundRun<'_>,
        step: &mut MemberStep,
        event: MemberEvent,
    ) -> Result<(), CollectiveError> {
        match event {
            MemberEvent::Cleared(reply, clear) => self.on_clear(run, step, reply, clear),
            MemberEvent::Arrived {
                rank,
                buffer,
                lease,
            } => {
                step.keep(rank, buffer, lease);
                self.apply(run, step)
            }
            MemberEvent::Joined(join) => self.on_join(&join),
            MemberEvent::Lost { rank, detail } => {
                let partner = &mut self.partners[rank as usize];
                let detail = format!("{} was lost: {detail}", partner.name);
                partner.gone.get_or_insert(DepartedMember {
                    from: 0,
                    cause: AbortCause::Lost,
                    culprit: rank as usize,
                    detail,
                });
                Ok(())
            }
            MemberEvent::Aborted(abort) => {
                self.on_abort(abort);
                Ok(())
            }
            MemberEvent::Closing => Err(CollectiveError::Closed),
        }
    }
}
