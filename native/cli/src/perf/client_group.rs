//! Several clients of one server. Each has a thread; all run their rounds at the same time.

use super::args::ClientArgs;
use super::client::{PerfClient, RoundResult};
use super::protocol::{CounterValues, PerfJob};
use super::{report, PerfError};
use hdrhistogram::Histogram;
use indicatif::ProgressBar;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

type RoundEnd = Result<(RoundResult, Histogram<u64>), PerfError>;

/// One client's thread; dropping this ends it.
struct ClientThread {
    jobs: Sender<(PerfJob, ProgressBar)>,
    results: Receiver<RoundEnd>,
}

pub struct ClientGroup {
    workers: Vec<ClientThread>,
}

impl ClientGroup {
    /// Connects all clients, one after the other.
    pub fn connect(args: &ClientArgs) -> Result<Self, PerfError> {
        let workers: Result<Vec<ClientThread>, PerfError> = (0..args.clients)
            .map(|number| ClientThread::start(PerfClient::connect(args, number)?, args.seconds))
            .collect();
        Ok(Self { workers: workers? })
    }

    /// One round of all clients.
    ///
    /// # Errors
    /// That of the first client that failed.
    pub fn round(
        &self,
        job: PerfJob,
        bar: &ProgressBar,
    ) -> Result<(RoundResult, Histogram<u64>), PerfError> {
        for (number, worker) in self.workers.iter().enumerate() {
            // All take the same time; the first one shows the progress.
            let bar = if number == 0 {
                bar.clone()
            } else {
                ProgressBar::hidden()
            };
            let gone = |_| PerfError::Gone { number };
            worker.jobs.send((job, bar)).map_err(gone)?;
        }
        let mut rounds = Vec::new();
        let mut all = report::latencies()?;
        for (number, worker) in self.workers.iter().enumerate() {
            let gone = |_| PerfError::Gone { number };
            let (round, latencies) = worker.results.recv().map_err(gone)??;
            rounds.push(round);
            // Cannot fail: all histograms have the same bounds.
            all += latencies;
        }
        Ok((merged(&rounds), all))
    }
}

impl ClientThread {
    fn start(mut client: PerfClient, length: Duration) -> Result<Self, PerfError> {
        let (jobs, received) = channel::<(PerfJob, ProgressBar)>();
        let (ended, results) = channel();
        let work = move || {
            for (job, bar) in received {
                let mut tick = |time: Duration| bar.inc(time.as_millis() as u64);
                let result = report::latencies().and_then(|mut latencies| {
                    let round = client.round(job, length, &mut latencies, &mut tick)?;
                    Ok((round, latencies))
                });
                let failed = result.is_err();
                if ended.send(result).is_err() || failed {
                    return;
                }
            }
        };
        thread::Builder::new()
            .name("client".to_owned())
            .spawn(work)
            .map_err(PerfError::Thread)?;
        Ok(Self { jobs, results })
    }
}

/// One round with the transfers of all, at the sum of their rates.
fn merged(rounds: &[RoundResult]) -> RoundResult {
    let transfers = rounds.iter().map(|round| round.transfers).sum();
    let rate: f64 = rounds
        .iter()
        .map(|round| round.transfers as f64 / round.seconds)
        .sum();
    let longest = rounds.iter().map(|round| round.seconds).fold(0.0, f64::max);
    let mut grew = [CounterValues::new(), CounterValues::new()];
    let [clients, server] = &mut grew;
    for round in rounds {
        for (name, count) in &round.grew[0] {
            *clients.entry(name.clone()).or_default() += count;
        }
        // The server's counters are not per client: each client got those of all.
        for (name, count) in &round.grew[1] {
            let max = server.entry(name.clone()).or_default();
            *max = (*max).max(*count);
        }
    }
    RoundResult {
        transfers,
        seconds: if rate > 0.0 {
            transfers as f64 / rate
        } else {
            longest
        },
        grew,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_own_costs_are_added_and_the_servers_is_not() {
        let counters = |value| CounterValues::from([("posts".to_owned(), value)]);
        let round = |transfers, seconds, own, server| RoundResult {
            transfers,
            seconds,
            grew: [counters(own), counters(server)],
        };
        let all = merged(&[round(100, 1.0, 7, 300), round(400, 2.0, 5, 310)]);
        assert_eq!(all.transfers, 500);
        assert!((all.transfers as f64 / all.seconds - 300.0).abs() < 1e-9);
        assert_eq!(all.grew, [counters(12), counters(310)]);
    }

    #[test]
    fn a_round_without_transfers_lasts_as_long_as_the_longest() {
        let idle = RoundResult {
            transfers: 0,
            seconds: 1.5,
            grew: Default::default(),
        };
        assert_eq!(merged(&[idle]).seconds, 1.5);
    }
}
