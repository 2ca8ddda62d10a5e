use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = faro_cli::Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = faro_cli::run(&cli, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(faro_cli::CliError::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("faro: {e}");
            ExitCode::FAILURE
        }
    }
}
