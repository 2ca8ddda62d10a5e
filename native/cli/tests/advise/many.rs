//! What is said about logs that are cut, and about many logs.

use super::support::{advise, json, run, stderr, stdout, Place, SampleApplication, END};
use std::ffi::OsStr;

#[test]
fn a_log_that_is_cut_says_nothing_about_the_whole_job() {
    let place = Place::new("cut-verdict");
    let whole = SampleApplication {
        blocks: 1_000,
        ..SampleApplication::default()
    };
    let log = whole.log();
    let verdict = |name: &str, content: &str| {
        let path = place.file(name, content.as_bytes());
        let rolled = path.parent().filter(|_| name.contains('/'));
        let output = advise(&[rolled.unwrap_or(&path)]);
        let app = json(&output)["applications"][0].clone();
        (app["verdict"].as_str().unwrap().to_owned(), app)
    };
    assert_eq!(verdict("log", &log).0, "does-not-help");
    // The end of the application is missing, or more; or a rolled file; or the application still runs.
    let no_end = log.strip_suffix(END).unwrap();
    let parts = [
        ("log", no_end),
        ("log", &log[..log.len() - 200]),
        ("eventlog_v2_a/events_2_a", log.as_str()),
        ("log.inprogress", no_end),
    ];
    for (name, part) in parts {
        let (verdict, app) = verdict(name, part);
        assert_eq!(verdict, "cannot-say", "{name}: {app}");
        assert_eq!(app["settings"].as_array().unwrap().len(), 0);
        assert!(app["gain"]["high"].as_f64().unwrap() > 0.0, "{app}");
        let message = app["message"].as_str().unwrap();
        assert!(message.starts_with("Cannot say"), "{message}");
    }
    // A line that is damaged costs that line only.
    let damaged = log.replace("\"Total Cores\":1", "\"Total Cores\":{}");
    assert_eq!(verdict("log", &damaged).0, "does-not-help");
}

#[test]
fn one_application_in_words() {
    let place = Place::new("words");
    for (blocks, expected) in [(800_000, "38 % (20 to 60 %)"), (1_000, "0 % (0 to 0 %)")] {
        let made = SampleApplication {
            blocks,
            ..SampleApplication::default()
        };
        let log = place.file("log", made.log().as_bytes());
        let page = place.0.join("page.html");
        let output = run(&[log.as_os_str(), OsStr::new("--html"), page.as_os_str()]);
        let html = std::fs::read_to_string(page).unwrap();
        for shown in [stdout(&output), html] {
            assert!(shown.contains(expected), "{shown}");
            assert!(!shown.contains("nothing"), "{shown}");
            assert!(
                shown.contains("1 executor on 1 host, 1 core; 1 job in"),
                "{shown}"
            );
        }
    }
}

/// 300 applications in nested folders; some gain much.
fn many(place: &Place) {
    for i in 0..300_u64 {
        let made = SampleApplication {
            id: &format!("app-20261127000000-{i:04}"),
            name: &format!("nightly report {i}, \"all\""),
            blocks: if i % 10 == 0 {
                100_000 + 1_000 * i
            } else {
                100 + i
            },
            ..SampleApplication::default()
        };
        let log = made.log();
        let log = if i == 299 {
            log.strip_suffix(END).unwrap()
        } else {
            &log
        };
        place.file(&format!("{}/{}/app-{i}", i % 7, i % 3), log.as_bytes());
    }
}

#[test]
fn many_logs_are_one_ranked_table() {
    let place = Place::new("many");
    many(&place);
    let output = run(&[&place.0]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stdout(&output);
    assert!(text.lines().count() < 310, "{text}");
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("app-2026")).collect();
    assert_eq!(rows.len(), 300);
    assert!(
        rows[0].starts_with("helps") && rows[0].contains("-0290"),
        "{text}"
    );
    assert!(rows[0].contains("small blocks"), "{text}");
    let at = rows.iter().position(|row| row.starts_with("cannot say"));
    assert!(rows[at.unwrap()].contains("-0299") && rows[at.unwrap()].contains("no end"));
    assert!(rows[299].starts_with("no "), "{text}");

    let output = run(&[OsStr::new("--csv"), place.0.as_os_str()]);
    let text = stdout(&output);
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 301);
    let columns = "application,id,spark,jobs_s,shuffle_part,saves_expected,saves_low,saves_high,why,verdict,log";
    assert_eq!(rows[0], columns);
    let start =
        "\"nightly report 290, \"\"all\"\"\",app-20261127000000-0290,4.3.0,60.000,1.0000,0.1";
    assert!(rows[1].starts_with(start), "{text}");
    assert!(rows[1].contains(",small-blocks,helps,"), "{text}");
}

#[test]
fn one_application_of_many_by_its_id() {
    let place = Place::new("id");
    many(&place);
    let id = |id: &str| run(&[place.0.as_os_str(), OsStr::new("--id"), OsStr::new(id)]);
    // The end of an id will do: that is what a narrow terminal shows.
    for name in ["app-20261127000000-0290", "0290"] {
        let output = id(name);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = stdout(&output);
        assert!(
            text.starts_with("Faro would help") && text.contains("to try it"),
            "{text}"
        );
        assert!(text.contains("-0290") && !text.contains("-0291"), "{text}");
    }
    let output = id("299");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stdout(&output).starts_with("Cannot say"), "{output:?}");
    let output = id("other");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = stderr(&output);
    assert!(
        error.contains("\"other\"") && error.contains("app-20261127000000-"),
        "{error}"
    );
    assert!(error.contains("300 applications"), "{error}");
}
