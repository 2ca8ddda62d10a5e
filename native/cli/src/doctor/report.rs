//! The result as one screen or as JSON.

use super::args::DoctorArgs;
use super::verdict::DoctorVerdict;
use faro_fabric::diagnose::{Finding, Severity};
use serde_json::{json, Value};
use std::io::{self, Write};
use std::net::IpAddr;

/// One word for people and scripts.
fn word(level: Severity) -> &'static str {
    match level {
        Severity::Good => "ok",
        Severity::Note | Severity::NoDevice => "note",
        Severity::NoService => "missing",
        Severity::NoRdma => "slower",
        Severity::Broken => "broken",
    }
}

/// The settings that a check depends on, as Spark's configuration names them.
fn settings(check: &str) -> Option<&'static str> {
    match check {
        "choice" => Some("spark.faro.verbs.device, spark.faro.verbs.gidIndex"),
        "memlock" | "memory limit" => Some("spark.faro.memory.limit"),
        "service" => Some("spark.faro.service.directory"),
        _ => None,
    }
}

/// Returns the advice for a finding, with the settings that it depends on.
fn fix(finding: &Finding) -> Option<String> {
    let fix = finding.fix.as_ref()?;
    Some(match settings(finding.check) {
        Some(keys) if !fix.contains("spark.faro.") => format!("{fix}; settings: {keys}"),
        _ => fix.clone(),
    })
}

pub(super) fn screen(
    out: &mut impl Write,
    address: IpAddr,
    verdict: &DoctorVerdict,
    findings: &[Finding],
) -> io::Result<()> {
    writeln!(out, "{}", verdict.line())?;
    writeln!(out, "faro {} at {address}", env!("CARGO_PKG_VERSION"))?;
    for finding in findings {
        let (level, check) = (word(finding.level), finding.check);
        writeln!(out, "  {level:<7} {check:<13} {}", finding.message)?;
        if let Some(fix) = fix(finding) {
            writeln!(out, "  {:<7} {:<13} fix: {fix}", "", "")?;
        }
    }
    Ok(())
}

pub(super) fn json(
    out: &mut impl Write,
    args: &DoctorArgs,
    address: IpAddr,
    verdict: &DoctorVerdict,
    findings: &[Finding],
) -> io::Result<()> {
    let checks: Vec<Value> = findings
        .iter()
        .map(|finding| {
            json!({
                "check": finding.check,
                "level": word(finding.level),
                "message": finding.message,
                "fix": fix(finding),
            })
        })
        .collect();
    let result = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "verdict": verdict.word(),
        "message": verdict.line(),
        "exit_code": verdict.code(),
        "address": address,
        "fabric": args.fabric,
        "memory_limit": args.memory_limit,
        "checks": checks,
    });
    serde_json::to_writer_pretty(&mut *out, &result).map_err(io::Error::from)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fix_of(check: &'static str, text: &str) -> Option<String> {
        let message = "out of it".to_owned();
        fix(&Finding::bad(
            check,
            Severity::Note,
            message,
            text.to_owned(),
        ))
    }

    #[test]
    fn a_fix_names_settings_once() {
        let with_key = "lower spark.faro.memory.limit";
        assert_eq!(fix_of("memlock", with_key).as_deref(), Some(with_key));
        assert_eq!(
            fix_of("memlock", "ulimit -l 1").as_deref(),
            Some("ulimit -l 1; settings: spark.faro.memory.limit")
        );
        assert_eq!(
            fix_of("library", "install it").as_deref(),
            Some("install it")
        );
        let good = Finding::good("memlock", "any amount may be locked".to_owned());
        assert_eq!(fix(&good), None);
    }
}
