//! Checks that this processor encrypts connections at full speed, where Spark's settings ask for it.

use faro_fabric::diagnose::{Finding, Severity};

/// AES-256-GCM needs two kinds of instructions: rounds of AES, and products of polynomials.
#[cfg(target_arch = "x86_64")]
fn has_instructions() -> (bool, &'static str) {
    let found = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    (found, "aes, pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_instructions() -> (bool, &'static str) {
    use std::arch::is_aarch64_feature_detected;
    let found = is_aarch64_feature_detected!("aes") && is_aarch64_feature_detected!("pmull");
    (found, "aes, pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_instructions() -> (bool, &'static str) {
    (false, "AES")
}

pub(super) fn check() -> Finding {
    finding(has_instructions())
}

fn finding((found, instructions): (bool, &str)) -> Finding {
    let when = "where Spark authenticates or encrypts, or spark.faro.security=required";
    if found {
        let message =
            format!("AES-256-GCM by instructions of this processor ({instructions}), {when}");
        return Finding::good("channel", message);
    }
    let message = format!(
        "this processor lacks {instructions}: AES-256-GCM takes many times the CPU, {when}"
    );
    let fix = "a processor, or a type of virtual machine, that has these instructions";
    Finding::bad("channel", Severity::Note, message, fix.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_without_the_instructions_is_slower_and_works() {
        let good = finding((true, "aes"));
        assert_eq!((good.check, good.level), ("channel", Severity::Good));
        let bad = finding((false, "aes"));
        assert_eq!((bad.check, bad.level), ("channel", Severity::Note));
        assert!(bad.message.contains("lacks aes"), "{}", bad.message);
        assert!(bad.fix.is_some());
    }
}
