//! Several services of one application in this process, each on a host of its own: copies on the others.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/host.rs"]
mod host;

use faro_endpoint::{Endpoint, FabricChoice};
use faro_service::{order, Client, Hello, Options, Token};
use faro_wire::message::{CommandReply, CommandStatus, MemberCommand};
use faro_wire::OutputId;
use host::{id, Host};
use std::fs::{self, File};
use std::sync::{mpsc, Arc};
use support::{block, config, fetch, until, write_output, TIMEOUT};

const OK: u32 = 0;

impl Host {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), change)
    }

    fn client(&self) -> Client {
        let hello = Hello {
            application: "app".to_owned(),
            executor: "1".to_owned(),
            sealed: false,
            token: Token::new([1; 32]),
            secret: Default::default(),
        };
        Client::connect(&self.dir.path().join("socket"), hello, TIMEOUT).unwrap()
    }

    fn handed(&self, client: &Client, id: OutputId, partitions: &[Vec<u8>]) {
        let spark = tempfile::tempdir_in(self.dir.path()).unwrap();
        let files = write_output(spark.path(), id, partitions);
        client.hand_over(id, &files.index, &files.data).unwrap();
    }

    /// The only application's directory.
    fn place(&self) -> std::path::PathBuf {
        let applications = fs::read_dir(self.dir.path().join("data/applications")).unwrap();
        applications.map(|one| one.unwrap().path()).next().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.place()).unwrap();
        names
            .map(|name| name.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

/// Each service learns of all.
fn introduce(replicas: u8, clients: &[&Client]) {
    for client in clients {
        for (at, other) in clients.iter().enumerate() {
            let of = clients.len() as u32;
            client.host(replicas, at as u32, of, other.card()).unwrap();
        }
    }
}

fn reader() -> Arc<Endpoint> {
    let mut config = config("reader", FabricChoice::Tcp);
    config.security.application = "app".to_owned();
    Endpoint::start(config).unwrap()
}

/// Partitions, one of them empty.
fn partitions(map: i64) -> Vec<Vec<u8>> {
    vec![
        format!("output {map}").into_bytes(),
        Vec::new(),
        vec![map as u8; 1_000],
    ]
}

fn served(reader: &Endpoint, client: &Client, map: i64) -> Option<Vec<Vec<u8>>> {
    let peer = reader.add_peer(client.card()).unwrap();
    let blocks = [0, 1, 2].map(|at| block(1, map, at, at + 1));
    let got = fetch(reader, peer, &blocks).blocks;
    let all_ok = got.len() == 3 && got.iter().all(|(status, _)| *status == OK);
    all_ok.then(|| got.into_iter().map(|(_, bytes)| bytes).collect())
}

#[test]
fn each_output_is_copied_to_the_hosts_that_readers_calculate() {
    let hosts = [(); 4].map(|()| Host::new());
    let clients = hosts.each_ref().map(Host::client);
    // Handed over before the services know of each other.
    hosts[0].handed(&clients[0], id(0), &partitions(0));
    introduce(2, &clients.each_ref());
    for map in 1..40 {
        let at = map as usize % 4;
        hosts[at].handed(&clients[at], id(map), &partitions(map));
    }
    until("all outputs have two copies", || {
        hosts
            .iter()
            .map(|host| host.figure("replicas"))
            .sum::<u64>()
            == 80
    });
    until("their services know it", || {
        hosts.iter().all(|host| host.figure("replicas_behind") == 0)
    });
    let reader = reader();
    for map in 0..40 {
        let source = map as usize % 4;
        let order = order(0..4, source, id(map));
        for (at, client) in clients.iter().enumerate() {
            let has_it = at == source || order[..2].contains(&at);
            let wanted = has_it.then(|| partitions(map));
            assert_eq!(served(&reader, client, map), wanted, "{map} at {at}");
        }
    }
    reader.close();
}

#[test]
fn members_ask_for_pages_and_indexes() {
    let host = Host::new();
    let client = host.client();
    introduce(1, &[&client]);
    host.handed(&client, id(3), &partitions(3));
    let reader = reader();
    let peer = reader.add_peer(client.card()).unwrap();
    let ask = |command: MemberCommand| {
        let (sender, answers) = mpsc::channel();
        reader.command(peer, command, TIMEOUT, sender).unwrap();
        answers.recv().unwrap().outcome.unwrap()
    };
    let unknown = CommandReply::Status(CommandStatus::Unknown);
    until(
        "its list has a page",
        || matches!(ask(MemberCommand::SendPage(0)), CommandReply::Content(page) if page[0] == 1),
    );
    for page in [1, u64::MAX] {
        assert_eq!(ask(MemberCommand::SendPage(page)), unknown);
    }
    let indexes = |maps: &[i64], from: u64| {
        let outputs = maps.iter().map(|map| id(*map)).collect();
        ask(MemberCommand::SendIndexes { outputs, from })
    };
    let first = partitions(3)[0].len() as u64;
    let index = [0, first, first, first + 1_000].map(u64::to_be_bytes);
    let index = index.concat();
    let both = [&index[..], &index[..]].concat();
    assert_eq!(indexes(&[3, 3], 0), CommandReply::Content(both));
    let rest = index[8..].to_vec();
    assert_eq!(indexes(&[3, 3], 40), CommandReply::Content(rest));
    assert_eq!(indexes(&[3], 32), CommandReply::Content(Vec::new()));
    assert_eq!(indexes(&[3], u64::MAX), CommandReply::Content(Vec::new()));
    assert_eq!(indexes(&[3, 4], 0), unknown);
    reader.close();
}

#[test]
fn an_output_of_many_pieces_is_the_same_bytes() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    let large: Vec<u8> = (0..21 << 20)
        .map(|at: u32| (at ^ (at >> 11)) as u8)
        .collect();
    hosts[0].handed(
        &clients[0],
        id(7),
        &[large.clone(), Vec::new(), b"rest".to_vec()],
    );
    until("it is copied", || hosts[1].figure("replicas") == 1);
    let place = hosts[1].place();
    let kept = fs::read(place.join("replica_1_7_1.data")).unwrap();
    assert!(kept == [large.as_slice(), b"rest"].concat());
    let index = fs::read(place.join("replica_1_7_1.index")).unwrap();
    let length = large.len() as u64;
    let offsets = [0, length, length, length + 4].map(u64::to_be_bytes);
    assert_eq!(index, offsets.concat());
    let bytes = length + 4 + 32;
    assert_eq!(hosts[1].figure("copied_bytes_total"), bytes);
}

