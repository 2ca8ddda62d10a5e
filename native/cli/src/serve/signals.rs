//! The signals that end the daemon, waited for by its main thread.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;

/// A signal that ends the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Term,
    Int,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Term => "SIGTERM",
            Self::Int => "SIGINT",
        })
    }
}

/// SIGTERM and SIGINT, blocked so that the main thread can wait for them.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks the signals for the calling thread and those that it starts.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset writes the whole set it is given a pointer to; it is initialised from then on, and the
        // two signals are valid numbers.
        let set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
            set.assume_init()
        };
        // SAFETY: `set` is an initialised set, and no old set is asked for.
        let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        match code {
            0 => Ok(Self(set)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// # Errors
    /// Returns the system's error.
    pub fn wait(&self) -> io::Result<Signal> {
        let mut signal = 0;
        // SAFETY: the set is initialised, and `signal` may be written.
        match unsafe { libc::sigwait(&self.0, &mut signal) } {
            0 if signal == libc::SIGINT => Ok(Signal::Int),
            0 => Ok(Signal::Term),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}
