//! Options of `faro advise`.

use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Exit codes:
  0   all logs were read
  1   a part of a log could not be read; the figures are of the rest
  2   nothing could be read, or no application has the id
  64  wrong usage
  70  the result cannot be written

The logs are those that Spark writes with spark.eventLog.enabled=true, of a run without Faro.
One application is shown in detail, several as a table with the largest savings first.
docs/user/advise.md explains the estimate.")]
pub struct AdviseArgs {
    /// An event log of Spark, the folder of a rolling one (eventlog_v2_*), or a folder with logs in it or below
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,

    /// Only the application with this id, in detail; the end of the id will do
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,

    /// Print the table as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,

    /// Print JSON, which has all details of all applications
    #[arg(long)]
    pub json: bool,

    /// Also write a page of HTML that needs no other file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Stages to show for each application, those with most shuffle; --json has all
    #[arg(long, default_value_t = 12, value_name = "N")]
    pub stages: usize,
}
