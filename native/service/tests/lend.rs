//! A service lends the files of map outputs to readers of its host: what they read, and who gets nothing.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;

use executors::{hello, reader};
use faro_endpoint::{Endpoint, LocalError};
use faro_service::{
    receive, send, Client, ClientError, LoanState, Refusal, Reply, Request, SOCKET, VERSIONS,
};
use host::{id, Host};
use rustix::net::{
    accept, bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use support::{write_output, TIMEOUT};

/// Hands over outputs of two partitions whose executor and files are gone then.
fn hand_over(host: &Host, application: u8, maps: impl IntoIterator<Item = i64>) {
    let client = client(host, application);
    for map in maps {
        host.handed(&client, map, &text(map)).unwrap();
    }
}

fn client(host: &Host, application: u8) -> Client {
    host.client(application).unwrap()
}

fn lent(host: &Host) -> u64 {
    host.figure("lent_total")
}

fn text(map: i64) -> String {
    format!("of {map}")
}

fn first(map: i64) -> Vec<u8> {
    text(map).into_bytes()
}

fn read(reader: &Endpoint, map: i64, partition: u32) -> Vec<u8> {
    let block = reader.local(id(map), partition, partition + 1).unwrap();
    assert!(block.is_lent());
    let mut bytes = vec![0; block.length() as usize];
    block.read_at(0, &mut bytes).unwrap();
    bytes
}

fn is_unresolved(reader: &Endpoint, map: i64) -> bool {
    matches!(reader.local(id(map), 0, 1), Err(LocalError::Unresolved(_)))
}

#[test]
fn a_reader_reads_files_of_executors_that_are_gone() {
    let host = Host::new();
    hand_over(&host, 1, [5, 6]);
    let (client, reader) = (client(&host, 1), reader(1));
    let readable = client.borrow(&reader, 1, &[5, 7, 6]).unwrap();
    assert_eq!(readable, [true, false, true]);
    for map in [5, 6] {
        assert_eq!(read(&reader, map, 0), first(map));
        assert_eq!(read(&reader, map, 1), b"rest");
    }
    assert!(is_unresolved(&reader, 7));
    assert_eq!(lent(&host), 2);
    // What is here is not asked for again.
    assert_eq!(client.borrow(&reader, 1, &[5, 6]).unwrap(), [true, true]);
    assert_eq!(lent(&host), 2);
    reader.close();
}

#[test]
fn an_empty_output_is_one_file() {
    let host = Host::new();
    let (client, reader) = (client(&host, 1), reader(1));
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(1), &[vec![], vec![]]);
    std::fs::remove_file(&files.data).unwrap();
    client.hand_over(id(1), &files.index, &files.data).unwrap();
    assert_eq!(client.borrow(&reader, 1, &[1]).unwrap(), [true]);
    assert_eq!(read(&reader, 1, 1), b"");
    reader.close();
}

#[test]
fn many_outputs_take_few_messages_and_stay_within_the_bound() {
    let host = Host::new();
    let maps: Vec<i64> = (0..1_500).collect();
    hand_over(&host, 1, maps.iter().copied());
    let (client, reader) = (client(&host, 1), reader(1));
    let readable = client.borrow(&reader, 1, &maps).unwrap();
    assert!(readable.iter().all(|&is| is));
    let now = (reader.max_lent() / 32).max(1) as u64;
    assert_eq!(lent(&host), now.min(1_500));
    // The others when they are needed.
    for map in maps {
        if is_unresolved(&reader, map) {
            assert_eq!(client.borrow(&reader, 1, &[map]).unwrap(), [true]);
        }
        assert_eq!(read(&reader, map, 0), first(map));
    }
    reader.close();
}

/// What is lent meanwhile is right or not there, whatever else is done with the outputs.
#[test]
fn loans_beside_hand_overs_removals_and_ends() {
    const MAPS: [i64; 4] = [0, 1, 2, 3];
    let host = Host::new();
    let works = AtomicBool::new(true);
    let right = AtomicUsize::new(0);
    let reads = || {
        let reader = reader(1);
        while works.load(Relaxed) {
            // Of an application that has just ended, or is being removed.
            let Ok(client) = host.client(1) else {
                continue;
            };
            // Where the application has ended there is nothing any more on this connection.
            let borrows = || client.borrow(&reader, 1, &MAPS);
            while borrows().is_ok_and(|all| all.contains(&true)) && works.load(Relaxed) {
                for map in MAPS {
                    let Ok(block) = reader.local(id(map), 0, 1) else {
                        continue;
                    };
                    let mut bytes = vec![0; block.length() as usize];
                    if block.read_at(0, &mut bytes).is_ok() {
                        assert_eq!(bytes, first(map));
                        right.fetch_add(1, Relaxed);
                    }
                }
                reader.forget_shuffle(1);
            }
        }
        reader.close();
    };
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(reads)).collect();
        let mut turn = 0;
        while right.load(Relaxed) < 2_000 && readers.iter().all(|one| !one.is_finished()) {
            turn += 1;
            let Ok(client) = host.client(1) else {
                continue;
            };
            for map in MAPS {
                // The reader's connection may have been the one that came first after an end.
                let _ = host.handed(&client, map, &text(map));
            }
            match turn % 8 {
                0 => drop(client.end()),
                4 => drop(client.forget(1)),
                _ => {}
            }
        }
        works.store(false, Relaxed);
    });
    assert!(right.load(Relaxed) >= 2_000);
    hand_over(&host, 1, MAPS);
    assert_eq!(host.figure("outputs"), MAPS.len() as u64);
}

