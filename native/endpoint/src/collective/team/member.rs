//! A member that is not in a team yet.

use super::partners::Partner;
use super::{Team, JOIN_WAIT};
use crate::collective::dispatch::Dispatch;
use crate::collective::members::{unknown_member, Mailbox};
use crate::collective::pending::Address;
use crate::collective::CollectiveError;
use faro_exchange::collective::RankPlaces;
use faro_pool::{Pool, Purpose, PAGE_BYTES};
use faro_sync::clock;
use faro_wire::{BootstrapId, Card};
use std::sync::Arc;

/// A member whose team does not exist yet. Others need its [`bootstrap_id`](Self::bootstrap_id);
/// with the ids of all members it joins its [`Team`]. Dropping it before that ends it.
pub struct TeamMember {
    dispatch: Arc<Dispatch>,
    pool: Arc<Pool>,
    card: Card,
    number: u64,
    mailbox: Arc<Mailbox>,
    rack: String,
    joined: bool,
}

impl TeamMember {
    pub(crate) fn new(
        dispatch: Arc<Dispatch>,
        pool: Arc<Pool>,
        card: Card,
    ) -> Result<Self, CollectiveError> {
        let (number, mailbox) = dispatch.members.add()?;
        Ok(Self {
            dispatch,
            pool,
            card,
            number,
            mailbox,
            rack: String::new(),
            joined: false,
        })
    }

    /// Sets the rack that this member is in, which its bootstrap id tells the others.
    pub fn set_rack(&mut self, rack: &str) {
        rack.clone_into(&mut self.rack);
    }

    /// Returns the encoded id by which the other members reach this one.
    #[must_use]
    pub fn bootstrap_id(&self) -> Vec<u8> {
        let id = BootstrapId {
            member: self.number,
            rack: self.rack.clone(),
            card: self.card.clone(),
        };
        id.encode()
    }

    /// Becomes member `rank` of the team whose members have these bootstrap ids, by rank. Sends nothing
    /// yet; waits for a page of the arena.
    ///
    /// # Errors
    /// A rank that the team does not have, an id that cannot be read, no memory.
    pub fn join(mut self, rank: usize, ids: &[Vec<u8>]) -> Result<Team, CollectiveError> {
        let ranks = ids.len();
        if rank >= ranks || ranks > faro_exchange::MAX_MEMBERS {
            return Err(CollectiveError::BadRank { rank, ranks });
        }
        let mut partners = Vec::with_capacity(ranks);
        let mut racks = Vec::with_capacity(ranks);
        for (rank, bytes) in ids.iter().enumerate() {
            let id = BootstrapId::decode(bytes)
                .map_err(|source| CollectiveError::BootstrapId { rank, source })?;
            let address = Address {
                endpoint: self.dispatch.add_peer(&id.card)?,
                member: id.member,
                rank: rank as u32,
            };
            let name = format!("rank {rank} ({})", id.card.name);
            partners.push(Partner::new(address, name));
            racks.push(id.rack);
        }
        if partners[rank].address.member != self.number {
            return Err(CollectiveError::NotOurs { rank });
        }
        let home = self
            .pool
            .lease_before(PAGE_BYTES, Purpose::Read, clock::now() + JOIN_WAIT)
            .map_err(CollectiveError::Memory)?;
        self.joined = true;
        Ok(Team {
            dispatch: Arc::clone(&self.dispatch),
            pool: Arc::clone(&self.pool),
            member: self.number,
            mailbox: Arc::clone(&self.mailbox),
            rank,
            partners,
            places: RankPlaces::of_racks(&racks),
            stopwatch: None,
            rounds: 0,
            failed: None,
            early: Vec::new(),
            home: Some(home),
            exact: None,
        })
    }
}

impl Drop for TeamMember {
    fn drop(&mut self) {
        if !self.joined {
            self.dispatch.leave(self.number, &unknown_member(u32::MAX));
        }
    }
}