#[test]
fn an_empty_output_is_copied_too() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    hosts[0].handed(&clients[0], id(1), &[vec![], vec![], vec![]]);
    until("it is copied", || hosts[1].figure("replicas") == 1);
    let reader = reader();
    assert_eq!(served(&reader, &clients[1], 1), Some(vec![vec![]; 3]));
    reader.close();
}

#[test]
fn without_replicas_nothing_is_listed_or_copied() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(0, &clients.each_ref());
    hosts[0].handed(&clients[0], id(1), &partitions(1));
    let mut names = hosts[0].names();
    names.sort();
    assert_eq!(names, ["1_1_1.data", "1_1_1.index", "application"]);
    assert_eq!(hosts[0].figure("replicas_behind"), 0);
}

#[test]
fn a_quota_counts_copies_and_the_source_says_what_is_behind() {
    let hosts = [Host::new(), Host::with(|options| options.quota = 3_000)];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    for map in 0..5 {
        hosts[0].handed(&clients[0], id(map), &partitions(map));
    }
    until("what has no room is refused", || {
        hosts[1].figure("copies_refused_total") == 3
    });
    assert_eq!(hosts[1].figure("replicas"), 2);
    until("the source knows of two", || {
        clients[0].behind().unwrap() == 3
    });
    assert_eq!(hosts[0].figure("replicas_behind"), 3);
    assert_eq!(clients[1].behind().unwrap(), 0);
    assert!(!hosts[1].names().iter().any(|name| name.starts_with("copy")));
}

#[test]
fn what_has_no_room_in_the_list_is_listed_later() {
    const QUOTA: u64 = 10_000;
    let hosts = [Host::with(|options| options.quota = QUOTA), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    hosts[0].handed(&clients[0], id(1), &partitions(1));
    // No byte is left, also not for a list.
    let filler = OutputId {
        shuffle_id: 9,
        map_id: 1,
    };
    let index = 2 * 8;
    let room = QUOTA - hosts[0].figure("output_bytes") - index;
    hosts[0].handed(&clients[0], filler, &[vec![7; room as usize]]);
    assert_eq!(hosts[0].figure("output_bytes"), QUOTA);
    hosts[1].handed(&clients[1], id(2), &partitions(2));
    introduce(1, &clients.each_ref());
    // Its copier writes its list before it looks at another one.
    until("its list was not written", || {
        hosts[0].figure("copies_refused_total") > 0
    });
    assert_eq!(hosts[1].figure("replicas"), 0);
    clients[0].forget(filler.shuffle_id).unwrap();
    until("what waited is copied", || hosts[1].figure("replicas") == 1);
}

#[test]
fn a_removed_shuffle_has_no_copies_where_nobody_was_told() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    for map in 0..5 {
        hosts[0].handed(&clients[0], id(map), &partitions(map));
    }
    until("all are copied", || hosts[1].figure("replicas") == 5);
    clients[0].forget(1).unwrap();
    until("their copies go", || hosts[1].figure("replicas") == 0);
    assert_eq!(hosts[1].figure("output_bytes"), 0);
    assert_eq!(hosts[0].figure("replicas_behind"), 0);
    clients[1].end().unwrap();
    assert_eq!(hosts[1].figure("applications"), 0);
}

