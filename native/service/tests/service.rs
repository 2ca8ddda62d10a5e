//! A whole service in this process: executors register and hand over, readers fetch, and those who lie get nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;

use executors::{hello, read, reader};
use faro_service::{
    ask_status, figure, receive, send, tell, ApplicationMember, Client, ClientError, Metrics,
    Options, Refusal, Reply, Request, Service, Token, Users, SOCKET, VERSIONS,
};
use faro_wire::{Card, VersionRange};
use host::{id, options, Host, IDLE};
use rustix::fs::{Mode, OFlags};
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;
use support::{block, fetch, until, write_output, TIMEOUT};

fn refusal(result: Result<(), ClientError>) -> Refusal {
    match result.unwrap_err() {
        ClientError::Refused { why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn an_output_is_served_when_its_executor_is_gone() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 5, "of executor 1").unwrap();
    let card = client.card().to_vec();
    drop(client);
    let reader = reader(1);
    let blocks = [(0, b"of executor 1".to_vec()), (0, b"rest".to_vec())];
    assert_eq!(read(&reader, &card, 5), blocks);
    assert_eq!(host.figure("served_blocks_total"), 2);
    reader.close();
}

#[test]
fn an_empty_output_needs_no_data_file() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(1), &[vec![], vec![]]);
    fs::remove_file(&files.data).unwrap();
    client.hand_over(id(1), &files.index, &files.data).unwrap();
    let reader = reader(1);
    let nothing = [(0, vec![]), (0, vec![])];
    assert_eq!(read(&reader, client.card(), 1), nothing);
    reader.close();
}

#[test]
fn applications_are_apart() {
    let host = Host::new();
    let (first, second) = (host.client(1).unwrap(), host.client(2).unwrap());
    host.handed(&first, 5, "of the first").unwrap();
    // The same id in the other application is another output, which is not there.
    let other = reader(2);
    assert!(read(&other, second.card(), 5)
        .iter()
        .all(|(status, _)| *status != 0));
    // Its card does not open the first one's endpoint, whatever endpoint it is said to be of; nor does the first
    // one's card in its own application.
    let [of_first, of_second] = [&first, &second].map(|one| Card::decode(one.card()).unwrap());
    assert_eq!(of_first.addresses, of_second.addresses, "one port for all");
    let forged = Card {
        endpoint: of_first.endpoint,
        ..of_second
    };
    let peer = reader(2);
    for card in [&forged, &of_first] {
        let at = peer.add_peer(&card.encode()).unwrap();
        assert!(fetch(&peer, at, &[block(1, 5, 0, 1)]).failure.is_some());
    }
    // It cannot remove or replace what it can name.
    second.forget(1).unwrap();
    host.handed(&second, 5, "of the second").unwrap();
    second.end().unwrap();
    let reader = reader(1);
    assert_eq!(read(&reader, first.card(), 5)[0].1, b"of the first");
    assert_eq!(host.figure("applications"), 1);
    for endpoint in [other, peer, reader] {
        endpoint.close();
    }
}

#[test]
fn a_name_does_not_open_an_application() {
    let host = Host::new();
    let first = host.client(1).unwrap();
    host.handed(&first, 5, "of the first").unwrap();
    // Another token with the same id of Spark is another application.
    let mut guess = hello(1);
    guess.token = Token::new([9; 32]);
    let socket = host.dir.path().join("socket");
    let guessed = Client::connect(&socket, guess, TIMEOUT).unwrap();
    guessed.forget(1).unwrap();
    assert_ne!(guessed.card(), first.card());
    assert_eq!(host.figure("outputs"), 1);
    // The token with another id, another secret or another protection is refused.
    let mut others = [hello(1), hello(1), hello(1)];
    others[0].application = "app-9".to_owned();
    others[1].secret = b"secret".to_vec().into();
    others[2].sealed = true;
    for other in others {
        let refused = Client::connect(&socket, other, TIMEOUT).map(|_| ());
        assert_eq!(refusal(refused), Refusal::User);
    }
}

#[test]
fn a_quota_and_a_number_of_applications_are_kept_to() {
    let host = Host::with(|options| options.quota = 100);
    let (first, second) = (host.client(1).unwrap(), host.client(2).unwrap());
    for client in [&first, &second] {
        host.handed(client, 1, "small").unwrap();
    }
    assert_eq!(refusal(host.client(3).map(|_| ())), Refusal::Full);
    assert_eq!(
        refusal(host.handed(&first, 2, &"x".repeat(200))),
        Refusal::Quota
    );
    // The connection goes on.
    host.handed(&first, 3, "small").unwrap();
    assert_eq!(
        (host.figure("outputs"), host.figure("refused_total")),
        (3, 2)
    );
}

