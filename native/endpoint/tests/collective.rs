//! Teams over every fabric: the sums are right, and what goes wrong names a rank at every member.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/by_hand.rs"]
mod by_hand;
#[macro_use]
mod support;
#[path = "support/teams.rs"]
mod teams;

use faro_endpoint::collective::{CollectiveError, Grouping, NanPolicy, Operation, Round, Team};
use faro_endpoint::{Endpoint, FabricChoice, ManualEndpoint};
use faro_exchange::collective::dssync_groups;
use faro_fabric::{
    ConnectionId, Event, Fabric, FabricError, Intercept, InterceptedFabric, Message, OwnIdentity,
    RejectedPost,
};
use faro_pool::Pool;
use faro_secure::{Protection, Secret, StaticKey};
use faro_wire::message::{AbortCause, Incoming, ToMember};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::{config, counter, until, until_leases_are_back};
use teams::{all, doubles, dssync, endpoints, floats, round, team, team_in_racks};

over_every_fabric!(
    sums_and_means_over_all,
    groups_keep_the_mean_and_come_together,
    all_ranks_get_the_same_bits,
    arrays_of_many_frames,
    many_rounds,
    members_by_rack_and_slow_ones_apart,
    another_length_names_both,
    another_mode_names_both,
    a_nan_names_rank_and_position,
    a_member_that_leaves,
    a_member_whose_process_is_gone,
    a_member_that_does_not_come,
    a_caller_that_is_told_to_stop,
    a_late_member_lets_its_partner_send_first,
);

/// Returns a member's first values: whole numbers, so that sums are exact in any order.
fn start(rank: usize, elements: usize) -> Vec<f64> {
    (0..elements)
        .map(|i| ((rank * 7919 + i * 31) % 1009) as f64 - 500.0)
        .collect()
}

fn sums(of: impl Iterator<Item = usize> + Clone, elements: usize) -> Vec<f64> {
    let mut sums = vec![0.0; elements];
    for rank in of {
        for (sum, value) in sums.iter_mut().zip(start(rank, elements)) {
            *sum += value;
        }
    }
    sums
}

/// Ranks of one endpoint, of several, more ranks than elements, no elements.
fn sums_and_means_over_all(fabric: FabricChoice) {
    for (ranks, elements, hosts) in [
        (1, 5, 1),
        (2, 1000, 2),
        (3, 10, 1),
        (7, 3, 3),
        (9, 501, 3),
        (4, 0, 2),
    ] {
        let endpoints = endpoints(fabric, hosts);
        let expected = sums(0..ranks, elements);
        for grouping in [Grouping::Grid, Grouping::Full] {
            let results = all(team(&endpoints, ranks), |team| {
                let mut values = start(team.rank(), elements);
                doubles(team, &mut values, &round(grouping, Operation::Sum)).unwrap();
                let mut again: Vec<f32> = start(team.rank(), elements)
                    .iter()
                    .map(|v| *v as f32)
                    .collect();
                floats(team, &mut again, &round(grouping, Operation::Mean)).unwrap();
                assert_eq!(team.rounds(), 2);
                (values, again)
            });
            for (sum, mean) in results {
                assert_eq!(sum, expected, "{grouping:?} of {ranks}");
                for (mean, sum) in mean.iter().zip(&expected) {
                    assert_eq!(*mean, *sum as f32 / ranks as f32);
                }
            }
        }
        endpoints.iter().for_each(|e| until_leases_are_back(e));
    }
}

