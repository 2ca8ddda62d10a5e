//! Asks the node service of this host, `faro serve`, for its status.

use crate::advise::units::bytes;
use faro_fabric::diagnose::{Finding, Severity};
use faro_service::{ask_status, ClientError, Status, SOCKET};
use std::path::Path;
use std::time::Duration;

const CHECK: &str = "service";

/// Asks the service whose socket is in that directory.
pub(super) fn check(directory: &Path, timeout: Duration) -> Finding {
    // SAFETY: geteuid takes nothing, touches no memory of this process and does not fail.
    let own = unsafe { libc::geteuid() };
    finding(directory, own, ask_status(directory, timeout))
}

/// `own`: the user that executors have, if they are started as this command is.
fn finding(directory: &Path, own: u32, answer: Result<(u32, Status), ClientError>) -> Finding {
    let socket = directory.join(SOCKET);
    let (user, status) = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let fix = match &error {
                ClientError::Refused { .. } => "ask as the executors' user; see the daemon's log".to_owned(),
                _ => format!(
                    "start `faro serve --socket-dir {}` on this host as the executors' user; if it runs, see its log",
                    directory.display()
                ),
            };
            return Finding::bad(CHECK, Severity::NoService, error.to_string(), fix);
        }
    };
    let what = what(&status);
    let message = format!(
        "{} of user {user} at {} {what}",
        name(&status),
        socket.display()
    );
    if user != 0 && user != own {
        let message = format!(
            "{message}; executors of user {own} take no service but their own user's or root's"
        );
        let fix = format!("run this as the executors' user, or `faro serve` as user {own}");
        return Finding::bad(CHECK, Severity::NoService, message, fix);
    }
    let kept_open = status.figure("kept_open_total");
    if kept_open > 0 {
        let message = format!(
            "{message}; {kept_open} were kept as open files, which are lost when it is restarted"
        );
        let fix = "put its --data-dir on the file system of spark.local.dir".to_owned();
        return Finding::bad(CHECK, Severity::Note, message, fix);
    }
    Finding::good(CHECK, message)
}

fn name(status: &Status) -> String {
    format!("faro serve {}", status.version)
}

fn what(status: &Status) -> String {
    let figure = |name| status.figure(name);
    format!(
        "keeps {} map outputs ({}) of {} applications; executors connected: {}, blocks served: {} ({}), refused: {}, \
         copies of other hosts: {}, copies behind: {}, memory: {} of {}",
        figure("outputs"),
        bytes(figure("output_bytes")),
        figure("applications"),
        figure("executors"),
        figure("served_blocks_total"),
        bytes(figure("served_bytes_total")),
        figure("refused_total"),
        figure("replicas"),
        figure("replicas_behind"),
        bytes(figure("memory_bytes")),
        bytes(figure("memory_limit_bytes"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_wire::VersionRange;

    fn status(kept_open: u64) -> Status {
        let figures = [
            ("applications", 2),
            ("executors", 3),
            ("outputs", 40),
            ("output_bytes", 5 << 20),
            ("kept_open_total", kept_open),
        ];
        let figures = figures.into_iter();
        Status {
            version: "1.2.3".to_owned(),
            protocols: VersionRange::new(4, 4),
            figures: figures.map(|(name, value)| (name.into(), value)).collect(),
            applications: Vec::new(),
        }
    }

    fn of(user: u32, kept_open: u64) -> Finding {
        finding(Path::new("/run/faro"), 1_000, Ok((user, status(kept_open))))
    }

    #[test]
    fn a_service_that_executors_take_is_good() {
        for user in [0, 1_000] {
            let good = of(user, 0);
            assert_eq!((good.level, good.fix), (Severity::Good, None));
            for part in [
                "1.2.3",
                "/run/faro/faro-serve.sock",
                "40 map outputs",
                "2 applications",
            ] {
                assert!(good.message.contains(part), "{part} in {}", good.message);
            }
        }
    }

    #[test]
    fn what_is_not_as_it_should_be_has_a_fix() {
        let foreign = of(5, 0);
        assert_eq!(foreign.level, Severity::NoService);
        assert!(foreign.message.contains("user 5") && foreign.message.contains("user 1000"));
        let open = of(0, 7);
        assert_eq!(open.level, Severity::Note);
        assert!(
            open.message.contains("7 were kept as open files"),
            "{}",
            open.message
        );
        assert!(foreign.fix.is_some() && open.fix.is_some());
    }
}