#[test]
fn one_user_of_several_has_half_of_the_applications() {
    let host = Host::with(|options| options.users = Users::Any);
    let first = host.client(1).unwrap();
    host.handed(&first, 1, "text").unwrap();
    assert_eq!(refusal(host.client(2).map(|_| ())), Refusal::Full);
    let _again = host.client(1).unwrap();
}

#[test]
fn an_end_leaves_nothing() {
    let host = Host::new();
    let (first, again) = (host.client(1).unwrap(), host.client(1).unwrap());
    for map in 0..20 {
        host.handed(&first, map, "text").unwrap();
    }
    assert_eq!(host.kept_names(), 41);
    again.forget(1).unwrap();
    assert_eq!((host.kept_names(), host.figure("removed_total")), (1, 20));
    host.handed(&first, 1, "text").unwrap();
    again.end().unwrap();
    assert_eq!(host.kept_names(), 0);
    assert_eq!(refusal(host.handed(&first, 2, "late")), Refusal::Ended);
    assert_eq!(host.kept_names(), 0);
}

#[test]
fn an_application_that_is_not_heard_of_goes() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 1, "text").unwrap();
    let later = Instant::now() + 2 * IDLE;
    host.service.tick(later);
    assert_eq!(host.figure("outputs"), 1, "an executor is connected");
    drop(client);
    let mut now = later;
    until("an idle application goes", || {
        // As long as its connection's thread has not noticed, it is heard of at each look.
        now += 2 * IDLE;
        host.service.tick(now);
        host.figure("applications") == 0
    });
    assert_eq!(host.kept_names(), 0);
}

#[test]
fn a_restart_serves_again_what_was_kept() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 5, "before").unwrap();
    assert!(client.is_connected());
    let dir = host.stop();
    assert!(!client.is_connected());
    let host = Host::again(dir);
    assert_eq!(host.figure("outputs"), 1);
    assert!(!client.is_connected(), "of the service before");
    assert!(host.handed(&client, 6, "lost").unwrap_err().is_lost());
    let client = host.client(1).unwrap();
    let reader = reader(1);
    assert_eq!(read(&reader, client.card(), 5)[0].1, b"before");
    reader.close();
}

#[test]
fn what_is_left_of_another_boot_or_without_a_record_is_removed() {
    let host = Host::new();
    let clients = [host.client(1).unwrap(), host.client(2).unwrap()];
    for client in &clients {
        host.handed(client, 5, "before").unwrap();
    }
    let dir = host.stop();
    for (at, one) in fs::read_dir(dir.path().join("data/applications"))
        .unwrap()
        .enumerate()
    {
        let record = one.unwrap().path().join("application");
        match at {
            0 => fs::remove_file(record).unwrap(),
            _ => {
                let bytes = fs::read(&record).unwrap();
                fs::write(record, &bytes[..bytes.len() - 1]).unwrap();
            }
        }
    }
    let host = Host::again(dir);
    assert_eq!((host.figure("outputs"), host.kept_names()), (0, 0));
}

#[test]
fn one_service_has_a_directory() {
    let host = Host::new();
    let second = Service::open(options(host.dir.path())).map(|_| ());
    assert!(second.unwrap_err().to_string().contains("another service"));
    // Also when what is in it was removed, as who cleans up may do it.
    let elsewhere = tempfile::tempdir().unwrap();
    for shared in ["socket", "data"] {
        let directory = host.dir.path().join(shared);
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                fs::remove_file(path).unwrap();
            }
        }
        let mut of_second = options(elsewhere.path());
        match shared {
            "socket" => of_second.socket_directory = directory,
            _ => of_second.data_directory = directory,
        }
        let second = Service::open(of_second).map(|_| ());
        assert!(
            second.unwrap_err().to_string().contains("another service"),
            "{shared}"
        );
    }
}