#[test]
fn copies_survive_a_restart_and_torn_ones_are_found() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    for map in 0..3 {
        hosts[0].handed(&clients[0], id(map), &partitions(map));
    }
    until("all are copied", || hosts[1].figure("replicas") == 3);
    let [source, target] = hosts;
    let torn = target.place();
    let names = target.names();
    let generation_of = |map: i64| {
        let found = names
            .iter()
            .find(|name| name.starts_with(&format!("replica_1_{map}_")) && name.ends_with(".data"));
        found.unwrap().clone()
    };
    let of_two = torn.join(generation_of(2));
    let dir = target.stop();
    // As a crash may leave them: a data file that is short, a copy that was being made, a page.
    File::options()
        .write(true)
        .open(of_two)
        .unwrap()
        .set_len(500)
        .unwrap();
    for name in ["copy.data", "copy.index"] {
        fs::write(torn.join(name), b"half").unwrap();
    }
    let target = Host::at(dir, |_| {});
    until("the torn one is found", || target.figure("replicas") == 2);
    assert!(!target
        .names()
        .iter()
        .any(|name| name.starts_with("copy") || name.starts_with("page")));
    let again = target.client();
    let reader = reader();
    assert_eq!(served(&reader, &again, 0), Some(partitions(0)));
    assert_eq!(served(&reader, &again, 2), None);
    // It reads the list again, and the source the other's.
    introduce(1, &[&clients[0], &again]);
    until("the torn one is copied again", || {
        target.figure("replicas") == 3
    });
    until("the source knows it", || {
        source.figure("replicas_behind") == 0
    });
    assert_eq!(served(&reader, &again, 2), Some(partitions(2)));
    reader.close();
}

#[test]
fn a_source_that_lies_about_its_files_has_no_copy() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    for map in 0..2 {
        hosts[0].handed(&clients[0], id(map), &partitions(map));
    }
    // After it was handed over, as a disk may do: what the index says is not there.
    let place = hosts[0].place();
    let name = hosts[0]
        .names()
        .into_iter()
        .find(|name| name.starts_with("1_0_") && name.ends_with(".data"));
    File::options()
        .write(true)
        .open(place.join(name.unwrap()))
        .unwrap()
        .set_len(600)
        .unwrap();
    introduce(1, &clients.each_ref());
    until("the other one is copied", || {
        hosts[1].figure("replicas") == 1
    });
    until("it is refused", || {
        hosts[1].figure("copies_refused_total") == 1
    });
    assert!(!hosts[1]
        .names()
        .iter()
        .any(|name| name.starts_with("replica_1_0_")));
}

#[test]
fn a_source_that_goes_leaves_what_was_copied() {
    let hosts = [Host::new(), Host::new()];
    let clients = hosts.each_ref().map(Host::client);
    introduce(1, &clients.each_ref());
    for map in 0..5 {
        hosts[0].handed(&clients[0], id(map), &partitions(map));
    }
    until("all are copied", || hosts[1].figure("replicas") == 5);
    let [source, target] = hosts;
    drop(source);
    let reader = reader();
    for map in 0..5 {
        assert_eq!(served(&reader, &clients[1], map), Some(partitions(map)));
    }
    reader.close();
    assert_eq!(target.figure("replicas"), 5);
}

#[test]
fn a_message_about_no_service_is_refused() {
    let host = Host::new();
    let card = host.client().card().to_vec();
    for (replicas, at, of) in [(4, 0, 1), (1, 1, 1), (1, 0, 4_097)] {
        assert!(host.client().host(replicas, at, of, &card).is_err());
    }
    host.client().host(3, 4_095, 4_096, &card).unwrap();
}
