//! `faro advise` as users and scripts see it, on event logs of six Spark versions
//! (tests/advise/record makes them again).

#![allow(clippy::unwrap_used, reason = "a test may panic, also in its helpers")]

#[path = "advise/attack.rs"]
mod attack;
#[path = "advise/many.rs"]
mod many;
#[path = "advise/support.rs"]
mod support;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{advise, json, limited, run, stdout, Place, SampleApplication};

const RECORDED: [&str; 6] = [
    "spark-3.4",
    "spark-3.5",
    "spark-4.0",
    "spark-4.1",
    "spark-4.2",
    "spark-4.3",
];

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/advise/logs")
}

/// The only file in a recorded log's folder.
fn file_of(name: &str) -> PathBuf {
    let mut entries = fs::read_dir(logs().join(name)).unwrap();
    entries.next().unwrap().unwrap().path()
}

#[test]
fn every_version_and_codec_has_the_same_jobs() {
    for name in RECORDED {
        let output = advise(&[&logs().join(name)]);
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
        let result = json(&output);
        let app = &result["applications"][0];
        let version = app["spark"].as_str().unwrap();
        assert!(version.starts_with(name.strip_prefix("spark-").unwrap()));
        assert_eq!(app["application"], name);
        assert_eq!(app["executors"], 2);
        assert_eq!(app["totals"]["rows_written"], 20_051, "{name}");
        assert_eq!(app["totals"]["rows_read"], 20_051, "{name}");
        let blocks = |key| app["totals"][key].as_u64().unwrap();
        assert_eq!(blocks("remote_blocks") + blocks("local_blocks"), 36);
        let groups: Vec<_> = app["groups"].as_array().unwrap().iter().collect();
        let names: Vec<_> = groups.iter().map(|g| g["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["rows", "groups", "objects"], "{name}");
        // The jobs of Spark SQL move rows, that of the RDD moves objects.
        let stages = app["stages"].as_array().unwrap();
        let count = |key| stages.iter().filter(|s| s[key] == true).count();
        assert_eq!(
            (count("reads_rows"), count("writes_rows")),
            (2, 2),
            "{name}"
        );
        // So small a job has nothing to gain.
        assert_eq!(app["verdict"], "does-not-help", "{name}");
        assert_eq!(app["settings"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_log_that_is_cut_at_any_byte_is_said_to_be() {
    let place = Place::new("cut");
    // Whole files of the codecs; of the plain one a part of its lines, which is as good.
    let plain = fs::read(file_of("spark-3.4")).unwrap();
    let lines = plain.split_inclusive(|&b| b == b'\n');
    let small: Vec<u8> = lines.filter(|l| l.len() < 700).flatten().copied().collect();
    let mut cases = vec![("log".to_owned(), small)];
    for name in ["spark-3.5", "spark-4.0", "spark-4.1"] {
        let path = file_of(name);
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        cases.push((file, fs::read(path).unwrap()));
    }
    for (name, content) in cases {
        // A process for each byte would take minutes: each 97th, and the last ones.
        let step = (0..content.len()).filter(|at| at % 97 == 0 || at + 9 > content.len());
        for at in step {
            let path = place.file(&name, &content[..at]);
            let output = advise(&[&path]);
            let code = output.status.code().unwrap();
            assert!(code == 1 || code == 2, "{name} cut at {at}: {output:?}");
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(error.contains(&name), "{name} cut at {at}: {error:?}");
        }
    }
}

#[test]
fn foreign_files_are_named_with_their_line() {
    let place = Place::new("foreign");
    let text = place.file("notes", b"hello\nworld\n");
    let output = advise(&[&text]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("notes, line 1") && error.contains("hello"),
        "{error}"
    );

    for name in ["a.lz4", "a.snappy", "a.zstd"] {
        let path = place.file(name, &[0xab; 4000]);
        assert_eq!(advise(&[&path]).status.code(), Some(2), "{name}");
    }
    let missing = advise(&[&place.0.join("missing")]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8(missing.stderr)
        .unwrap()
        .contains("missing"));

    // A bad line costs that line only.
    let mut log = fs::read(file_of("spark-3.4")).unwrap();
    log.extend(b"garbage\n{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":{}}\n");
    let lines = log.iter().filter(|&&b| b == b'\n').count();
    let path = place.file("damaged", &log);
    let output = advise(&[&path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        json(&output)["applications"][0]["totals"]["rows_read"],
        20_051
    );
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains(&format!("line {}: not an event", lines - 1)),
        "{error}"
    );
    assert!(
        error.contains(&format!("line {lines}: a damaged event")),
        "{error}"
    );
}

#[test]
fn a_running_applications_log_may_end_anywhere() {
    let place = Place::new("running");
    let content = fs::read(file_of("spark-3.4")).unwrap();
    let path = place.file("app.inprogress", &content[..content.len() - 1000]);
    let output = advise(&[&path]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(json(&output)["applications"][0]["in_progress"], true);
}

#[test]
fn small_blocks_are_found_and_faro_is_not_advised_twice() {
    let place = Place::new("made");
    let one = |blocks, manager: &str| {
        let made = SampleApplication {
            blocks,
            properties: &format!("{{\"spark.shuffle.manager\":\"{manager}\"}}"),
            ..SampleApplication::default()
        };
        let path = place.file("log", made.log().as_bytes());
        let output = advise(&[&path]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        json(&output)["applications"][0].clone()
    };
    let many = one(800_000, "");
    assert_eq!(many["verdict"], "helps");
    assert_eq!(many["stages"][0]["reason"], "small-blocks");
    let gain = many["gain"]["expected"].as_f64().unwrap();
    // 800,000 blocks of 28 µs and 160 MB of wide rows of 1.2 ns in 60 s.
    assert!((gain - 0.375).abs() < 0.02, "{gain}");
    assert_eq!(one(1_000, "")["verdict"], "does-not-help");
    for manager in ["io.faro.spark.FaroShuffleManager", "org.other.Manager"] {
        let other = one(800_000, manager);
        assert_eq!(other["gain"]["high"], 0.0, "{manager}");
        // "No estimate" differs from "Faro does not help".
        assert_eq!(other["verdict"], "cannot-say", "{manager}");
    }
}

#[test]
fn the_page_is_whole_and_names_are_text() {
    let place = Place::new("page");
    let log = place.file("log", SampleApplication::default().log().as_bytes());
    let page = place.0.join("page.html");
    let output = run(&[log.as_os_str(), "--html".as_ref(), page.as_os_str()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let html = fs::read_to_string(page).unwrap();
    assert!(html.ends_with("</html>\n") && html.contains("width=device-width"));
    assert!(html.contains("&lt;made&gt;") && !html.contains("<b></b>"));
    assert!(!html.contains("http"), "the page loads nothing");
}

#[test]
fn long_lines_and_logs_take_constant_memory() {
    let place = Place::new("long");
    let long = format!(
        "{{\"Event\":\"org.apache.spark.sql.SparkListenerSQLExecutionStart\",\"plan\":\"{}\"}}\n",
        "x".repeat(20 << 20)
    );
    let text = format!("{}{}", long.repeat(2), SampleApplication::default().log());
    let path = place.file("log", text.as_bytes());
    // KiB of address space for the whole process: less than one half of the log, more than the 15 MB
    // with which it reads a short one.
    let output = limited("-v 19000", &["--json".as_ref(), path.as_os_str()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(json(&output)["applications"][0]["jobs"], 1);
}

#[test]
fn time_in_operators_is_named() {
    let place = Place::new("operators");
    let plain = SampleApplication::default().log();
    assert!(!stdout(&run(&[place.file("plain", plain.as_bytes())])).contains("sorting"));
    // Spark writes these values as texts; lists are values of other metrics.
    let metrics = r#""Accumulables":[{"ID":1,"Name":"sort time","Value":"20000"},{"Name":"scan time","Value":16000},
{"Name":"sort time","Value":"9000"},{"Name":"internal.metrics.updatedBlockStatuses","Value":[{"a":1}]},{"ID":2}],"Submission Time":1000,"Completion"#;
    let log = plain.replace(
        r#""Submission Time":1000,"Completion"#,
        &metrics.replace('\n', ""),
    );
    let path = place.file("log", log.as_bytes());
    let note = "Faro does not change reading tables (27 % of the tasks' time)\n";
    let said = stdout(&run(&[&path]));
    assert!(said.contains(note), "{said}");
    assert_eq!(
        json(&advise(&[&path]))["applications"][0]["totals"]["sort_ms"],
        29_000
    );
}

/// A stage that reads two shuffles and sorts for `sort_ms` of its minute.
fn merge_join(smaller_bytes: u64, sort_ms: u64, tasks: u64) -> String {
    let mut lines = vec![
        r#"{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}"#.to_owned(),
        r#"{"Event":"SparkListenerApplicationStart","App Name":"joins","App ID":"app-1"}"#.to_owned(),
        r#"{"Event":"SparkListenerJobStart","Job ID":0,"Submission Time":1000,"Stage IDs":[1,2,3]}"#.to_owned(),
    ];
    for (stage, bytes) in [(1, 4_000_000_000), (2, smaller_bytes)] {
        lines.push(format!(
            r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Task Info":{{"Launch Time":1000,"Finish Time":2000}},"Task Metrics":{{"Executor Run Time":1000,"Shuffle Write Metrics":{{"Shuffle Bytes Written":{bytes}}}}}}}"#
        ));
        lines.push(format!(
            r#"{{"Event":"SparkListenerStageCompleted","Stage Info":{{"Stage ID":{stage},"RDD Info":[{{"RDD ID":{stage},"Scope":"{{\"name\":\"Exchange\"}}"}}],"Submission Time":1000,"Completion Time":2000}}}}"#
        ));
    }
    for _ in 0..tasks {
        lines.push(format!(
            r#"{{"Event":"SparkListenerTaskEnd","Stage ID":3,"Task Info":{{"Launch Time":2000,"Finish Time":61000}},"Task Metrics":{{"Executor Run Time":{},"Shuffle Read Metrics":{{"Local Blocks Fetched":2,"Total Records Read":9}}}}}}"#,
            60_000 / tasks
        ));
    }
    lines.push(format!(
        r#"{{"Event":"SparkListenerStageCompleted","Stage Info":{{"Stage ID":3,"Parent IDs":[1,2],"RDD Info":[{{"RDD ID":9,"Name":"ShuffledRowRDD"}}],"Accumulables":[{{"Name":"sort time","Value":"{sort_ms}"}}],"Submission Time":2000,"Completion Time":61000}}}}"#
    ));
    lines.push(r#"{"Event":"SparkListenerJobEnd","Job ID":0,"Completion Time":61000}"#.to_owned());
    lines.push(support::END.to_owned());
    lines.join("\n")
}

#[test]
fn merge_joins_that_fit_as_hash_joins_are_named_with_the_risk() {
    let place = Place::new("joins");
    let said = |log: String| {
        let path = place.file("log", log.as_bytes());
        stdout(&run(&[&path])).replace('\n', " ")
    };
    let setting = "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold=64m";
    let fits = said(merge_join(40 << 20, 30_000, 4));
    assert!(fits.contains("stages 3 look like merge joins"), "{fits}");
    assert!(fits.contains("48 % of the tasks' time"), "{fits}");
    assert!(fits.contains("up to 10.0 MiB in a partition"), "{fits}");
    assert!(
        fits.contains(setting) && fits.contains("does not spill"),
        "{fits}"
    );
    // The smaller side is too large, or the sort too small.
    assert!(!said(merge_join(400 << 20, 30_000, 4)).contains(setting));
    assert!(!said(merge_join(40 << 20, 3_000, 4)).contains(setting));
}