fn groups_keep_the_mean_and_come_together(fabric: FabricChoice) {
    let (ranks, elements) = (8, 40);
    let endpoints = endpoints(fabric, 3);
    let rounds = 10;
    let results = all(team(&endpoints, ranks), |team| {
        let mut values = start(team.rank(), elements);
        doubles(team, &mut values, &round(dssync(2), Operation::Sum)).unwrap();
        let first = values.clone();
        let mut values = start(team.rank(), elements);
        for _ in 1..=rounds {
            doubles(team, &mut values, &round(dssync(2), Operation::Mean)).unwrap();
        }
        (first, values)
    });
    for group in dssync_groups(ranks, 2, 11, 0).unwrap() {
        for rank in &group {
            assert_eq!(results[*rank].0, sums(group.iter().copied(), elements));
        }
    }
    let spread = |values: &[f64]| {
        let max = values.iter().copied().fold(f64::MIN, f64::max);
        max - values.iter().copied().fold(f64::MAX, f64::min)
    };
    for i in 0..elements {
        let now: Vec<f64> = results.iter().map(|(_, values)| values[i]).collect();
        let before: Vec<f64> = (0..ranks).map(|rank| start(rank, elements)[i]).collect();
        let (sum_now, sum_before) = (now.iter().sum::<f64>(), before.iter().sum::<f64>());
        assert!((sum_now - sum_before).abs() < 1e-9, "the mean is kept");
        assert!(
            spread(&now) < spread(&before) / 10.0,
            "{before:?} became {now:?}"
        );
    }
}

/// The sum of these values depends on the order.
fn all_ranks_get_the_same_bits(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    for grouping in [Grouping::Grid, Grouping::Full] {
        let results = all(team(&endpoints, 10), |team| {
            let mut values: Vec<f32> = (0..999)
                .map(|i| ((team.rank() * 31 + i * 17) as f32).sin() * 1e3)
                .collect();
            floats(team, &mut values, &round(grouping, Operation::Mean)).unwrap();
            values.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        });
        assert!(
            results.iter().all(|bits| *bits == results[0]),
            "{grouping:?}"
        );
    }
}

/// The arrays are larger than a member's window, and than the arena of all four can hold at once.
fn arrays_of_many_frames(fabric: FabricChoice) {
    let elements = (12 << 20) / 8 + 3;
    let endpoints = endpoints(fabric, 2);
    let expected = sums(0..4, elements);
    for grouping in [Grouping::Grid, Grouping::Full] {
        let results = all(team(&endpoints, 4), |team| {
            let mut values = start(team.rank(), elements);
            doubles(team, &mut values, &round(grouping, Operation::Sum)).unwrap();
            values == expected
        });
        assert_eq!(results, [true; 4], "{grouping:?}");
    }
    let sent: u64 = endpoints
        .iter()
        .map(|e| counter(e, "collectiveBytes"))
        .sum();
    // 2(N-1)/N arrays by each, for the ring and for the grid.
    assert_eq!(sent, (6 + 6) * elements as u64 * 8);
    endpoints.iter().for_each(|e| until_leases_are_back(e));
}

/// One team runs all groupings in turn: rounds must not disturb each other.
fn many_rounds(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    let results = all(team(&endpoints, 5), |team| {
        let mut values = vec![team.rank() as f64; 33];
        for i in 0..60 {
            let grouping = [Grouping::Grid, Grouping::Full, dssync(2)][i % 3];
            doubles(team, &mut values, &round(grouping, Operation::Mean)).unwrap();
        }
        values
    });
    for values in results {
        assert!(values.iter().all(|v| (v - 2.0).abs() < 1e-9), "{values:?}");
    }
    let rounds: u64 = endpoints
        .iter()
        .map(|e| counter(e, "collectiveRounds"))
        .sum();
    assert_eq!(rounds, 300);
}

