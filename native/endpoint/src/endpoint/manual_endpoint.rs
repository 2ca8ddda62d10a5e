//! An endpoint without threads, for simulations: the caller decides when each of its threads does what.
//!
//! All the rest is what runs in an executor: the services, the queues between threads, files, the arena. Compiled only
//! with the feature `simulation`, which no released library has.

use super::fabrics::Fabrics;
use super::{Endpoint, EndpointError};
use crate::config::Config;
use crate::progress::{Progress, WithoutFabric};
use crate::serve::{IoPool, Worker};
use faro_fabric::{Event, OwnIdentity};
use faro_pool::Pool;
use faro_secure::{Secret, StaticKey};
use std::sync::Arc;

/// Result of a turn of a progress thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The thread continues. Its fabric was told how long it would wait.
    Goes,
    /// The thread's fabric has failed for good: it waits for the doorbell alone.
    WithoutFabric,
    /// It has ended.
    Ended,
}

/// A progress thread.
enum SteppedThread {
    /// With its events, which are empty between turns.
    Runs(Box<Progress>, Vec<Event>),
    LostItsFabric(Box<WithoutFabric>),
    Ended,
}

/// An endpoint without threads.
pub struct ManualEndpoint {
    endpoint: Arc<Endpoint>,
    /// In the order of its fabrics.
    threads: Vec<SteppedThread>,
    files: Worker,
}

impl ManualEndpoint {
    /// An endpoint with that key and that secret on its card. `open` opens its fabrics, best first.
    ///
    /// # Errors
    /// As `Endpoint::start`.
    pub fn start(
        config: Config,
        key: StaticKey,
        secret: Secret,
        open: impl FnOnce(&OwnIdentity, &Arc<Pool>) -> Fabrics,
    ) -> Result<Self, EndpointError> {
        let mut files = None;
        let (endpoint, threads) = Endpoint::assemble(
            config,
            key,
            secret,
            |_, identity, pool| Ok(open(identity, pool)),
            |memory, catalog| {
                let (pool, worker) =
                    IoPool::without_threads(Arc::clone(memory), Arc::clone(catalog));
                files = Some(worker);
                Ok(pool)
            },
        )?;
        let thread = |progress| SteppedThread::Runs(Box::new(progress), Vec::new());
        Ok(Self {
            endpoint,
            threads: threads.into_iter().map(thread).collect(),
            files: files.ok_or(EndpointError::Closed)?,
        })
    }

    /// Returns the endpoint. `close` only tells the threads; each ends with its next turn.
    #[must_use]
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Runs one turn of the progress thread of the fabric at `place`.
    pub fn turn(&mut self, place: usize) -> Turn {
        let thread = &mut self.threads[place];
        let (next, turn) = match std::mem::replace(thread, SteppedThread::Ended) {
            SteppedThread::Runs(mut progress, mut events) => match progress.turn(&mut events) {
                Ok(true) => (SteppedThread::Runs(progress, events), Turn::Goes),
                Ok(false) => (SteppedThread::Ended, Turn::Ended),
                Err(error) => {
                    let mut without = progress.lose_fabric(error.to_string());
                    match without.turn() {
                        true => (
                            SteppedThread::LostItsFabric(Box::new(without)),
                            Turn::WithoutFabric,
                        ),
                        false => (SteppedThread::Ended, Turn::Ended),
                    }
                }
            },
            SteppedThread::LostItsFabric(mut without) => match without.turn() {
                true => (SteppedThread::LostItsFabric(without), Turn::WithoutFabric),
                false => (SteppedThread::Ended, Turn::Ended),
            },
            SteppedThread::Ended => (SteppedThread::Ended, Turn::Ended),
        };
        *thread = next;
        turn
    }

    /// Does the next task of an I/O thread.
    pub fn read_files(&mut self) {
        self.files.step();
    }

    /// Returns whether an I/O thread has a task.
    #[must_use]
    pub fn has_files_to_read(&self) -> bool {
        self.files.has_task()
    }

    /// Returns whether `completions` would return any.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        self.endpoint.queue.completions().has_any()
    }

    /// Returns whether `unresolved` would return any.
    #[must_use]
    pub fn has_questions(&self) -> bool {
        self.endpoint.catalog.has_questions()
    }

    /// Returns the number of requests of this endpoint that have not ended.
    #[must_use]
    pub fn requests_in_flight(&self) -> usize {
        self.endpoint.queue.in_flight()
    }
}
