//! The other members, as this one knows them: which have gone and why, and what they are sent.

use super::Team;
use crate::collective::pending::{Address, PendingKind, PendingSend};
use crate::collective::CollectiveError;
use faro_wire::message::{Abort, AbortCause, Join};

/// Another member, or this one.
pub(super) struct Partner {
    pub(super) address: Address,
    /// Rank and executor, for error texts.
    pub(super) name: String,
    /// It was sent a JOIN.
    joined: bool,
    pub(super) gone: Option<DepartedMember>,
}

impl Partner {
    pub(super) fn new(address: Address, name: String) -> Self {
        Self {
            address,
            name,
            joined: false,
            gone: None,
        }
    }
}

/// A member that takes no further part.
pub(super) struct DepartedMember {
    /// From the round of this number on.
    pub(super) from: u64,
    pub(super) cause: AbortCause,
    /// The rank that failed first.
    pub(super) culprit: usize,
    pub(super) detail: String,
}

impl Team {
    pub(super) fn on_join(&self, join: &Join) -> Result<(), CollectiveError> {
        let (as_rank, of) = (join.to_rank.get() as usize, join.ranks.get() as usize);
        if (as_rank, of) == (self.rank, self.partners.len()) {
            return Ok(());
        }
        let (other, name) = (join.from_rank.get(), &self.partners[self.rank].name);
        let ranks = self.partners.len();
        let detail = format!(
            "rank {other} takes {name} of {ranks} for rank {as_rank} of {of}: their bootstrap ids differ"
        );
        Err(self.error(AbortCause::Mismatch, other as usize, detail))
    }

    /// Notes that a partner has left. Its parts of earlier rounds stay valid, so only members that
    /// need it later fail. The cause is passed on unchanged, so that all members that fail name the
    /// same rank.
    pub(super) fn on_abort(&mut self, abort: Abort) {
        if let Some(partner) = self.partners.get_mut(abort.from_rank as usize) {
            partner.gone.get_or_insert(DepartedMember {
                from: abort.round,
                cause: abort.cause,
                culprit: abort.culprit as usize,
                detail: abort.detail,
            });
        }
    }

    /// Joins a partner, which also shows whether it can be reached.
    pub(super) fn join(&mut self, rank: usize) -> Result<(), CollectiveError> {
        if self.partners[rank].joined {
            return Ok(());
        }
        self.partners[rank].joined = true;
        let join = Join {
            from_member: self.member.into(),
            from_rank: (self.rank as u32).into(),
            to_rank: (rank as u32).into(),
            ranks: (self.partners.len() as u32).into(),
            reserved: 0.into(),
        };
        self.send(rank, PendingKind::Join { join, tries: 0 })
    }

    pub(super) fn send(&self, rank: usize, what: PendingKind) -> Result<(), CollectiveError> {
        let partner = &self.partners[rank];
        let pending = PendingSend {
            member: self.member,
            to: partner.address,
            what,
        };
        self.dispatch.send(pending).map_err(|(_, why)| {
            let detail = format!("{} was lost: {why}", partner.name);
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
        let name = &self.partners[self.rank].name;
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
        let abort = Abort {
            round: self.rounds,
            from_rank: self.rank as u32,
            culprit,
            cause,
            detail,
        };
        self.dispatch.leave(self.member, &abort);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.leave(&CollectiveError::Closed);
    }
}
