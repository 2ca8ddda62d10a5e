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
    if status.kept_open > 0 {
        let message = format!(
            "{message}; {} were kept as open files, which are lost when it is restarted",
            status.kept_open
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
    format!(
        "keeps {} map outputs ({}) of {} applications; executors connected: {}, blocks served: {} ({}), refused: {}, \
         copies of other hosts: {}, copies behind: {}, memory: {} of {}",
        status.outputs,
        bytes(status.output_bytes),
        status.applications,
        status.executors,
        status.served_blocks,
        bytes(status.served_bytes),
        status.refused,
        status.replicas,
        status.replicas_behind,
        bytes(status.memory),
        bytes(status.memory_limit)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(kept_open: u64) -> Status {
        Status {
            version: "1.2.3".to_owned(),
            applications: 2,
            executors: 3,
            outputs: 40,
            output_bytes: 5 << 20,
            linked: 40,
            kept_open,
            refused: 6,
            removed: 0,
            served_blocks: 700,
            served_bytes: 8 << 20,
            lent: 0,
            replicas: 9,
            replicas_behind: 0,
            copied_bytes: 0,
            copies_refused: 0,
            memory: 32 << 20,
            memory_limit: 1 << 30,
            tables: 1 << 20,
            tables_limit: 512 << 20,
            outputs_limit: 524_288,
            passed_on: 12,
            connections_refused: 0,
            handshakes_failed: 1,
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
