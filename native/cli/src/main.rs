use clap::Parser;
use faro_cli::{Cli, CliError, Command};
use std::io::{self, Write};
use std::process::ExitCode;

/// Wrong usage (EX_USAGE of sysexits.h). Not clap's 2, which the doctor uses for a verdict.
const USAGE: u8 = 64;
/// The doctor or the advice itself failed (EX_SOFTWARE).
const NO_VERDICT: u8 = 70;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If the message cannot be printed, the exit code is enough.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = faro_cli::run(&cli, &mut out).and_then(|code| {
        out.flush()?;
        Ok(code)
    });
    match result {
        Ok(code) => ExitCode::from(code),
        // A closed pipe, such as after `| head`, is no failure.
        Err(CliError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("faro: {e}");
            match cli.command {
                Command::Doctor(_) => ExitCode::from(NO_VERDICT),
                Command::Advise(_) => ExitCode::from(NO_VERDICT),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
