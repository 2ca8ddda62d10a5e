//! An endpoint without threads, for simulations: the caller decides when each of its threads does what.
//!
//! All the rest is what runs in an executor: the services, the queues between threads, files, the arena. Compiled only
//! with the feature `simulation`, which no released library has.

use super::start::Fabrics;
use super::{Endpoint, EndpointError};
use crate::config::Config;
use crate::progress::{Progress, WithoutFabric};
use crate::serve::{IoPool, Worker};
use faro_fabric::{Event, OwnIdentity};
use faro_pool::Pool;
use faro_secure::{Secret, StaticKey};
use std::sync::Arc;

/// What a turn of a progress thread led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It goes on. Its fabric was told how long it would wait.
    Goes,
    /// Its fabric has failed for good: it waits for the doorbell alone.
    WithoutFabric,
    /// It has ended.
    Ended,
}

/// A progress thread.
enum Thread {
    /// With its events, which are empty between turns.
    Runs(Box<Progress>, Vec<Event>),
    LostItsFabric(Box<WithoutFabric>),
    Ended,
}

/// An endpoint without threads.
pub struct Stepped {
    endpoint: Arc<Endpoint>,
    /// In the order of its fabrics.
    threads: Vec<Thread>,
    files: Worker,
}

impl Stepped {
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
        let thread = |progress| Thread::Runs(Box::new(progress), Vec::new());
        Ok(Self {
            endpoint,
            threads: threads.into_iter().map(thread).collect(),
            files: files.ok_or(EndpointError::Closed)?,
        })
    }

    /// The endpoint. `close` only tells the threads; each ends with its next turn.
    #[must_use]
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// One turn of the progress thread of the fabric at `place`.
    pub fn turn(&mut self, place: usize) -> Turn {
        let thread = &mut self.threads[place];
        let (next, turn) = match std::mem::replace(thread, Thread::Ended) {
            Thread::Runs(mut progress, mut events) => match progress.turn(&mut events) {
                Ok(true) => (Thread::Runs(progress, events), Turn::Goes),
                Ok(false) => (Thread::Ended, Turn::Ended),
                Err(error) => {
                    let mut without = progress.lose_fabric(error.to_string());
                    match without.turn() {
                        true => (
                            Thread::LostItsFabric(Box::new(without)),
                            Turn::WithoutFabric,
                        ),
                        false => (Thread::Ended, Turn::Ended),
                    }
                }
            },
            Thread::LostItsFabric(mut without) => match without.turn() {
                true => (Thread::LostItsFabric(without), Turn::WithoutFabric),
                false => (Thread::Ended, Turn::Ended),
            },
            Thread::Ended => (Thread::Ended, Turn::Ended),
        };
        *thread = next;
        turn
    }

    /// An I/O thread does its next task.
    pub fn read_files(&mut self) {
        self.files.step();
    }

    /// I/O threads have something to do.
    #[must_use]
    pub fn has_files_to_read(&self) -> bool {
        self.files.has_task()
    }

    /// `completions` has some.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        self.endpoint.queue.completions().has_any()
    }

    /// `unresolved` has some.
    #[must_use]
    pub fn has_questions(&self) -> bool {
        self.endpoint.catalog.has_questions()
    }

    /// Requests of this endpoint that have not ended.
    #[must_use]
    pub fn requests_in_flight(&self) -> usize {
        self.endpoint.queue.in_flight()
    }
}
