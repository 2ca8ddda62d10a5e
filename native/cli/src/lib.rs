//! `faro`, the command line: one module per subcommand.
//!
//! A subcommand is a module with its arguments (clap) and `run(&arguments, &mut impl Write)`; `main`
//! calls it and turns an error into one line and an exit code. Results go to standard output, progress
//! to standard error and only if that is a terminal.

pub mod advise;
pub mod doctor;
mod host;
pub mod perf;
pub mod serve;
pub mod sim;
mod units;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Debug, Parser)]
#[command(
    name = "faro",
    version,
    about = "Tools for Faro, the shuffle transport for Apache Spark"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say whether Faro would help an application, from Spark's event log of a run without it
    Advise(advise::AdviseArgs),
    /// Check whether Faro works on this host, over RDMA or TCP, and how to fix what does not
    Doctor(Box<doctor::DoctorArgs>),
    /// Measure a fabric between two processes: bandwidth and latency
    Perf(Box<perf::PerfArgs>),
    /// Keep the map outputs of this host's executors when those have ended, and serve them
    Serve(Box<serve::ServeArgs>),
    /// Simulate a shuffle between many endpoints with grouped, rotated, random and sequential fetch
    Sim(Box<sim::SimArgs>),
    /// Write man pages, and completions for bash, zsh and fish, into a folder
    #[command(hide = true)]
    Pages { folder: PathBuf },
}

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error("{0}")]
    Advise(#[from] advise::AdviseError),
    #[error("{0}")]
    Perf(#[from] perf::PerfError),
    #[error("{0}")]
    Serve(#[from] serve::ServeError),
    #[error("{0}")]
    Sim(#[from] sim::SimError),
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

/// Runs the command. Returns the process's exit code.
///
/// # Errors
/// Fails if the subcommand fails or its result cannot be written.
pub fn run(cli: &Cli, out: &mut impl Write) -> Result<u8, CliError> {
    match &cli.command {
        Command::Advise(args) => advise::run(args, out),
        Command::Doctor(args) => doctor::run(args, out),
        Command::Perf(args) => perf::run(args, out).map(|()| 0),
        Command::Serve(args) => serve::run(args, out),
        Command::Sim(args) => sim::run(args, out).map(|()| 0),
        Command::Pages { folder } => Ok(pages(folder).map(|()| 0)?),
    }
}

fn pages(folder: &Path) -> io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "faro", folder)?;
    }
    clap_mangen::generate_to(Cli::command(), folder)
}
