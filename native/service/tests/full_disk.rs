//! Copies while a disk is really full: a small file system in namespaces of its own, in which this program runs once more.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/host.rs"]
mod host;

use faro_service::{Client, Hello, Token};
use faro_wire::OutputId;
use host::Host;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{until, write_output, TIMEOUT};

/// The directory of the small file system, for the program that runs in it.
const SMALL: &str = "FARO_TEST_SMALL_DISK";
/// What `mount` and the program in the namespaces end with.
const REFUSED: i32 = 77;

/// Runs `body` in a process that has a file system of 1 MiB. Where the kernel or a container refuses that, one line says so.
fn on_a_small_disk(test: &str, body: impl FnOnce(&Path)) {
    if let Some(small) = std::env::var_os(SMALL) {
        return body(Path::new(&small));
    }
    let small = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1m small \"${SMALL}\" || exit {REFUSED}; exec \"$0\" --exact {test} --nocapture"
    );
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(SMALL, small.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    // `unshare` itself says so, and ends with 1; a test ends with 101.
    if run.status.code() == Some(REFUSED)
        || (run.status.code() == Some(1) && said.starts_with("unshare: "))
    {
        println!("skipped: no file system of its own here: {said}");
        return;
    }
    assert!(
        run.status.success(),
        "{}{said}",
        String::from_utf8_lossy(&run.stdout)
    );
}

/// What takes all that is left of the file system.
struct Filler(PathBuf);

impl Filler {
    fn of(small: &Path) -> Self {
        let path = small.join("filler");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[1; 4_096]).is_ok() {}
        Self(path)
    }

    fn goes(self) {
        fs::remove_file(self.0).unwrap();
    }
}

fn client(host: &Host) -> Client {
    let hello = Hello {
        application: "app".to_owned(),
        executor: "1".to_owned(),
        sealed: false,
        token: Token::new([1; 32]),
        secret: Default::default(),
    };
    Client::connect(&host.dir.path().join("socket"), hello, TIMEOUT).unwrap()
}

fn id(shuffle_id: u32, map_id: i64) -> OutputId {
    OutputId { shuffle_id, map_id }
}

/// Two hosts, whose services know of each other.
struct Pair {
    hosts: [Host; 2],
    clients: [Client; 2],
    spark: tempfile::TempDir,
}

impl Pair {
    /// Each with its directories in one of these.
    fn new(places: [&Path; 2]) -> Self {
        let hosts = places.map(|at| Host::at(tempfile::tempdir_in(at).unwrap(), |_| {}));
        let clients = hosts.each_ref().map(client);
        for client in &clients {
            for (at, other) in (0..).zip(&clients) {
                client.host(1, at, 2, other.card()).unwrap();
            }
        }
        let spark = tempfile::tempdir_in(hosts[0].dir.path()).unwrap();
        Self {
            hosts,
            clients,
            spark,
        }
    }

    /// The first host's executor hands over what it has written.
    fn handed(&self, id: OutputId, partitions: &[Vec<u8>]) {
        let files = write_output(self.spark.path(), id, partitions);
        self.hand(id, &files);
    }

    fn hand(&self, id: OutputId, files: &faro_endpoint::OutputFiles) {
        self.clients[0]
            .hand_over(id, &files.index, &files.data)
            .unwrap();
    }

    /// Copies of here on the second host.
    fn copies(&self) -> u64 {
        self.hosts[1].figure("replicas")
    }
}

#[test]
fn what_was_handed_over_on_a_full_disk_gets_its_copies() {
    on_a_small_disk(
        "what_was_handed_over_on_a_full_disk_gets_its_copies",
        |small| {
            let elsewhere = std::env::temp_dir();
            let pair = Pair::new([small, &elsewhere]);
            let partitions = [b"abc".to_vec(), b"d".to_vec()];
            pair.handed(id(1, 0), &partitions);
            pair.handed(id(2, 0), &partitions);
            until("two are copied", || pair.copies() == 2);
            let written = |map| write_output(pair.spark.path(), id(1, map), &partitions);
            let files: Vec<_> = (1..7).map(|map| (id(1, map), written(map))).collect();
            let filler = Filler::of(small);
            files.iter().for_each(|(id, files)| pair.hand(*id, files));
            pair.clients[0].forget(2).unwrap();
            until("it says what it cannot list", || {
                pair.hosts[0].figure("copies_refused_total") == 6
            });
            assert_eq!(pair.copies(), 2);
            filler.goes();
            until("they are copied, and what was removed has gone", || {
                pair.copies() == 7 && pair.hosts[0].figure("replicas_behind") == 0
            });
            // Each was counted once.
            assert_eq!(pair.hosts[0].figure("copies_refused_total"), 6);
        },
    );
}

#[test]
fn copies_that_a_full_disk_refuses_are_made_later() {
    on_a_small_disk("copies_that_a_full_disk_refuses_are_made_later", |small| {
        let elsewhere = std::env::temp_dir();
        let pair = Pair::new([&elsewhere, small]);
        let filler = Filler::of(small);
        for map in 0..6 {
            pair.handed(id(1, map), &[vec![7; 1_000], b"d".to_vec()]);
        }
        until("they are refused", || {
            pair.hosts[1].figure("copies_refused_total") == 6
        });
        assert_eq!(pair.copies(), 0);
        assert_eq!(pair.hosts[0].figure("replicas_behind"), 6);
        filler.goes();
        until("they are copied", || pair.copies() == 6);
        until("their service knows it", || {
            pair.hosts[0].figure("replicas_behind") == 0
        });
        assert_eq!(pair.hosts[1].figure("copies_refused_total"), 6);
    });
}

#[test]
fn a_shuffle_that_is_removed_makes_room_for_what_was_refused() {
    on_a_small_disk(
        "a_shuffle_that_is_removed_makes_room_for_what_was_refused",
        |small| {
            let elsewhere = std::env::temp_dir();
            let pair = Pair::new([&elsewhere, small]);
            let large = [vec![7; 600 << 10], b"rest".to_vec()];
            pair.handed(id(1, 0), &large);
            until("it is copied", || pair.copies() == 1);
            pair.handed(id(2, 0), &large);
            until("there is no room for both", || {
                pair.hosts[1].figure("copies_refused_total") == 1
            });
            // After what was refused in the list, which must not stop there.
            pair.clients[0].forget(1).unwrap();
            until("the other one is copied", || {
                pair.hosts[0].figure("replicas_behind") == 0
            });
            assert_eq!(pair.copies(), 1);
        },
    );
}
