//! The other members, as this one knows them: who is there, who has gone and why, what they are told.

use super::Team;
use crate::collective::room::{Errand, Order, Partner, What};
use crate::collective::CollectiveError;
use crate::progress::Command;
use crate::router::Router;
use faro_wire::message::{Abort, AbortCause, Join};

/// Another member, or this one.
pub(super) struct Member {
    pub(super) partner: Partner,
    /// For people: rank and executor.
    pub(super) name: String,
    /// It was knocked at.
    pub(super) greeted: bool,
    pub(super) gone: Option<Gone>,
}

/// A member that takes no further part.
pub(super) struct Gone {
    /// From the round of this number on.
    pub(super) from: u64,
    pub(super) cause: AbortCause,
    /// With whom it began.
    pub(super) culprit: usize,
    pub(super) detail: String,
}

impl Team {
    pub(super) fn knocked(&self, knock: &Join) -> Result<(), CollectiveError> {
        let (as_rank, of) = (knock.to_rank.get() as usize, knock.ranks.get() as usize);
        if (as_rank, of) == (self.rank, self.members.len()) {
            return Ok(());
        }
        let (other, name) = (knock.from_rank.get(), &self.members[self.rank].name);
        let ranks = self.members.len();
        let detail = format!(
            "rank {other} takes {name} of {ranks} for rank {as_rank} of {of}: their invitations differ"
        );
        Err(self.error(AbortCause::Mismatch, other as usize, detail))
    }

    /// What it did for the rounds before stays done, so that only who needs it later fails. Why is
    /// passed on as it was said: all members that fail name the same rank.
    pub(super) fn farewell(&mut self, farewell: Abort) {
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
    pub(super) fn greet(&mut self, rank: usize) -> Result<(), CollectiveError> {
        if self.members[rank].greeted {
            return Ok(());
        }
        self.members[rank].greeted = true;
        let knock = Join {
            from_member: self.seat.into(),
            from_rank: (self.rank as u32).into(),
            to_rank: (rank as u32).into(),
            ranks: (self.members.len() as u32).into(),
            reserved: 0.into(),
        };
        self.send(rank, What::Join { knock, tries: 0 })
    }

    pub(super) fn send(&self, rank: usize, what: What) -> Result<(), CollectiveError> {
        let member = &self.members[rank];
        let errand = Errand {
            seat: self.seat,
            to: member.partner,
            what,
        };
        self.router.send_errand(errand).map_err(|(_, why)| {
            let detail = format!("{} was lost: {why}", member.name);
            self.error(AbortCause::Lost, rank, detail)
        })
    }

    pub(super) fn error(&self, cause: AbortCause, rank: usize, detail: String) -> CollectiveError {
        CollectiveError::Failed {
            cause,
            rank: rank as u32,
            round: self.rounds,
            detail,
        }
    }

    /// Tells the others why this member takes no further part.
    pub(super) fn leave(&self, why: &CollectiveError) {
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
                (AbortCause::Left, self.rank as u32, detail)
            }
            other => {
                let detail = format!("{name}: {other}");
                (AbortCause::GaveUp, self.rank as u32, detail)
            }
        };
        let farewell = Abort {
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
pub(super) fn say_farewell(router: &Router, seat: u64, farewell: &Abort) {
    if router.hub.leave(seat, farewell) {
        for (_, inbox) in router.inboxes() {
            let order = Order::Leave(seat, farewell.clone());
            inbox.send(Command::Collective(order));
        }
    }
}