#[test]
fn what_is_another_services_by_now_is_left_to_it() {
    let first = Host::new();
    let client = first.client(1).unwrap();
    first.handed(&client, 1, "lost").unwrap();
    let place = first.dir.path().to_owned();
    for of in ["socket", "data"] {
        fs::remove_dir_all(place.join(of)).unwrap();
    }
    let second = Service::open(options(&place)).unwrap();
    let listener = faro_service::Listener::start(&second).unwrap();
    let of_second = first.client(1).unwrap();
    first.handed(&of_second, 2, "kept").unwrap();
    let names = first.kept_names();
    // The first one ends the application, and then itself.
    client.end().unwrap();
    until("it has ended there", || first.figure("applications") == 0);
    let place = first.stop();
    let kept = fs::read_dir(place.path().join("data/applications")).unwrap();
    let kept = kept.map(|one| fs::read_dir(one.unwrap().path()).unwrap().count());
    assert_eq!(kept.sum::<usize>(), names);
    assert!(place.path().join("socket").join(SOCKET).exists());
    drop(listener);
    second.close();
    assert!(!place.path().join("socket").join(SOCKET).exists());
}

/// A connection by hand.
fn connection(host: &Host) -> OwnedFd {
    let path = host.dir.path().join("socket").join(SOCKET);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    socket
}

fn registered(host: &Host) -> OwnedFd {
    let socket = connection(host);
    send(
        socket.as_fd(),
        &Request::Hello(hello(1), VERSIONS).encode(),
        &[],
    )
    .unwrap();
    let reply = receive(socket.as_fd()).unwrap();
    assert!(matches!(
        Reply::decode(&reply.bytes),
        Ok(Reply::Welcome { .. })
    ));
    socket
}

fn answer(socket: &OwnedFd) -> Reply {
    Reply::decode(&receive(socket.as_fd()).unwrap().bytes).unwrap()
}

fn is_refused(reply: &Reply, wanted: Refusal) -> bool {
    matches!(reply, Reply::Refused { why, .. } if *why == wanted)
}

#[test]
fn descriptors_that_are_no_map_output_are_refused() {
    let host = Host::new();
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(1), &[b"bytes".to_vec()]);
    let open = |flags| rustix::fs::open(&files.index, flags, Mode::empty()).unwrap();
    let index = open(OFlags::RDONLY);
    let data: OwnedFd = File::open(&files.data).unwrap().into();
    let directory: OwnedFd = File::open(spark.path()).unwrap().into();
    let (pipe, _write) = rustix::pipe::pipe().unwrap();
    let (path, write_only) = (open(OFlags::PATH), open(OFlags::WRONLY));
    let null: OwnedFd = File::open("/dev/null").unwrap().into();
    let socket = registered(&host);
    let ask = |files: &[&OwnedFd]| {
        let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        let request = Request::Output {
            id: id(1),
            has_data: true,
        };
        send(socket.as_fd(), &request.encode(), &files).unwrap();
        answer(&socket)
    };
    for wrong in [
        [&data, &index],
        [&index, &index],
        [&index, &directory],
        [&index, &pipe],
        [&pipe, &data],
        [&index, &null],
        [&path, &data],
        [&write_only, &data],
        [&directory, &directory],
    ] {
        let reply = ask(&wrong);
        assert!(is_refused(&reply, Refusal::Files), "{reply:?}");
    }
    assert_eq!((host.figure("outputs"), host.kept_names()), (0, 1));
    assert_eq!(ask(&[&index, &data]), Reply::Done);
    assert_eq!(host.figure("outputs"), 1);
    // One descriptor too few ends the connection.
    assert!(is_refused(&ask(&[&index]), Refusal::Message));
    assert!(receive(socket.as_fd()).is_err());
}

#[test]
fn a_file_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = Host::new();
    let client = host.client(1).unwrap();
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(1), &[b"bytes".to_vec()]);
    std::os::unix::fs::chown(&files.data, Some(12_345), None).unwrap();
    let refused = client.hand_over(id(1), &files.index, &files.data);
    assert_eq!(refusal(refused), Refusal::Files);
}

