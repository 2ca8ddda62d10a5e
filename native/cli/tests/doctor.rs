//! `faro doctor` as users and scripts see it, on hosts with and without RDMA.
//!
//! `tests/softroce/doctor` has the tests that need a device.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn faro(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faro"));
    command
        .args(args)
        .env_remove("SPARK_LOCAL_IP")
        .env_remove("FARO_SERVE_SOCKET_DIR");
    command
}

fn doctor(args: &[&str]) -> (Output, Value) {
    let args = [&["doctor", "--json"], args].concat();
    let output = faro(&args).output().unwrap();
    let result = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, result)
}

fn check<'v>(result: &'v Value, name: &str) -> &'v Value {
    let checks = result["checks"].as_array().unwrap();
    let found = checks.iter().rfind(|check| check["check"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {result}"))
}

/// A host made of files; dropping it removes them.
struct Tree(PathBuf);

impl Tree {
    /// With one device, on which every check passes.
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("faro-doctor-{}-{name}", std::process::id()));
        let tree = Self(path);
        let device = "sys/class/infiniband/rxe0";
        tree.put(&format!("{device}/node_type"), "1: CA");
        tree.put(&format!("{device}/ports/1/state"), "4: ACTIVE");
        tree.put(&format!("{device}/ports/1/link_layer"), "Ethernet");
        tree.put(&format!("{device}/ports/1/gids/0"), "::ffff:10.0.0.1");
        tree.put(&format!("{device}/ports/1/gid_attrs/types/0"), "RoCE v2");
        tree.put(&format!("{device}/ports/1/gid_attrs/ndevs/0"), "eth0");
        tree.put("sys/class/infiniband_verbs/uverbs0/ibdev", "rxe0");
        tree.put("dev/infiniband/uverbs0", "");
        tree
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn doctor(&self, args: &[&str]) -> (Output, Value) {
        let root = ["--root", self.0.to_str().unwrap(), "--address", "10.0.0.1"];
        doctor(&[&root, args].concat())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_is_well() {
    let (output, result) = Tree::new("well").doctor(&[]);
    assert_eq!(output.status.code(), Some(0), "{result}");
    assert_eq!(result["verdict"], "well");
    let choice = check(&result, "choice");
    assert!(
        choice["message"]
            .as_str()
            .unwrap()
            .contains("GID 0 10.0.0.1"),
        "{choice}"
    );
}

#[test]
fn too_little_memory_may_be_locked() {
    let tree = Tree::new("memlock");
    tree.put("proc/self/limits", "Max locked memory 65536 65536 bytes");
    let (output, result) = tree.doctor(&["--memory-limit", "1g"]);
    assert_eq!(output.status.code(), Some(1), "{result}");
    let memlock = check(&result, "memlock");
    let message = memlock["message"].as_str().unwrap();
    assert!(
        message.contains("65536") && message.contains("1073741824"),
        "{memlock}"
    );
    assert!(
        memlock["fix"]
            .as_str()
            .unwrap()
            .contains("ulimit -l 1048576"),
        "{memlock}"
    );
    // RDMA or nothing: nothing.
    let (output, result) = tree.doctor(&["--fabric", "verbs"]);
    assert_eq!(output.status.code(), Some(2), "{result}");
    // RDMA is not missed.
    let (output, result) = tree.doctor(&["--fabric", "tcp"]);
    assert_eq!(output.status.code(), Some(0), "{result}");
    assert_eq!(check(&result, "memlock")["level"], "note");
}

#[test]
fn a_container_that_is_too_small() {
    let tree = Tree::new("container");
    tree.put("proc/self/cgroup", "0::/");
    tree.put("sys/fs/cgroup/memory.max", "134217728");
    let (output, result) = tree.doctor(&[]);
    assert_eq!(output.status.code(), Some(2), "{result}");
    assert_eq!(check(&result, "memory limit")["level"], "broken");
}

/// The file has what a report needs, and nothing secret.
#[test]
fn a_bundle() {
    let tree = Tree::new("bundle");
    tree.put(
        "spark-defaults.conf",
        "spark.a 1\nspark.authenticate.secret s3cr3t",
    );
    let lines = "INFO x: of no interest\nINFO Faro summary: fallbacks=3\nWARN -Dmy.password=s3cr3t";
    tree.put("logs/app-1/0/stderr", lines);
    let at = |name: &str| tree.0.join(name).to_str().unwrap().to_owned();
    let (file, settings, logs) = (at("report.txt"), at("spark-defaults.conf"), at("logs"));
    let args = [
        "doctor",
        "--root",
        tree.0.to_str().unwrap(),
        "--bundle",
        &file,
    ];
    let more = [
        "--settings",
        &settings,
        "--log",
        &logs,
        "--address",
        "127.0.0.1",
    ];
    let output = faro(&[&args[..], &more].concat()).output().unwrap();
    assert!(
        [0, 1, 2].contains(&output.status.code().unwrap()),
        "{output:?}"
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains("s3cr3t") && !text.contains("of no interest"),
        "{text}"
    );
    for part in [
        "# Versions",
        "faro: 0.",
        "kernel: ",
        "# faro doctor",
        "spark.a 1",
        "fallbacks=3",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Nothing is overwritten.
    let again = faro(&[&args[..], &more].concat()).output().unwrap();
    assert_eq!(again.status.code(), Some(70), "{again:?}");
}

/// On the machine itself, whatever it has: what is tried works, and the screen says what the JSON says.
#[test]
fn this_host() {
    let (output, result) = doctor(&["--memory-limit", "32m", "--address", "127.0.0.1"]);
    let code = output.status.code().unwrap();
    assert!([0, 1].contains(&code), "{result}");
    assert_eq!(result["exit_code"], code);
    for fabric in ["shm", "tcp"] {
        assert_eq!(check(&result, fabric)["level"], "ok", "{result}");
    }
    let args = ["doctor", "--memory-limit", "32m", "--address", "127.0.0.1"];
    let screen = faro(&args).output().unwrap();
    assert_eq!(screen.status.code(), Some(code), "{screen:?}");
    let text = String::from_utf8(screen.stdout).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(first, result["message"].as_str().unwrap());
    assert!(text.lines().count() <= 40, "more than one screen:\n{text}");
}

/// The child is ended with the value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_peer() {
    let child = faro(&["perf", "server", "--fabric", "tcp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    let mut line = String::new();
    let mut lines = BufReader::new(server.0.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let peer = format!("tcp={}", line.trim());
    let (_, result) = doctor(&["--peer", &peer, "--memory-limit", "32m"]);
    let found = check(&result, "peer tcp");
    assert_eq!(found["level"], "ok", "{result}");
    assert!(
        found["message"].as_str().unwrap().contains(line.trim()),
        "{found}"
    );
}

#[test]
fn a_peer_that_is_not_there() {
    // Nobody listens on port 1.
    let (output, result) = doctor(&["--peer", "tcp=127.0.0.1:1", "--memory-limit", "32m"]);
    assert_eq!(output.status.code(), Some(2), "{result}");
    let found = check(&result, "peer tcp");
    assert!(
        found["fix"]
            .as_str()
            .unwrap()
            .contains("faro doctor --serve"),
        "{found}"
    );
}

#[test]
fn a_service_that_answers_and_one_that_does_not() {
    let tree = Tree::new("service");
    let socket = tree.0.join("socket");
    let (socket, data) = (socket.to_str().unwrap(), tree.0.join("data"));
    let (output, result) = tree.doctor(&["--socket-dir", socket]);
    assert_eq!(output.status.code(), Some(1), "{result}");
    assert_eq!(result["verdict"], "alone");
    let found = check(&result, "service");
    assert_eq!(found["level"], "missing");
    assert!(
        found["fix"].as_str().unwrap().contains("faro serve"),
        "{found}"
    );
    let child = faro(&["serve", "--socket-dir", socket, "--address", "127.0.0.1"])
        .arg("--data-dir")
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server(child);
    let mut ready = String::new();
    let mut lines = BufReader::new(server.0.stdout.take().unwrap());
    lines.read_line(&mut ready).unwrap();
    assert!(ready.starts_with("ready "), "{ready}");
    let (output, result) = tree.doctor(&["--socket-dir", socket]);
    assert_eq!(output.status.code(), Some(0), "{result}");
    let found = check(&result, "service");
    assert_eq!(found["level"], "ok");
    let message = found["message"].as_str().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for part in [version, "of user", "keeps 0 map outputs"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    // Without a directory nothing is asked.
    let (_, result) = tree.doctor(&[]);
    let checks = result["checks"].as_array().unwrap();
    assert!(checks.iter().all(|check| check["check"] != "service"));
}

#[test]
fn wrong_usage_names_values() {
    for (args, words) in [
        (&["--memory-limit", "1m"][..], "256m or 1g"),
        (&["--peer", "nowhere"], "HOST:PORT"),
        (&["--peer", "shm=h:1"], "tcp, verbs"),
        (&["--fabric", "carrier-pigeon"], "auto, verbs, tcp"),
    ] {
        let output = faro(&[&["doctor"], args].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(words), "{words} in {text}");
    }
    let help = faro(&["doctor", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("Exit codes:"));
}
