//! The result as one screen or as JSON.

use super::args::Args;
use super::verdict::Verdict;
use faro_fabric::diagnose::{Finding, Level};
use serde_json::{json, Value};
use std::io::{self, Write};
use std::net::IpAddr;

/// In a word, for people and for scripts.
fn word(level: Level) -> &'static str {
    match level {
        Level::Good => "ok",
        Level::Note => "note",
        Level::NoRdma => "slower",
        Level::Broken => "broken",
    }
}

pub(super) fn screen(
    out: &mut impl Write,
    near: IpAddr,
    verdict: &Verdict,
    findings: &[Finding],
) -> io::Result<()> {
    writeln!(out, "{}", verdict.line())?;
    writeln!(out, "faro {} as {near}", env!("CARGO_PKG_VERSION"))?;
    for finding in findings {
        let Finding {
            check,
            level,
            says,
            mend,
        } = finding;
        writeln!(out, "  {:<7} {check:<13} {says}", word(*level))?;
        if let Some(mend) = mend {
            writeln!(out, "  {:<7} {:<13} mend: {mend}", "", "")?;
        }
    }
    Ok(())
}

pub(super) fn json(
    out: &mut impl Write,
    args: &Args,
    near: IpAddr,
    verdict: &Verdict,
    findings: &[Finding],
) -> io::Result<()> {
    let checks: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "level": word(finding.level),
                "says": finding.says,
                "mend": finding.mend,
            })
        })
        .collect();
    let result = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": verdict.word(),
        "says": verdict.line(),
        "exit_code": verdict.code(),
        "address": near,
        "fabric": args.fabric,
        "memory_limit": args.memory_limit,
        "checks": checks,
    });
    serde_json::to_writer_pretty(&mut *out, &result).map_err(io::Error::from)?;
    writeln!(out)
}
