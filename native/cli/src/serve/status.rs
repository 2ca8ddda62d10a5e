//! `faro serve status`: what the daemon of this host keeps.

use super::args::StatusArgs;
use super::ServeError;
use crate::advise::units::bytes;
use crate::CliError;
use faro_service::{ask_status, figure, ApplicationStatus, Figures, Status, SOCKET};
use serde_json::{json, Map, Value};
use std::io::Write;
use std::path::Path;

/// Columns of the table of applications. The first one is to the left.
const COLUMNS: [&str; 9] = [
    "application",
    "user",
    "state",
    "executors",
    "outputs",
    "bytes",
    "of quota",
    "copies behind",
    "loans",
];

pub(super) fn run(args: &StatusArgs, out: &mut impl Write) -> Result<u8, CliError> {
    let (user, status) = ask_status(&args.socket_dir, args.timeout).map_err(ServeError::Status)?;
    match args.json {
        true => writeln!(out, "{:#}", as_json(user, &status))?,
        false => out.write_all(as_text(&args.socket_dir, user, &status).as_bytes())?,
    }
    Ok(0)
}

fn figures_as_json(figures: &Figures) -> Map<String, Value> {
    let all = figures.iter();
    all.map(|(name, value)| (name.to_string(), json!(value)))
        .collect()
}

fn as_json(user: u32, status: &Status) -> Value {
    let application = |one: &ApplicationStatus| {
        json!({
            "application": one.name,
            "user": known(one.user),
            "state": one.state,
            "figures": figures_as_json(&one.figures),
        })
    };
    let applications: Vec<Value> = status.applications.iter().map(application).collect();
    json!({
        "version": status.version,
        "user": user,
        "protocols": { "oldest": status.protocols.oldest, "newest": status.protocols.newest },
        "figures": figures_as_json(&status.figures),
        "applications": applications,
    })
}

/// `None`: the user of an application's executors is not known.
fn known(user: u32) -> Option<u32> {
    (user != u32::MAX).then_some(user)
}

fn as_text(directory: &Path, user: u32, status: &Status) -> String {
    let of = |name| status.figure(name);
    let mut text = format!(
        "faro serve {} of user {user} at {}, protocol {}\n\n",
        status.version,
        directory.join(SOCKET).display(),
        status.protocols
    );
    let lines = [
        (
            "applications",
            format!("{} of {}", of("applications"), of("applications_limit")),
        ),
        ("executors connected", of("executors").to_string()),
        (
            "map outputs",
            format!(
                "{} of {}, {}",
                of("outputs"),
                of("outputs_limit"),
                bytes(of("output_bytes"))
            ),
        ),
        (
            "copies kept here",
            format!(
                "{}; of this host, not made yet: {}",
                of("replicas"),
                of("replicas_behind")
            ),
        ),
        (
            "memory for blocks",
            format!(
                "{} of {}",
                bytes(of("memory_bytes")),
                bytes(of("memory_limit_bytes"))
            ),
        ),
        (
            "memory for tables",
            format!(
                "{} of {}",
                bytes(of("table_bytes")),
                bytes(of("table_limit_bytes"))
            ),
        ),
        (
            "blocks served",
            format!(
                "{}, {}",
                of("served_blocks_total"),
                bytes(of("served_bytes_total"))
            ),
        ),
        (
            "files lent",
            format!("{}; on their way: {}", of("lent_total"), of("loans")),
        ),
        ("refused", of("refused_total").to_string()),
    ];
    for (what, value) in lines {
        text.push_str(&format!("  {what:<22} {value}\n"));
    }
    let rows: Vec<[String; 9]> = status.applications.iter().map(row).collect();
    if !rows.is_empty() {
        text.push('\n');
        table(&rows, &mut text);
    }
    let hidden = of("applications").saturating_sub(rows.len() as u64);
    if hidden > 0 {
        text.push_str(&format!(
            "\nnot shown: {hidden}; root and the daemon's user see the applications of all users\n"
        ));
    }
    text
}

fn row(one: &ApplicationStatus) -> [String; 9] {
    let of = |name| figure(&one.figures, name);
    let (held, quota) = (of("output_bytes"), of("quota_bytes"));
    let share = match quota {
        0 => "-".to_owned(),
        _ => format!("{:.0} %", 100.0 * held as f64 / quota as f64),
    };
    [
        one.name.clone(),
        known(one.user).map_or_else(|| "-".to_owned(), |user| user.to_string()),
        one.state.to_string(),
        of("executors").to_string(),
        of("outputs").to_string(),
        bytes(held),
        share,
        of("replicas_behind").to_string(),
        of("loans").to_string(),
    ]
}

fn table(rows: &[[String; 9]], text: &mut String) {
    let header = COLUMNS.map(str::to_owned);
    let lines = || std::iter::once(&header).chain(rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    for line in lines() {
        let cells = line.iter().zip(&widths).enumerate();
        let cells = cells.map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let cells: Vec<String> = cells.collect();
        text.push_str(&format!("  {}\n", cells.join("  ")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_wire::VersionRange;

    fn figures(all: &[(&'static str, u64)]) -> Figures {
        let all = all.iter();
        all.map(|(name, value)| ((*name).into(), *value)).collect()
    }

    fn status() -> Status {
        let application = |name: &str, user, state: &'static str, outputs| ApplicationStatus {
            name: name.to_owned(),
            user,
            state: state.into(),
            figures: figures(&[
                ("executors", 2),
                ("outputs", outputs),
                ("output_bytes", 512 << 30),
                ("quota_bytes", 1 << 40),
                ("loans", 4),
            ]),
        };
        Status {
            version: "1.2.3".to_owned(),
            protocols: VersionRange::new(4, 5),
            figures: figures(&[
                ("applications", 3),
                ("applications_limit", 16),
                ("outputs", 1_007),
                ("loans", 4),
                ("a_figure_of_a_later_version", 9),
            ]),
            applications: vec![
                application("app-20261128-0001", 1_000, "serving", 1_000),
                application("0123abcd", u32::MAX, "left", 7),
            ],
        }
    }

    #[test]
    fn the_text_has_a_line_for_each_application() {
        let text = as_text(Path::new("/run/faro"), 1_000, &status());
        for part in [
            "faro serve 1.2.3 of user 1000 at /run/faro/faro-serve.sock, protocol 4 to 5\n",
            "  applications           3 of 16\n",
            "  files lent             0; on their way: 4\n",
            "  application        user    state  executors  outputs      bytes  of quota  copies behind  loans\n",
            "  app-20261128-0001  1000  serving          2     1000  512.0 GiB      50 %              0      4\n",
            "  0123abcd              -     left          2        7  512.0 GiB      50 %              0      4\n",
            "\nnot shown: 1; root and the daemon's user see the applications of all users\n",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn json_has_every_figure_under_its_name() {
        let all = as_json(1_000, &status());
        assert_eq!(all["protocols"]["newest"], 5);
        assert_eq!(all["figures"]["a_figure_of_a_later_version"], 9);
        assert_eq!(all["applications"][0]["figures"]["outputs"], 1_000);
        assert_eq!(all["applications"][1]["user"], Value::Null);
    }
}
