//! Unreadable parts of a log, with file and line.

use super::plain;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::fmt;
use std::io;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Folder,
    Pipe,
    Socket,
    Device,
}

impl fmt::Display for FileKind {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(match self {
            Self::Folder => "a folder",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ProblemKind {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is {0}; only regular files are read, and folders of them")]
    NotRegular(FileKind),
    #[error(
        "event logs compressed with {0:?} are not supported; supported are lz4, zstd, snappy and no \
         compression (spark.eventLog.compression.codec)"
    )]
    Codec(&'static str),
    #[error("the folder has no event log, nor have those below it")]
    NoLogs,
    #[error("the folder has no events_N_* file, so it is no rolling event log of Spark")]
    NoEvents,
    #[error("the rolled file events_{0}_* is missing")]
    NoRolledFile(u64),
    #[error("the file is empty")]
    Empty,
    #[error("the file ends inside this line")]
    CutLine,
    #[error(
        "the log has no end of the application: the application was killed, or the log is cut"
    )]
    NoEnd,
    #[error("a damaged event: {0}")]
    Damaged(serde_json::Error),
    #[error("an event of more than {0} bytes was left out")]
    TooLong(u64),
    #[error("not an event of Spark: {0:?}")]
    Foreign(String),
}

impl ProblemKind {
    /// Whether an unknown part of the log is missing. Of the others, each costs one line.
    pub fn cuts(&self) -> bool {
        !matches!(self, Self::Damaged(_) | Self::TooLong(_) | Self::Foreign(_))
    }
}

#[derive(Debug)]
pub struct Problem {
    file: String,
    /// From 1, in the decompressed text; 0: the file as a whole.
    line: u64,
    pub kind: ProblemKind,
}

impl Problem {
    pub fn new(file: &Path, line: u64, kind: ProblemKind) -> Self {
        Self {
            file: plain::path(file),
            line,
            kind,
        }
    }

    fn message(&self) -> String {
        plain::message(&self.kind.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str(&self.file)?;
        if self.line > 0 {
            write!(to, ", line {}", self.line)?;
        }
        write!(to, ": {}", self.message())
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Problem", 3)?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("line", &self.line)?;
        fields.serialize_field("message", &self.message())?;
        fields.end()
    }
}

/// The first problems; the others are only counted.
#[derive(Debug, Default)]
pub struct Problems {
    pub first: Vec<Problem>,
    pub more: u64,
}

impl Problems {
    pub fn add(&mut self, problem: Problem, most: usize) {
        if self.first.len() < most {
            self.first.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