#[test]
fn another_application_gets_nothing() {
    let host = Host::new();
    hand_over(&host, 1, [5]);
    let (client, reader) = (client(&host, 2), reader(1));
    assert_eq!(client.borrow(&reader, 1, &[5]).unwrap(), [false]);
    assert!(is_unresolved(&reader, 5));
    assert_eq!(lent(&host), 0);
    reader.close();
}

#[test]
fn a_removed_shuffle_is_lent_no_more() {
    let host = Host::new();
    hand_over(&host, 1, [5, 6]);
    let (client, reader) = (client(&host, 1), reader(1));
    client.borrow(&reader, 1, &[5]).unwrap();
    client.forget(1).unwrap();
    // Who has it may read on; the bytes are those that were lent.
    assert_eq!(read(&reader, 5, 0), first(5));
    assert_eq!(client.borrow(&reader, 1, &[6]).unwrap(), [false]);
    reader.forget_shuffle(1);
    assert!(is_unresolved(&reader, 5));
    assert_eq!(client.borrow(&reader, 1, &[5]).unwrap(), [false]);
    reader.close();
}

#[test]
fn what_is_lent_cannot_be_written() {
    let host = Host::new();
    let socket = registered(&host);
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(5), &[first(5)]);
    let open = |path| File::options().read(true).write(true).open(path).unwrap();
    let [index, data] = [open(&files.index), open(&files.data)];
    let output = Request::Output {
        id: id(5),
        has_data: true,
    };
    let descriptors = [index.as_fd(), data.as_fd()];
    send(socket.as_fd(), &output.encode(), &descriptors).unwrap();
    assert_eq!(
        Reply::decode(&receive(socket.as_fd()).unwrap().bytes).unwrap(),
        Reply::Done
    );
    let lend = Request::Lend {
        shuffle: 1,
        files: true,
        maps: vec![5],
    };
    send(socket.as_fd(), &lend.encode(), &[]).unwrap();
    let received = receive(socket.as_fd()).unwrap();
    assert_eq!(
        Reply::decode(&received.bytes).unwrap(),
        Reply::Lent(vec![LoanState::Whole])
    );
    for descriptor in received.descriptors {
        assert!(File::from(descriptor).write_all(b"x").is_err());
    }
    assert_eq!(std::fs::read(&files.data).unwrap(), first(5));
}

#[test]
fn a_question_before_the_greeting_or_with_too_many_is_refused() {
    let host = Host::new();
    let lend = |files, count| Request::Lend {
        shuffle: 1,
        files,
        maps: vec![5; count],
    };
    for (socket, request) in [
        (connection(&host), lend(true, 1)),
        (registered(&host), lend(true, 127)),
        (registered(&host), lend(false, 1_001)),
    ] {
        send(socket.as_fd(), &request.encode(), &[]).unwrap();
        let reply = Reply::decode(&receive(socket.as_fd()).unwrap().bytes).unwrap();
        assert!(
            matches!(
                reply,
                Reply::Refused {
                    why: Refusal::Message,
                    ..
                }
            ),
            "{reply:?}"
        );
    }
}

fn connection(host: &Host) -> OwnedFd {
    let path = host.dir.path().join("socket").join(SOCKET);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
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
    receive(socket.as_fd()).unwrap();
    socket
}

/// What a client says to a service that gives this answer, with as many descriptors of `file`.
fn lied_to(lent: Vec<LoanState>, file: &File, count: usize) -> (ClientError, bool) {
    let dir = tempfile::tempdir().unwrap();
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    bind(
        &socket,
        &SocketAddrUnix::new(dir.path().join(SOCKET)).unwrap(),
    )
    .unwrap();
    listen(&socket, 1).unwrap();
    let file = file.try_clone().unwrap();
    let liar = std::thread::spawn(move || {
        let connection = accept(&socket).unwrap();
        receive(connection.as_fd()).unwrap();
        let card = vec![];
        send(
            connection.as_fd(),
            &Reply::Welcome {
                version: VERSIONS.newest,
                card,
            }
            .encode(),
            &[],
        )
        .unwrap();
        receive(connection.as_fd()).unwrap();
        let of = file.as_fd();
        send(
            connection.as_fd(),
            &Reply::Lent(lent).encode(),
            &vec![of; count],
        )
        .unwrap();
        // Until the client has seen it.
        let _ = receive(connection.as_fd());
    });
    let (client, reader) = (
        Client::connect(dir.path(), hello(1), TIMEOUT).unwrap(),
        reader(1),
    );
    let error = client.borrow(&reader, 1, &[5]).unwrap_err();
    assert!(is_unresolved(&reader, 5));
    let connected = client.is_connected();
    reader.close();
    drop(client);
    liar.join().unwrap();
    (error, connected)
}

#[test]
fn a_service_that_lies_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let no_index = dir.path().join("index");
    std::fs::write(&no_index, [0; 17]).unwrap();
    for file in [
        File::open("/dev/zero").unwrap(),
        File::open(dir.path()).unwrap(),
        File::open(&no_index).unwrap(),
    ] {
        let (error, connected) = lied_to(vec![LoanState::Whole], &file, 2);
        assert!(matches!(error, ClientError::Loan(_)), "{error}");
        assert!(connected);
    }
    let file = File::open(&no_index).unwrap();
    for (lent, count) in [
        (vec![LoanState::Whole], 1),
        (vec![LoanState::Empty], 2),
        (vec![LoanState::NotHere], 1),
        (vec![LoanState::Whole; 2], 4),
    ] {
        let (error, connected) = lied_to(lent, &file, count);
        assert!(matches!(error, ClientError::Unexpected), "{error}");
        assert!(!connected);
    }
}
