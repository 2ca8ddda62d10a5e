//! Logs and folders that somebody made to harm: memory, time, what never ends, and names.

use super::support::{json, limited, run, stderr, stdout, Place, SampleApplication, END};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// More than the command and a line of 8 MB need, and less than the list of one such line.
const MEMORY: &str = "-v 52000";

fn stage(id: usize, more: &str) -> String {
    format!(
        "{{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":{{\"Stage ID\":{id},\
         \"Submission Time\":1,\"Completion Time\":2{more}}}}}\n"
    )
}

fn task(stage: usize, from: usize, to: usize) -> String {
    format!(
        "{{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":{stage},\"Task Info\":{{\"Launch Time\":{from},\
         \"Finish Time\":{to}}},\"Task Metrics\":{{\"Executor Run Time\":5}}}}\n"
    )
}

#[test]
fn lists_and_names_of_long_lines_are_not_held() {
    let place = Place::new("lists");
    let parents = format!(",\"Parent IDs\":[{}1]", "1,".repeat(4_000_000));
    let rdds = format!(",\"RDD Info\":[{}{{}}]", "{},".repeat(2_500_000));
    let name = format!(",\"Stage Name\":\"{}\"", "x".repeat(8_000_000));
    let job = |more: &str| {
        format!(
            "{{\"Event\":\"SparkListenerJobStart\",\"Job ID\":1,\"Submission Time\":1,{more}}}\n"
        )
    };
    let properties = |more: &str| {
        format!(
            "{{\"Event\":\"SparkListenerEnvironmentUpdate\",\"Spark Properties\":{{{more}}}}}\n"
        )
    };
    let many: String = (0..600_000).map(|i| format!("\"k{i}\":\"\",")).collect();
    let many = many + "\"last\":\"\"";
    let cases = [
        ("parents", (0..4).map(|id| stage(id, &parents)).collect()),
        ("rdds", stage(1, &rdds)),
        ("names", (0..4).map(|id| stage(id, &name)).collect()),
        (
            "stages",
            job(&format!("\"Stage IDs\":[{}1]", "1,".repeat(4_000_000))),
        ),
        (
            "infos",
            job(&format!(
                "\"Stage Infos\":[{}{{\"Stage ID\":1}}]",
                "{\"Stage ID\":1},".repeat(500_000)
            )),
        ),
        ("job-properties", job(&format!("\"Properties\":{{{many}}}"))),
        ("properties", properties(&many)),
        (
            "host",
            (0..4)
                .map(|id| {
                    format!(
                        "{{\"Event\":\"SparkListenerExecutorAdded\",\"Executor Info\":{{\"Host\":\"{id}{}\"}}}}\n",
                        "h".repeat(8_000_000)
                    )
                })
                .collect(),
        ),
    ];
    for (name, lines) in cases {
        let log = place.file("log", format!("{lines}{}{END}", task(1, 1, 9)).as_bytes());
        let output = limited(MEMORY, &[&log]);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
}

#[test]
fn parents_of_all_stages_together_are_bounded() {
    let place = Place::new("parents");
    let parents = format!(",\"Parent IDs\":[{}1]", "1,".repeat(999));
    let lines = (0..8_000).map(|id| stage(id, &parents) + &task(id, 1, 9));
    let log = place.file("log", (lines.collect::<String>() + END).as_bytes());
    let output = limited(MEMORY, &[&log]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn stages_that_overlap_take_linear_time() {
    let place = Place::new("overlap");
    let lines = (1..60_000).map(|id| task(id, id, 10_000_000 + id));
    let log = place.file("log", (lines.collect::<String>() + END).as_bytes());
    // Seconds of CPU, without optimization; each pair of stages would take minutes.
    let output = limited("-t 20", &[&log]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn only_regular_files_are_read() {
    let place = Place::new("special");
    place.file("app-1", SampleApplication::default().log().as_bytes());
    let fifo = place.0.join("app-2");
    assert!(Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap()
        .success());
    let zero = place.0.join("app-3");
    symlink("/dev/zero", &zero).unwrap();
    symlink("nothing", place.0.join("app-4")).unwrap();
    symlink("app-5", place.0.join("app-5")).unwrap();
    symlink(".", place.0.join("again")).unwrap();
    fs::create_dir_all(place.0.join("eventlog_v2_x/events_1_x")).unwrap();
    let output = limited("-v 60000", &[OsStr::new("--json"), place.0.as_os_str()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let applications = json(&output)["applications"].clone();
    assert_eq!(applications.as_array().unwrap().len(), 1, "{applications}");
    let error = stderr(&output);
    for (name, kind) in [
        ("app-2", "a named pipe"),
        ("app-3", "a device"),
        ("events_1_x", "a folder"),
    ] {
        let line = error.lines().find(|line| line.contains(name)).unwrap();
        assert!(
            line.contains(kind) && line.contains("regular files"),
            "{error}"
        );
    }
    assert!(
        error.contains("app-4") && error.contains("app-5"),
        "{error}"
    );

    for path in [fifo.as_path(), &zero, Path::new("/dev/null")] {
        let output = limited("-v 60000", &[path]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("regular files"), "{output:?}");
    }
}

#[test]
fn sizes_are_bounded() {
    let place = Place::new("sizes");
    // A file of something else ends at its first bytes: this one has a TiB and no line.
    let path = place.file("sparse", b"");
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let output = limited("-t 20", &[&path]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");

    // 256 MiB of one letter are 10 KB of zstd; no event log is like that.
    let start = b"{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"";
    let mut text = vec![b'x'; 256 << 20];
    text[..start.len()].copy_from_slice(start);
    let mut packed = vec![0; 1 << 20];
    let bytes = zstd_safe::compress(&mut packed[..], &text, 1).unwrap();
    let path = place.file("bomb.zstd", &packed[..bytes]);
    let output = run(&[&path]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("no event log"), "{output:?}");
}

#[test]
fn names_do_not_steer_the_terminal() {
    let evil = "a\u{1b}]0;OWNED\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\r\nb";
    let place = Place::new("names");
    let manager = serde_json::json!({ "spark.shuffle.manager": evil, "spark.plugins": evil });
    let plain = SampleApplication {
        id: evil,
        name: evil,
        stage: evil,
        ..SampleApplication::default()
    };
    let other = SampleApplication {
        properties: &manager.to_string(),
        ..plain.clone()
    };
    let folder = place.0.join(evil);
    for (file, log) in [("1", &plain), ("2", &other)] {
        let name = format!("{evil}/{file}");
        place.file(&name, log.log().replace("4.3.0", "4\\u001b[31m").as_bytes());
    }
    place.file(
        &format!("{evil}/{evil}3"),
        format!("no log {evil}\n").as_bytes(),
    );
    place.file(
        &format!("{evil}/4"),
        SampleApplication::default()
            .log()
            .replace(
                "[1]",
                &format!(
                    "\"{}\"",
                    evil.repeat(2000).replace(char::is_control, "\\u001b")
                ),
            )
            .as_bytes(),
    );
    place.file(
        &format!("{evil}/eventlog_v2_{evil}/events_9_{evil}"),
        plain.log().as_bytes(),
    );
    let one = folder.join("1");
    let missing = folder.join(format!("missing{evil}"));
    let page = folder.join("page.html");
    let no_page = missing.join("page.html");
    let cases: [Vec<&OsStr>; 8] = [
        vec![folder.as_os_str()],
        vec![one.as_os_str()],
        vec![folder.as_os_str(), OsStr::new("--json")],
        vec![folder.as_os_str(), OsStr::new("--csv")],
        vec![folder.as_os_str(), OsStr::new("--id"), OsStr::new("none")],
        vec![missing.as_os_str()],
        vec![folder.as_os_str(), OsStr::new("--html"), page.as_os_str()],
        vec![one.as_os_str(), OsStr::new("--html"), no_page.as_os_str()],
    ];
    for args in cases {
        let output = run(&args);
        assert_ne!(output.status.code(), Some(64), "{output:?}");
        let shown = stdout(&output) + &stderr(&output);
        assert!(!shown.is_empty());
        let bad = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2066}".contains(c);
        assert!(!shown.contains(bad), "{args:?}: {shown:?}");
        assert!(
            shown.lines().all(|line| line.len() < 1000),
            "{args:?}: {shown:?}"
        );
    }
    let html = fs::read_to_string(page).unwrap();
    assert!(!html.contains('\u{1b}') && !html.contains('\u{202e}'));
}

#[test]
fn no_number_is_too_large() {
    let place = Place::new("numbers");
    let (most, least) = (i64::MAX, i64::MIN);
    let mut log = String::new();
    for (from, to) in [(least, most), (most, least), (1, most), (least, 1)] {
        log += &format!("{{\"Event\":\"SparkListenerJobStart\",\"Job ID\":1,\"Submission Time\":{from},\"Stage IDs\":[1]}}\n");
        log += &format!("{{\"Event\":\"SparkListenerStageCompleted\",\"Stage Info\":{{\"Stage ID\":1,\"Submission Time\":{from},\"Completion Time\":{to},\"Parent IDs\":[1,18446744073709551615]}}}}\n");
        log += &format!("{{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":1,\"Task Info\":{{\"Launch Time\":{from},\"Finish Time\":{to}}}}}\n");
        log += &format!(
            "{{\"Event\":\"SparkListenerJobEnd\",\"Job ID\":1,\"Completion Time\":{to}}}\n"
        );
    }
    let all = "\"Executor Run Time\":#,\"Executor CPU Time\":#,\"JVM GC Time\":#,\"Memory Bytes Spilled\":#,\"Disk Bytes Spilled\":#,\"Shuffle Read Metrics\":{\"Remote Blocks Fetched\":#,\"Local Blocks Fetched\":#,\"Remote Bytes Read\":#,\"Local Bytes Read\":#,\"Total Records Read\":#,\"Fetch Wait Time\":#,\"Remote Requests Duration\":#},\"Shuffle Write Metrics\":{\"Shuffle Bytes Written\":#,\"Shuffle Write Time\":#,\"Shuffle Records Written\":#}";
    let all = all.replace('#', &u64::MAX.to_string());
    for stage in [1, 1, 2, u64::MAX] {
        log += &format!("{{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":{stage},\"Task Info\":{{\"Launch Time\":1,\"Finish Time\":{most}}},\"Task Metrics\":{{{all}}}}}\n");
        log += "{\"Event\":\"SparkListenerExecutorAdded\",\"Executor Info\":{\"Host\":\"h\",\"Total Cores\":18446744073709551615}}\n";
    }
    place.file("eventlog_v2_a/events_1_a", log.as_bytes());
    place.file(
        "eventlog_v2_a/events_18446744073709551615_a",
        END.as_bytes(),
    );
    for option in ["--json", "--csv", "--stages=9"] {
        let output = run(&[OsStr::new(option), place.0.as_os_str()]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        if option == "--json" {
            let totals = &json(&output)["applications"][0]["totals"];
            assert_eq!(totals["remote_blocks"], u64::MAX, "{totals}");
        }
    }
}