#[test]
fn messages_that_are_none_end_their_connection_only() {
    let host = Host::new();
    let good = host.client(1).unwrap();
    let output = Request::Output {
        id: id(1),
        has_data: false,
    };
    let newer = VersionRange::new(VERSIONS.newest + 1, VERSIONS.newest + 2);
    let newer = Request::Hello(hello(1), newer).encode();
    // As it was before a hello named a range: one version, then whether connections are sealed.
    let mut oldest = newer.to_vec();
    oldest[5..7].copy_from_slice(&3u16.to_le_bytes());
    oldest.drain(7..9);
    for (bytes, why) in [
        (output.encode().to_vec(), Refusal::Message),
        (vec![99], Refusal::Message),
        (b"GET / HTTP/1.1".to_vec(), Refusal::Message),
        (newer.to_vec(), Refusal::Version),
        (oldest, Refusal::Version),
    ] {
        let socket = connection(&host);
        send(socket.as_fd(), &bytes, &[]).unwrap();
        assert!(is_refused(&answer(&socket), why));
        assert!(receive(socket.as_fd()).is_err());
    }
    // Longer than any message: the kernel's own way, as `send` refuses it.
    let socket = registered(&host);
    let long = vec![0; 20_000];
    rustix::net::send(&socket, &long, rustix::net::SendFlags::empty()).unwrap();
    assert!(receive(socket.as_fd()).is_err());
    // A second handshake.
    let socket = registered(&host);
    send(
        socket.as_fd(),
        &Request::Hello(hello(2), VERSIONS).encode(),
        &[],
    )
    .unwrap();
    assert!(is_refused(&answer(&socket), Refusal::Message));
    host.handed(&good, 1, "still here").unwrap();
}

#[test]
fn a_jar_of_a_neighbouring_version_is_served() {
    let host = Host::new();
    let own = VERSIONS;
    for offered in [
        own,
        VersionRange::new(own.newest, own.newest + 1),
        VersionRange::new(own.oldest, own.newest + 1),
    ] {
        let socket = connection(&host);
        let bytes = Request::Hello(hello(1), offered).encode();
        send(socket.as_fd(), &bytes, &[]).unwrap();
        match answer(&socket) {
            Reply::Welcome { version, .. } => assert_eq!(Ok(version), own.common(offered)),
            other => panic!("{offered}: {other:?}"),
        }
    }
    // Two versions apart: the line says which side to upgrade.
    for (offered, older) in [
        (VersionRange::new(own.oldest - 2, own.oldest - 1), "the jar"),
        (
            VersionRange::new(own.newest + 1, own.newest + 2),
            "the daemon",
        ),
    ] {
        let socket = connection(&host);
        let bytes = Request::Hello(hello(1), offered).encode();
        send(socket.as_fd(), &bytes, &[]).unwrap();
        match answer(&socket) {
            Reply::Refused { why, text } => {
                assert_eq!(why, Refusal::Version);
                assert!(text.contains(&format!("upgrade {older} first")), "{text}");
            }
            other => panic!("{offered}: {other:?}"),
        }
    }
}

#[test]
fn another_user_is_refused() {
    let host = Host::with(|options| options.users = Users::These(vec![54_321]));
    let refused = host.client(1).map(|_| ());
    assert_eq!(refusal(refused), Refusal::User);
}

#[test]
fn one_connection_too_many_hears_of_the_limit() {
    let host = Host::with(|options| options.connections = 2);
    let first = host.client(1).unwrap();
    let _second = host.client(1).unwrap();
    match host.client(1).map(|_| ()) {
        Err(ClientError::Refused { why, text }) => {
            assert_eq!(why, Refusal::Full);
            assert_eq!(text, "2 executors are connected, as many as may be");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        ask_status(&host.dir.path().join("socket"), TIMEOUT),
        Err(ClientError::Refused {
            why: Refusal::Full,
            ..
        })
    ));
    drop(first);
    until("a connection is free", || host.client(1).is_ok());
}

fn member(application: u8) -> ApplicationMember {
    ApplicationMember {
        application: format!("app-{application}"),
        sealed: false,
        secret: Default::default(),
    }
}

#[test]
fn a_host_without_an_executor_hears_of_removed_shuffles_and_of_the_end() {
    let (one, two) = (Host::new(), Host::new());
    let clients = [&one, &two].map(|host| host.client(1).unwrap());
    for (host, client) in [&one, &two].into_iter().zip(&clients) {
        host.handed(client, 1, "of shuffle 1").unwrap();
    }
    let cards: Vec<Vec<u8>> = clients.iter().map(|c| c.card().to_vec()).collect();
    drop(clients);
    // Shuffles that are not here, and one twice.
    let removed = [0, 1, 1, 9];
    assert_eq!(
        tell(&member(1), &cards, &removed[..1], false, TIMEOUT).unwrap(),
        2
    );
    assert_eq!(
        tell(&member(1), &cards, &removed, false, TIMEOUT).unwrap(),
        2
    );
    for host in [&one, &two] {
        until("its output is removed", || {
            host.figure("removed_total") == 1
        });
        assert_eq!(host.figure("outputs"), 0);
        assert_eq!(host.figure("applications"), 1);
    }
    assert_eq!(tell(&member(1), &cards, &[], true, TIMEOUT).unwrap(), 2);
    for host in [&one, &two] {
        until("the application is gone", || {
            host.figure("applications") == 0
        });
        let applications = host.dir.path().join("data/applications");
        until("its directory is gone", || {
            fs::read_dir(&applications).unwrap().count() == 0
        });
    }
    // Who has gone cannot be told again.
    assert_eq!(tell(&member(1), &cards, &[], true, TIMEOUT).unwrap(), 0);
}

