//! Keeps members behind a slow link apart in mode `dssync`: measures rounds, shares the times with all
//! members and applies the rule of `faro_exchange::collective::slow_ranks`.

use super::Team;
use crate::collective::round::{Grouping, Operation, Round};
use crate::collective::CollectiveError;
use faro_exchange::collective::{slow_ranks, Plan, Stopwatch};
use faro_sync::clock;
use std::time::Instant;

impl Team {
    /// Keeps members whose links are slow apart in rounds of [`Grouping::DsSync`]: they go on alone but for
    /// one round in eight. After each eight rounds this takes another one, of all members. All members
    /// call it before their first round, or none.
    pub fn keep_slow_apart(&mut self) {
        self.stopwatch = Some(Stopwatch::default());
    }

    /// Shares the members' times if that is due before a round in groups.
    pub(super) fn look_for_slow_members(
        &mut self,
        round: &Round,
        cancelled: &mut dyn FnMut() -> bool,
    ) -> Result<(), CollectiveError> {
        if !matches!(round.grouping, Grouping::DsSync { .. }) {
            return Ok(());
        }
        let Some(own) = self.stopwatch.as_mut().and_then(Stopwatch::due) else {
            return Ok(());
        };
        let mut times = vec![0.0; self.ranks()];
        times[self.rank] = own;
        let exact = Round {
            grouping: Grouping::Grid,
            operation: Operation::Sum,
            ..*round
        };
        let mut array: &mut [f64] = &mut times;
        self.run(&mut array, &exact, cancelled)?;
        let slow = slow_ranks(&times);
        log::debug!("team: ranks apart: {slow:?} of {times:?} s");
        self.places.set_apart(slow);
        Ok(())
    }

    /// Notes how long a round took this member, from when the last of its group had come.
    pub(super) fn note_time(&mut self, round: &Round, plan: &Plan, met: Option<Instant>) {
        let Some(stopwatch) = self.stopwatch.as_mut() else {
            return;
        };
        if matches!(round.grouping, Grouping::DsSync { .. }) {
            let took = met.map_or(0.0, |met| clock::now().duration_since(met).as_secs_f64());
            stopwatch.note(took, plan.divisor(self.rank).unwrap_or(1));
        }
    }
}
