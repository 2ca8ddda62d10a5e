//! `faro perf` as users and scripts see it: two processes.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

fn faro(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faro"));
    command.arg("perf").args(args);
    command
}

/// A server that ends after its first client, and its location.
fn server(fabric: &str) -> (Child, String) {
    let mut child = faro(&["server", "--fabric", fabric, "--once"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    (child, line.trim().to_owned())
}

fn client(location: &str, fabric: &str, more: &[&str]) -> Output {
    faro(&["client", location, "--fabric", fabric])
        .args(["--seconds", "0.02", "--rounds", "2"])
        .args(more)
        .output()
        .unwrap()
}

fn measures_everything(fabric: &str) {
    let (mut server, location) = server(fabric);
    let lists = [
        "--operation",
        "write,read,message",
        "--mode",
        "bandwidth,latency",
    ];
    let more = [&lists[..], &["--size", "1,64KiB,1048576", "--json"]].concat();
    let output = client(&location, fabric, &more);
    assert!(output.status.success(), "{output:?}");
    assert!(server.wait().unwrap().success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    for row in rows {
        assert!(row["mb_per_second"].as_f64().unwrap() > 0.0, "{row}");
        let rounds = row["rounds_mb_per_second"].as_array().unwrap();
        assert_eq!(rounds.len(), 2, "{row}");
        // No transfer without a look at the fabric, on either side, even if one look finds many.
        for side in ["client_per_transfer", "server_per_transfer"] {
            assert!(row[side]["poll_calls"].as_f64().unwrap() > 0.0, "{row}");
        }
        let latency = &row["latency_us"];
        if row["mode"] == "latency" {
            let quantile = |name: &str| latency[name].as_f64().unwrap();
            assert!(quantile("min") > 0.0, "{row}");
            assert!(quantile("p50") <= quantile("p99"), "{row}");
            assert!(quantile("p99") <= quantile("max"), "{row}");
        } else {
            assert!(latency.is_null(), "{row}");
        }
    }
}

#[test]
fn tcp() {
    measures_everything("tcp");
}

#[test]
fn shm() {
    measures_everything("shm");
}

#[test]
fn a_table_has_a_line_for_each_size() {
    let (mut server, location) = server("tcp");
    let output = client(&location, "tcp", &["--size", "4096,8192"]);
    assert!(output.status.success(), "{output:?}");
    assert!(server.wait().unwrap().success());
    let text = String::from_utf8(output.stdout).unwrap();
    for size in ["4096", "8192"] {
        let line = |line: &&str| line.starts_with("write ") && line.contains(size);
        // One with the rate, one with the counters.
        assert_eq!(text.lines().filter(line).count(), 2, "{text}");
    }
}

#[test]
fn several_clients() {
    let (mut server, location) = server("tcp");
    let lists = ["--operation", "write,read", "--mode", "bandwidth,latency"];
    let more = [&lists[..], &["--size", "4096", "--clients", "3", "--json"]].concat();
    let output = client(&location, "tcp", &more);
    assert!(output.status.success(), "{output:?}");
    // With `--once` it ends when all have left.
    assert!(server.wait().unwrap().success());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["clients"], 3);
    for row in result["rows"].as_array().unwrap() {
        assert!(row["mb_per_second"].as_f64().unwrap() > 0.0, "{row}");
        // Two rounds of three clients, each with a transfer at least.
        assert!(row["transfers"].as_u64().unwrap() >= 6, "{row}");
    }
}

#[test]
fn errors_name_values() {
    let message = |location: &str, more: &[&str], what: &str| {
        let output = client(location, "tcp", more);
        assert!(!output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(what), "{what} in {text}");
    };
    message("nowhere", &[], "\"nowhere\" is not an IP:PORT");
    message("127.0.0.1:1", &["--size", "65MiB"], "1 B to 64 MiB");
    message("127.0.0.1:1", &["--clients", "65"], "1..=64");
    let much = ["--operation", "read", "--memory", "32MiB"];
    message("127.0.0.1:1", &much, "64 reads of 1048576 bytes");
    // No server listens on port 1.
    message("127.0.0.1:1", &[], "127.0.0.1:1");
}
