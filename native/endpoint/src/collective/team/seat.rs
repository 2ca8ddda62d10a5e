//! A seat: what a team is made of.

use super::members::{say_farewell, Member};
use super::{Team, JOIN_WAIT};
use crate::collective::hub::{nobody, Mailbox};
use crate::collective::room::Partner;
use crate::collective::CollectiveError;
use crate::router::Router;
use faro_pool::{Pool, Purpose, PAGE_BYTES};
use faro_wire::{BootstrapId, Card};
use std::sync::Arc;
use std::time::Instant;

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
        let invitation = BootstrapId {
            member: self.number,
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
            let invitation = BootstrapId::decode(bytes)
                .map_err(|source| CollectiveError::BootstrapId { rank, source })?;
            members.push(Member {
                partner: Partner {
                    handle: self.router.add_peer(&invitation.card),
                    seat: invitation.member,
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
            .lease_before(PAGE_BYTES, Purpose::Read, Instant::now() + JOIN_WAIT)
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