#[test]
fn another_application_removes_nothing() {
    let host = Host::new();
    let mut hello = hello(1);
    hello.secret = b"the application's".to_vec().into();
    let socket = host.dir.path().join("socket");
    let client = Client::connect(&socket, hello, TIMEOUT).unwrap();
    host.handed(&client, 1, "stays").unwrap();
    let cards = [client.card().to_vec()];
    let mut outsider = member(2);
    outsider.secret = b"another's".to_vec().into();
    let mut guesses = member(1);
    guesses.secret = b"a guess".to_vec().into();
    for (who, member) in [outsider, guesses, member(1)].iter().enumerate() {
        let told = tell(member, &cards, &[1], true, TIMEOUT).unwrap();
        assert_eq!(told, 0, "{who}");
    }
    host.service.tick(Instant::now());
    assert_eq!(
        (host.figure("applications"), host.figure("outputs")),
        (1, 1)
    );
}

#[test]
fn memory_is_of_all_applications_and_enough_for_each() {
    let host = Host::with(|options| {
        options.applications = 3;
        options.memory = 100 << 20;
    });
    let clients = [1, 2, 3].map(|application| host.client(application).unwrap());
    for (application, client) in (1..).zip(&clients) {
        host.handed(client, 1, "some").unwrap();
        assert_eq!(read(&reader(application), client.card(), 1)[1].1, b"rest");
    }
    let (limit, taken) = (
        host.figure("memory_limit_bytes"),
        host.figure("memory_bytes"),
    );
    assert_eq!(limit, 96 << 20);
    assert!((1..=limit).contains(&taken), "{taken} of {limit}");
    let dir = tempfile::tempdir().unwrap();
    let little = Options {
        applications: 3,
        memory: 95 << 20,
        ..options(dir.path())
    };
    let error = Service::open(little).err().unwrap().to_string();
    for part in ["99614720", "3 applications", "33554432", "--memory"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn a_status_says_what_is_kept() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 1, "some").unwrap();
    read(&reader(1), client.card(), 1);
    let (user, status) = ask_status(&host.dir.path().join("socket"), TIMEOUT).unwrap();
    assert_eq!(user, rustix::process::geteuid().as_raw());
    assert_eq!(status.version, env!("CARGO_PKG_VERSION"));
    for (name, value) in [
        ("applications", 1),
        ("executors", 1),
        ("outputs", 1),
        ("linked_total", 1),
        ("kept_open_total", 0),
        ("served_blocks_total", 2),
        ("refused_total", 0),
        ("loans", 0),
    ] {
        assert_eq!(status.figure(name), value, "{name}");
    }
    let [one] = &status.applications[..] else {
        panic!("{:?}", status.applications);
    };
    assert_eq!(
        (&*one.name, one.user, &*one.state),
        ("app-1", user, "serving")
    );
    assert_eq!(figure(&one.figures, "outputs"), 1);
    assert_eq!(figure(&one.figures, "executors"), 1);
    assert!(figure(&one.figures, "quota_bytes") > 0);
    drop(client);
    until("no executor", || host.figure("executors") == 0);
    let another = ask_status(&host.dir.path().join("nowhere"), TIMEOUT);
    assert!(matches!(another, Err(ClientError::Absent { .. })));
}

#[test]
fn figures_are_given_at_the_address_that_was_asked_for() {
    let host = Host::new();
    let address = "127.0.0.2:0".parse().unwrap();
    let metrics = Metrics::start(host.service.clone(), address).unwrap();
    let mut client = TcpStream::connect(metrics.address()).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    for part in [
        "200 OK",
        "faro_service_connections_refused_total 0\n",
        "faro_service_table_limit_bytes 33554432\n",
        "faro_service_outputs_limit 32768\n",
    ] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
    let same = Metrics::start(host.service.clone(), metrics.address()).map(|_| ());
    let error = same.unwrap_err().to_string();
    assert!(error.contains("127.0.0.2"), "{error}");
}
