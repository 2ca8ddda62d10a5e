//! The verdict on all findings.

use super::args::FabricSetting;
use faro_fabric::diagnose::{Finding, Severity};

/// The first line of the screen, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DoctorVerdict {
    /// The fabric that was asked for works.
    Well { how: String },
    /// No node service keeps map outputs.
    Alone { why: String },
    /// TCP works; RDMA does not.
    Slower { why: String },
    /// Executors with these settings fail, or cannot reach each other.
    Broken { why: String },
}

impl DoctorVerdict {
    pub(super) fn of(findings: &[Finding], fabric: FabricSetting) -> Self {
        let worst = |level| {
            let found = findings.iter().find(|finding| finding.level == level);
            found.map(|finding| finding.message.clone())
        };
        if let Some(why) = worst(Severity::Broken) {
            return Self::Broken { why };
        }
        match (worst(Severity::NoRdma), fabric) {
            (Some(why), FabricSetting::Verbs) => return Self::Broken { why },
            (Some(why), _) => return Self::Slower { why },
            (None, _) => {}
        }
        let no_device = worst(Severity::NoDevice);
        if let (Some(why), FabricSetting::Verbs) = (&no_device, fabric) {
            return Self::Broken { why: why.clone() };
        }
        if let Some(why) = worst(Severity::NoService) {
            return Self::Alone { why };
        }
        match (no_device, fabric) {
            (_, FabricSetting::Tcp) => Self::Well {
                how: "TCP, as configured".to_owned(),
            },
            (Some(_), _) => Self::Well {
                how: "works over TCP; this host has no RDMA device that Faro can use".to_owned(),
            },
            (None, _) => {
                // The last one is of the device that was opened.
                let chosen = findings.iter().rfind(|finding| finding.check == "choice");
                let message = chosen.map_or("", |finding| finding.message.as_str());
                Self::Well {
                    how: format!("RDMA on {message}"),
                }
            }
        }
    }

    /// The exit code; `--help` lists them.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Well { .. } => 0,
            Self::Alone { .. } | Self::Slower { .. } => 1,
            Self::Broken { .. } => 2,
        }
    }

    /// One word for scripts.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Well { .. } => "well",
            Self::Alone { .. } => "alone",
            Self::Slower { .. } => "slower",
            Self::Broken { .. } => "broken",
        }
    }

    pub(super) fn line(&self) -> String {
        match self {
            Self::Well { how } => format!("ALL WELL: {how}"),
            Self::Alone { why } => {
                format!("WORKS, BUT MAP OUTPUTS ARE LOST WITH THEIR EXECUTORS: {why}")
            }
            Self::Slower { why } => {
                format!("WORKS, BUT SLOWER: TCP instead of RDMA, because {why}")
            }
            Self::Broken { why } => format!("CANNOT WORK: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(level: Severity, message: &str) -> Finding {
        Finding {
            check: "choice",
            level,
            message: message.to_owned(),
            fix: None,
        }
    }

    #[test]
    fn the_worst_finding_and_the_fabric_decide() {
        let good = finding(Severity::Good, "rxe0:1");
        let note = finding(Severity::Note, "small");
        let slow = finding(Severity::NoRdma, "no device");
        let none = finding(Severity::NoDevice, "no device at all");
        let bad = finding(Severity::Broken, "no memory");
        let code = |findings: &[&Finding], fabric| {
            let findings: Vec<Finding> = findings.iter().map(|&f| f.clone()).collect();
            DoctorVerdict::of(&findings, fabric).code()
        };
        assert_eq!(code(&[&good, &note], FabricSetting::Auto), 0);
        assert_eq!(code(&[&good, &slow], FabricSetting::Auto), 1);
        assert_eq!(code(&[&good, &slow], FabricSetting::Verbs), 2);
        assert_eq!(code(&[&slow, &bad], FabricSetting::Auto), 2);
        assert_eq!(code(&[&note, &none], FabricSetting::Auto), 0);
        assert_eq!(code(&[&note, &none], FabricSetting::Verbs), 2);
        assert_eq!(code(&[&none, &bad], FabricSetting::Auto), 2);
        let verdict = DoctorVerdict::of(std::slice::from_ref(&none), FabricSetting::Auto);
        assert!(
            verdict.line().contains("works over TCP"),
            "{}",
            verdict.line()
        );
        let alone = finding(Severity::NoService, "no service");
        assert_eq!(code(&[&good, &alone], FabricSetting::Auto), 1);
        assert_eq!(code(&[&good, &alone], FabricSetting::Tcp), 1);
        assert_eq!(code(&[&none, &alone], FabricSetting::Auto), 1);
        assert_eq!(code(&[&alone, &slow], FabricSetting::Verbs), 2);
        let verdict = DoctorVerdict::of(&[alone, slow.clone()], FabricSetting::Auto);
        assert_eq!(verdict.word(), "slower");
        let verdict = DoctorVerdict::of(&[slow, bad], FabricSetting::Auto);
        assert_eq!(verdict.line(), "CANNOT WORK: no memory");
    }
}