/// Whichever members are found slow, the mean stays, and a round over all makes all the same.
fn members_by_rack_and_slow_ones_apart(fabric: FabricChoice) {
    let (ranks, elements) = (8, 40);
    let endpoints = endpoints(fabric, 2);
    let expected = sums(0..ranks, elements);
    let teams = team_in_racks(&endpoints, ranks, |rank| format!("rack {}", rank % 3));
    let results = all(teams, |team| {
        team.keep_slow_apart();
        let mut first = start(team.rank(), elements);
        doubles(team, &mut first, &round(dssync(2), Operation::Sum)).unwrap();
        let mut values = start(team.rank(), elements);
        for _ in 1..20 {
            doubles(team, &mut values, &round(dssync(2), Operation::Mean)).unwrap();
        }
        doubles(team, &mut values, &round(Grouping::Grid, Operation::Mean)).unwrap();
        assert_eq!(team.rounds(), 23, "two looks are rounds");
        (first, values)
    });
    for rack in [&[0, 3, 6][..], &[1, 4, 7], &[2, 5]] {
        for rank in rack {
            assert_eq!(results[*rank].0, sums(rack.iter().copied(), elements));
        }
    }
    for (_, values) in &results {
        assert_eq!(values, &results[0].1);
        for (value, sum) in values.iter().zip(&expected) {
            assert!((value - sum / ranks as f64).abs() < 1e-9);
        }
    }
    endpoints.iter().for_each(|e| until_leases_are_back(e));
}

fn rounds_failed(endpoints: &[Arc<Endpoint>]) -> u64 {
    let failed = endpoints
        .iter()
        .map(|e| counter(e, "collectiveRoundsFailed"));
    failed.sum()
}

