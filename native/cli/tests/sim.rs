//! `faro sim` as users and scripts see it.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use serde_json::Value;
use std::process::{Command, Output};

fn faro(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_faro"))
        .arg("sim")
        .args(args)
        .output()
        .unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = faro(args);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn json_has_all_policies_and_figures() {
    let result = json(&[
        "--endpoints",
        "16",
        "--bytes-per-endpoint",
        "8MiB",
        "--json",
    ]);
    for policy in ["grouped", "rotated", "random", "sequential"] {
        let figures = &result["policies"][policy];
        for key in [
            "completion_s",
            "peak_active_peers",
            "peak_fan_in",
            "peak_active_queue_pairs",
            "buffer_overflows",
        ] {
            assert!(figures[key].is_number(), "{policy}.{key}: {figures}");
        }
        assert!(figures["completion_s"].as_f64() > result["ideal_s"].as_f64());
    }
    assert_eq!(result["policies"]["grouped"]["peak_active_peers"], 3);
    assert_eq!(result["model"]["bytes_per_endpoint"], 8 << 20);
}

#[test]
fn the_seed_decides_everything() {
    let run = |seed| {
        let skew = [
            "--pair-skew",
            "0.5",
            "--stragglers",
            "0.2",
            "--json",
            "--seed",
            seed,
        ];
        let mut args = vec!["--endpoints", "30", "--bytes-per-endpoint", "16MiB"];
        args.extend(skew);
        faro(&args).stdout
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn grouped_bounds_peers_and_beats_random_in_an_incast() {
    // The aim, in little: 256 endpoints, a quarter of the default bytes.
    let result = json(&[
        "--endpoints",
        "256",
        "--bytes-per-endpoint",
        "64MiB",
        "--json",
    ]);
    assert_eq!(result["policies"]["grouped"]["peak_active_peers"], 15);
    let speedup = result["speedup_over_random"]["grouped"].as_f64().unwrap();
    assert!(speedup >= 1.5, "{speedup}");
}

#[test]
fn groups_of_nine() {
    let output = faro(&["--endpoints", "9", "--groups"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert!(text.lines().all(|l| l.matches('{').count() == 3), "{text}");
}

#[test]
fn bad_values_say_what_is_allowed() {
    for (args, hint) in [
        (&["--endpoints", "1"][..], "2..=4096"),
        (&["--endpoints", "9", "--link", "100"], "Gbps"),
        (&["--endpoints", "9", "--stragglers", "2"], "0 to 1"),
        (
            &["--endpoints", "9", "--overflow", "lose"],
            "drop, pause, never",
        ),
        (&["--endpoints", "9", "--policies", "ring"], "grouped"),
        (
            &["--endpoints", "2", "--in-flight", "64B"],
            "raise --in-flight",
        ),
        (&[], "--endpoints"),
    ] {
        let output = faro(args);
        assert!(!output.status.success());
        assert!(output.stdout.is_empty());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(hint), "{args:?}: {error}");
    }
}
