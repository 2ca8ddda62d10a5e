//! The trace of a run: a hash that two runs of a seed must agree on, and lines to read.

use std::fmt;
use std::time::Duration;

/// The trace of one run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    /// True to print the lines to standard output.
    prints: bool,
}

/// FNV-1a with 64 bits: its value does not depend on the compiler's version.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

impl Trace {
    pub(crate) fn new(prints: bool) -> Self {
        Self {
            hash: BASIS,
            prints,
        }
    }

    /// Returns the hash of all lines so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Adds a line.
    pub(crate) fn note(&mut self, now: Duration, what: fmt::Arguments<'_>) {
        if self.prints {
            println!("{:>14.6} {what}", now.as_secs_f64());
        }
        self.add(&now.as_nanos().to_le_bytes());
        // `HashingWriter` never fails.
        let _ = fmt::write(&mut HashingWriter(self), what);
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

struct HashingWriter<'a>(&'a mut Trace);

impl fmt::Write for HashingWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.add(text.as_bytes());
        Ok(())
    }
}