/// Returns the failure that every member got.
fn failures(results: Vec<Result<(), CollectiveError>>) -> Vec<(AbortCause, u32, String)> {
    results
        .into_iter()
        .map(|result| match result {
            Err(CollectiveError::Failed {
                cause,
                rank,
                detail,
                ..
            }) => (cause, rank, detail),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn another_length_names_both(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    for grouping in [Grouping::Grid, Grouping::Full, dssync(4)] {
        let results = all(team(&endpoints, 4), |team| {
            let mut values = vec![1.0; 100 - team.rank() / 3];
            doubles(team, &mut values, &round(grouping, Operation::Sum))
        });
        for (cause, rank, detail) in failures(results) {
            assert_eq!(cause, AbortCause::Mismatch, "{detail}");
            assert!(
                detail.contains("99 doubles") && detail.contains("100 doubles"),
                "{detail}"
            );
            assert!(rank == 3 || detail.contains("rank 3"), "{rank}: {detail}");
        }
    }
}

fn another_mode_names_both(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    let results = all(team(&endpoints, 4), |team| {
        let operation = if team.rank() == 1 {
            Operation::Mean
        } else {
            Operation::Sum
        };
        floats(team, &mut [1.0; 10], &round(Grouping::Grid, operation))
    });
    for (cause, _, detail) in failures(results) {
        assert_eq!(cause, AbortCause::Mismatch, "{detail}");
        assert!(
            detail.contains("rank 1") && detail.contains("mean"),
            "{detail}"
        );
    }
}

fn a_nan_names_rank_and_position(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    let values = |rank: usize| {
        let mut values = vec![rank as f32; 50];
        if rank == 2 {
            values[17] = f32::NAN;
            values[40] = f32::NAN;
        }
        values
    };
    let fail = round(Grouping::Grid, Operation::Mean);
    let results = all(team(&endpoints, 4), |team| {
        let failed = floats(team, &mut values(team.rank()), &fail);
        let again = floats(team, &mut [0.0; 50], &fail);
        assert_eq!(
            failed.as_ref().unwrap_err().to_string(),
            again.unwrap_err().to_string(),
            "the team is of no further use"
        );
        failed
    });
    for (cause, rank, detail) in failures(results) {
        assert_eq!((cause, rank), (AbortCause::NotANumber, 2));
        assert!(detail.contains("rank 2 (executor-0)"), "{detail}");
        assert!(
            detail.contains("2 NaN, the first at element 17"),
            "{detail}"
        );
    }
    let propagate = Round {
        nan: NanPolicy::Propagate,
        ..fail
    };
    let results = all(team(&endpoints, 4), |team| {
        let mut values = values(team.rank());
        floats(team, &mut values, &propagate).unwrap();
        values
    });
    for values in results {
        assert!(values[17].is_nan() && values[40].is_nan());
        assert_eq!(values[18], 1.5);
    }
}

/// The member has done its part of the first round, and the others wait for it in the second.
fn a_member_that_leaves(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    for grouping in [Grouping::Grid, Grouping::Full] {
        let results = all(team(&endpoints, 4), |team| {
            floats(team, &mut [1.0; 10], &round(grouping, Operation::Sum)).unwrap();
            if team.rank() == 1 {
                team.closer().close();
            }
            floats(team, &mut [1.0; 10], &round(grouping, Operation::Sum))
        });
        for (at, result) in results.into_iter().enumerate() {
            match result {
                Err(CollectiveError::Closed) => assert_eq!(at, 1),
                Err(CollectiveError::Failed {
                    cause,
                    rank,
                    round,
                    detail,
                }) => {
                    assert_eq!((cause, rank, round), (AbortCause::Left, 1, 1), "{detail}");
                    assert!(detail.contains("rank 1 (executor-1) left"), "{detail}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Simulates that an executor is killed: its endpoint is closed, and no ABORT is sent.
fn a_member_whose_process_is_gone(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 3);
    let (gone, stay) = endpoints.split_last().unwrap();
    let (closing, arrived) = (AtomicBool::new(false), std::sync::Barrier::new(6));
    let results = all(team(&endpoints, 6), |team| {
        floats(team, &mut [1.0; 10], &round(Grouping::Grid, Operation::Sum)).unwrap();
        arrived.wait();
        if team.rank() % 3 == 2 {
            if !closing.swap(true, Ordering::AcqRel) {
                gone.close();
            }
            return None;
        }
        Some(floats(
            team,
            &mut [1.0; 10],
            &round(Grouping::Grid, Operation::Sum),
        ))
    });
    for (cause, rank, detail) in failures(results.into_iter().flatten().collect()) {
        assert!(
            matches!(cause, AbortCause::Lost | AbortCause::Left),
            "{cause:?}: {detail}"
        );
        assert_eq!(rank % 3, 2, "{detail}");
    }
    stay.iter().for_each(|e| until_leases_are_back(e));
}

fn a_member_that_does_not_come(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    let mut hasty = round(Grouping::Grid, Operation::Sum);
    hasty.timeout = Duration::from_millis(300);
    let results = all(team(&endpoints, 4), |team| {
        if team.rank() == 3 {
            until("the others give up", || rounds_failed(&endpoints) == 3);
            return None;
        }
        Some(floats(team, &mut [1.0; 10], &hasty))
    });
    for (cause, _, detail) in failures(results.into_iter().flatten().collect()) {
        assert_eq!(cause, AbortCause::TimedOut);
        assert!(detail.contains("waited 300 ms"), "{detail}");
        assert!(detail.contains("in step "), "{detail}");
    }
}

fn a_caller_that_is_told_to_stop(fabric: FabricChoice) {
    let endpoints = endpoints(fabric, 2);
    let results = all(team(&endpoints, 3), |team| {
        let mut array: &mut [f32] = &mut [1.0; 10];
        match team.rank() {
            // Never takes part; leaves when the others have ended.
            0 => {
                until("the others end", || rounds_failed(&endpoints) == 2);
                None
            }
            rank => {
                let how = round(Grouping::Full, Operation::Sum);
                Some(team.all_reduce(&mut array, &how, &mut || rank == 1))
            }
        }
    });
    for (cause, rank, detail) in failures(results.into_iter().flatten().collect()) {
        assert_eq!((cause, rank), (AbortCause::GaveUp, 1), "{detail}");
        assert!(
            detail.contains("rank 1 (executor-1) was stopped by its caller"),
            "{detail}"
        );
    }
}

/// The steps of what a member's endpoint received and sent for its team, in that order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Way, u32)>>>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    ClearReceived,
    ClearSent,
    DataSent,
}

impl Log {
    fn at(&self, way: Way, step: u32) -> Option<usize> {
        let entries = self.0.lock().unwrap();
        entries.iter().position(|found| *found == (way, step))
    }

    /// Notes a message if `way` gives its kind a name.
    fn note(&self, message: &Message, way: impl Fn(&ToMember) -> Option<(Way, u32)>) {
        if let Ok(Incoming::ToMember(message)) = Incoming::decode(message.kind, &message.body) {
            self.0.lock().unwrap().extend(way(&message));
        }
    }
}

/// Keeps the log, and polls without waiting.
struct MessageLogger(Log);

impl Intercept for MessageLogger {
    fn send(
        &mut self,
        inner: &mut dyn Fabric,
        connection: ConnectionId,
        message: Message,
    ) -> Result<(), RejectedPost<Message>> {
        self.0.note(&message, |message| match message {
            ToMember::ClearToSend(clear) => Some((Way::ClearSent, clear.head.step.get())),
            ToMember::DataReady(ready) => Some((Way::DataSent, ready.step)),
            _ => None,
        });
        inner.send(connection, message)
    }

    fn poll(
        &mut self,
        inner: &mut dyn Fabric,
        events: &mut Vec<Event>,
        _timeout: Duration,
    ) -> Result<(), FabricError> {
        let before = events.len();
        inner.poll(events, Duration::ZERO)?;
        for event in &events[before..] {
            if let Event::Message { message, .. } = event {
                self.0.note(message, |message| match message {
                    ToMember::ClearToSend(clear) => {
                        Some((Way::ClearReceived, clear.head.step.get()))
                    }
                    _ => None,
                });
            }
        }
        Ok(())
    }
}

/// Rank 0 of a grid comes to its second step, with rank 2, when rank 2 has long cleared it to send there. Its own
/// CLEAR_TO_SEND leaves before its data, which would take the whole link for a time in which rank 2 could send as well.
fn a_late_member_lets_its_partner_send_first(fabric: FabricChoice) {
    const ELEMENTS: usize = 1_000;
    let (log, others) = (Log::default(), endpoints(fabric, 3));
    let open = |identity: &OwnIdentity, pool: &Arc<Pool>| {
        let (identity, pool) = (identity.clone(), Arc::clone(pool));
        let (_, inner) = by_hand::fabric_by_hand(fabric, identity, Protection::Clear, pool);
        let logged = InterceptedFabric::new(inner, MessageLogger(log.clone()));
        vec![Box::new(logged) as Box<dyn Fabric>]
    };
    let (key, secret) = (StaticKey::random().unwrap(), Secret::random().unwrap());
    let mut late = ManualEndpoint::start(config("late", fabric), key, secret, open).unwrap();
    let mut all = vec![Arc::clone(late.endpoint())];
    all.extend(others);
    let expected = sums(0..4, ELEMENTS);
    std::thread::scope(|scope| {
        let begin = |mut team: Team| {
            let expected = &expected;
            scope.spawn(move || {
                let mut values = start(team.rank(), ELEMENTS);
                doubles(
                    &mut team,
                    &mut values,
                    &round(Grouping::Grid, Operation::Sum),
                )
                .unwrap();
                assert_eq!(&values, expected);
            })
        };
        let mut teams = team(&all, 4);
        // Rank 1, without which rank 0 does not end its first step.
        let last = teams.remove(1);
        let mut begun: Vec<_> = teams.into_iter().map(begin).collect();
        until("rank 0 is cleared for its second step", || {
            late.turn(0);
            log.at(Way::ClearReceived, 1).is_some()
        });
        assert_eq!(log.at(Way::ClearSent, 1), None, "it is in its first step");
        begun.push(begin(last));
        until("all have the sum", || {
            late.turn(0);
            begun.iter().all(|member| member.is_finished())
        });
        begun.into_iter().for_each(|member| member.join().unwrap());
    });
    assert!(log.at(Way::ClearSent, 1) < log.at(Way::DataSent, 1));
}
