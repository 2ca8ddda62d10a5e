//! The stages of a fetch at its server.
//!
//! ```text
//!            permit: first turn              turn ends, more to do
//!   Queued ─────────────────────────▶ Running ──────────────────────────▶ Idle
//!     ▲ │                              ▲ │ │                               │
//!     │ │ permit: later turn    memory │ │ └ turn ends, all bytes posted ──┼──▶ Draining
//!     │ └───────────────────▶ Starved ─┘ │                                 │
//!     │                          ▲       │                                 │
//!     │                          └───────┘ turn ends, no memory            │
//!     └──────────────── buffers and room for writes ───────────────────────┘
//! ```
//! From `Running` a fetch also becomes `Offered`: its client reads the bytes by itself, and says when it has them.
//! A fetch that its client cancels, or whose turn fails, becomes `Draining` if it has posted writes, and otherwise ends.
//!
//! The lengths of a first turn are not known, and Java may take long to say where its files are. So it takes
//! memory by itself when it is about to read, if there is some; any other turn has its memory when it begins.

use faro_wire::message::RemoteBuffer;

/// Stage of a fetch; `J` is its job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stage<J> {
    /// It waits for buffers of its client, or for posted writes to end.
    Idle(J),
    /// The job's next turn waits for the peer's permit.
    Queued(J),
    /// The job's next turn has its permit and waits for memory.
    Starved(J),
    /// A turn runs: another thread has the job. Buffers that arrive are kept here.
    Running { buffers: Vec<RemoteBuffer> },
    /// Nothing more is posted, because all bytes are or because the fetch was stopped; only the ends of the posted writes
    /// are waited for.
    Draining,
    /// The client reads all bytes by itself. The server sees nothing of that on some fabrics, so the connection counts as
    /// in use until the client says that it is done, or its time is over.
    Offered,
}

/// Use of the buffers that a client offers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Buffers<'a, J> {
    /// The job is here and takes them.
    Job(&'a mut J, Vec<RemoteBuffer>),
    /// They were kept until the turn ends; this is how many are kept.
    Kept(usize),
    /// The fetch needs none any more.
    NotNeeded,
}

/// The step that a permit allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PermittedStep<J> {
    /// The turn begins.
    Begins(J),
    /// The turn waits for memory.
    Waits,
    /// No turn waited for the permit.
    Nothing,
}

impl<J> Stage<J> {
    /// Returns the stage of a new fetch whose first turn begins at once.
    pub(super) fn running() -> Self {
        let buffers = Vec::new();
        Self::Running { buffers }
    }

    /// Handles buffers that the client offers.
    pub(super) fn on_buffers(&mut self, offered: Vec<RemoteBuffer>) -> Buffers<'_, J> {
        match self {
            Self::Idle(job) | Self::Queued(job) | Self::Starved(job) => Buffers::Job(job, offered),
            Self::Running { buffers } => {
                buffers.extend(offered);
                Buffers::Kept(buffers.len())
            }
            Self::Draining | Self::Offered => Buffers::NotNeeded,
        }
    }

    /// Lets the next turn wait for the permit, if the job is here, has nothing to wait for, and
    /// `can_turn` returns true. Returns whether the turn waits now.
    pub(super) fn queue(&mut self, can_turn: impl FnOnce(&J) -> bool) -> bool {
        match std::mem::replace(self, Self::Draining) {
            Self::Idle(job) if can_turn(&job) => {
                *self = Self::Queued(job);
                true
            }
            other @ (Self::Idle(_)
            | Self::Queued(_)
            | Self::Starved(_)
            | Self::Running { .. }
            | Self::Draining
            | Self::Offered) => {
                *self = other;
                false
            }
        }
    }

    /// Handles the permit. The turn begins with the returned job, unless it must wait for memory.
    pub(super) fn on_permit(&mut self, wants_memory: impl FnOnce(&J) -> bool) -> PermittedStep<J> {
        match std::mem::replace(self, Self::Draining) {
            Self::Queued(job) if wants_memory(&job) => {
                *self = Self::Starved(job);
                PermittedStep::Waits
            }
            Self::Queued(job) => {
                *self = Self::running();
                PermittedStep::Begins(job)
            }
            other @ (Self::Idle(_)
            | Self::Starved(_)
            | Self::Running { .. }
            | Self::Draining
            | Self::Offered) => {
                *self = other;
                PermittedStep::Nothing
            }
        }
    }

    /// Notes that the turn ended with more to do. `starved` says that no page was free. Returns the
    /// buffers that were kept, for the job. Returns `None` and changes nothing if no turn was
    /// running.
    pub(super) fn on_turn(&mut self, job: J, starved: bool) -> Option<Vec<RemoteBuffer>> {
        match std::mem::replace(self, Self::Draining) {
            Self::Running { buffers } => {
                *self = match starved {
                    true => Self::Starved(job),
                    false => Self::Idle(job),
                };
                Some(buffers)
            }
            other @ (Self::Idle(_)
            | Self::Queued(_)
            | Self::Starved(_)
            | Self::Draining
            | Self::Offered) => {
                *self = other;
                None
            }
        }
    }

    /// Notes that the turn ended and all bytes are in posted writes.
    pub(super) fn on_last_turn(&mut self) {
        if let Self::Running { .. } = self {
            *self = Self::Draining;
        }
    }

    /// Stops the fetch. Returns the stage before. A turn that runs ends for nothing.
    pub(super) fn on_stop(&mut self) -> Self {
        std::mem::replace(self, Self::Draining)
    }

    /// Notes that the turn ended and the client will read.
    pub(super) fn on_offer(&mut self) {
        if let Self::Running { .. } = self {
            *self = Self::Offered;
        }
    }

    /// The next turn, which waits for memory, begins if `reserve` gets some for it: returns its job.
    ///
    /// # Errors
    /// That of `reserve`; the turn waits on.
    pub(super) fn on_memory<E>(
        &mut self,
        reserve: impl FnOnce(&mut J) -> Result<(), E>,
    ) -> Result<Option<J>, E> {
        match std::mem::replace(self, Self::Draining) {
            Self::Starved(mut job) => match reserve(&mut job) {
                Ok(()) => {
                    *self = Self::running();
                    Ok(Some(job))
                }
                Err(error) => {
                    *self = Self::Starved(job);
                    Err(error)
                }
            },
            other @ (Self::Idle(_)
            | Self::Queued(_)
            | Self::Running { .. }
            | Self::Draining
            | Self::Offered) => {
                *self = other;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
#[path = "stage_test.rs"]
mod tests;
