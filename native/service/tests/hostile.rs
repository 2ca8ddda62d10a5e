//! Executors, users and disks that would stop the service for everybody else.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../endpoint/tests/support/mod.rs"]
#[macro_use]
mod support;
#[path = "support/executors.rs"]
mod executors;
#[path = "support/host.rs"]
mod host;
#[path = "support/raw.rs"]
mod raw;

use executors::{hello, reader};
use faro_service::{
    receive, send, Client, ClientError, Metrics, Refusal, Reply, Request, Service, ServiceError,
    Users, SOCKET, VERSIONS,
};
use host::{id, Host};
use raw::{ask, registered};
use rustix::fs::MemfdFlags;
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use support::{write_output, TIMEOUT};

fn output(map: i64) -> Request {
    Request::Output {
        id: id(map),
        has_data: true,
    }
}

/// The signal of a lease; `libc` does not have it.
const F_SETSIG: libc::c_int = 10;

/// From now on, opening the file waits until it is closed here (45 s at most).
fn lease(file: &OwnedFd) {
    let raw = file.as_raw_fd();
    // SAFETY: the descriptor is open, and the commands take a number. Without the first one the kernel would end this
    // process by SIGIO as soon as somebody waits.
    let code = unsafe {
        libc::fcntl(raw, F_SETSIG, libc::SIGURG) | libc::fcntl(raw, libc::F_SETLEASE, libc::F_WRLCK)
    };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_file_whose_opening_waits_stops_nobody() {
    let host = Host::new();
    let spark = tempfile::tempdir_in(host.dir.path()).unwrap();
    let files = write_output(spark.path(), id(5), &[b"x".to_vec(), b"y".to_vec()]);
    let open = |path| -> OwnedFd {
        let file = File::options().read(true).write(true).open(path);
        file.unwrap().into()
    };
    let [index, data] = [open(&files.index), open(&files.data)];
    lease(&index);
    lease(&data);
    let executor = registered(&host, 1);
    assert_eq!(ask(&executor, &output(5), &[&index, &data]), Reply::Done);
    // Its reader is told that it is not to be had now.
    let (client, reader) = (host.client(1).unwrap(), reader(1));
    assert_eq!(client.borrow(&reader, 1, &[5]).unwrap(), [false]);
    assert_eq!(host.figure("outputs"), 1);
    host.handed(&host.client(2).unwrap(), 5, "of another")
        .unwrap();
    reader.close();
}

#[test]
fn an_application_that_has_handed_nothing_over_makes_room() {
    let host = Host::new();
    let mut empty: Vec<Client> = Vec::new();
    for application in 10..40 {
        empty.push(host.client(application).unwrap());
    }
    let first = host.client(1).unwrap();
    host.handed(&first, 1, "some").unwrap();
    let second = host.client(2).unwrap();
    host.handed(&second, 1, "some").unwrap();
    match host.client(3).map(|_| ()).unwrap_err() {
        ClientError::Refused { why, .. } => assert_eq!(why, Refusal::Full),
        other => panic!("{other}"),
    }
    assert_eq!(host.figure("applications"), 2);
    // Who had to go is told nothing wrong: the connection has ended, and is made again when there is room.
    assert!(host.handed(&empty[0], 1, "late").unwrap_err().is_lost());
    second.end().unwrap();
    // Its part of the memory is free at once, whoever is still connected.
    host.handed(&host.client(10).unwrap(), 1, "some").unwrap();
    assert!(host.handed(&second, 2, "late").is_err());
    host.handed(&first, 2, "more").unwrap();
}

#[test]
fn a_data_directory_that_was_removed_is_made_again() {
    let host = Host::new();
    let client = host.client(1).unwrap();
    host.handed(&client, 1, "lost").unwrap();
    let data = host.dir.path().join("data");
    fs::remove_dir_all(&data).unwrap();
    assert!(host.handed(&client, 2, "no place").is_err());
    fs::create_dir(&data).unwrap();
    let another = host.client(1).unwrap();
    for (client, map) in [(&client, 3), (&another, 4)] {
        host.handed(client, map, "kept").unwrap();
    }
    assert_eq!(host.figure("outputs"), 2, "without what was removed");
    let mut of_another = host::options(host.dir.path());
    of_another.socket_directory = host.dir.path().join("another socket");
    match Service::open(of_another).map(|_| ()).unwrap_err() {
        ServiceError::InUse { path } => assert!(path.starts_with(&data)),
        other => panic!("{other}"),
    }
    assert_eq!(host.kept_names(), 5);
    let reader = reader(1);
    assert_eq!(
        client.borrow(&reader, 1, &[1, 3, 4]).unwrap(),
        [false, true, true]
    );
    reader.close();
    drop((client, another));
    let host = Host::again(host.stop());
    assert_eq!(host.figure("outputs"), 2, "a restart finds them");
}

#[test]
fn memory_without_a_name_is_no_map_output() {
    let host = Host::new();
    let executor = registered(&host, 1);
    let memory = |bytes: &[u8]| -> OwnedFd {
        let file: OwnedFd = rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC).unwrap();
        let mut file = File::from(file);
        file.write_all(bytes).unwrap();
        file.into()
    };
    let index = memory(&[0, 4].map(u64::to_be_bytes).concat());
    let data = memory(b"four");
    match ask(&executor, &output(5), &[&index, &data]) {
        Reply::Refused { why, text } => {
            assert_eq!(why, Refusal::Files);
            assert!(text.contains("removed"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.figure("kept_open_total"), 0);
}

#[test]
fn silent_clients_of_the_figures_stop_no_other() {
    let host = Host::new();
    let metrics = Metrics::start(host.service.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
    let connect = || TcpStream::connect(metrics.address()).unwrap();
    let silent: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
    let asks = |mut client: TcpStream| {
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("faro_service_outputs 0\n"), "{answer}");
    };
    asks(connect());
    // They were not waited for one after the other: each still has its time.
    silent.into_iter().for_each(asks);
}

/// Makes connections as another user, which say nothing.
fn connections_of(user: u32, host: &Host, count: usize) -> Vec<OwnedFd> {
    let path = host.dir.path().join("socket").join(SOCKET);
    let connects = move || {
        let user = rustix::process::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        let one = |_| {
            let flags = SocketFlags::CLOEXEC;
            let socket =
                socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            connect(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
            socket
        };
        (0..count).map(one).collect()
    };
    // Only this thread becomes the other user.
    std::thread::spawn(connects).join().unwrap()
}

#[test]
fn users_who_are_not_served_take_no_connection() {
    let own = rustix::process::geteuid();
    if !own.is_root() {
        return;
    }
    let host = Host::with(|options| {
        options.users = Users::These(vec![own.as_raw()]);
        options.connections = 2;
    });
    rustix::fs::chmod(host.dir.path(), 0o755.into()).unwrap();
    let silent = connections_of(54_321, &host, 8);
    let _both = [host.client(1).unwrap(), host.client(2).unwrap()];
    // They are told that they are not served, and not that there is no room.
    send(
        silent[0].as_fd(),
        &Request::Hello(hello(1), VERSIONS).encode(),
        &[],
    )
    .unwrap();
    let told = receive(silent[0].as_fd()).unwrap();
    match Reply::decode(&told.bytes).unwrap() {
        Reply::Refused { why, .. } => assert_eq!(why, Refusal::User),
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_users_of_many_leave_connections_for_a_third() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = Host::with(|options| {
        options.users = Users::Any;
        options.connections = 6;
    });
    rustix::fs::chmod(host.dir.path(), 0o755.into()).unwrap();
    let _silent = [1_001, 1_002].map(|user| connections_of(user, &host, 8));
    let client = Client::connect(&host.dir.path().join("socket"), hello(1), TIMEOUT).unwrap();
    host.handed(&client, 1, "some").unwrap();
}

#[test]
fn mutated_messages_end_their_connections_only() {
    let host = Host::new();
    let good = host.client(1).unwrap();
    host.handed(&good, 1, "some").unwrap();
    let all = [
        output(5),
        Request::Lend {
            shuffle: 1,
            files: true,
            maps: vec![1, 2],
        },
        Request::Forget { shuffle: 1 },
        Request::Host {
            replicas: 1,
            at: 1,
            of: 2,
            card: vec![7; 9],
        },
        Request::Behind,
        Request::Hello(hello(2), VERSIONS),
    ];
    let mut sockets = Vec::new();
    for request in all {
        let bytes = request.encode();
        for bit in 0..8 * bytes.len().min(40) {
            let mut mutated = bytes.to_vec();
            mutated[bit / 8] ^= 1 << (bit % 8);
            let socket = sockets.pop().unwrap_or_else(|| registered(&host, 2));
            send(socket.as_fd(), &mutated, &[]).unwrap();
            let answer = receive(socket.as_fd()).map(|got| Reply::decode(&got.bytes).unwrap());
            match answer {
                // Its connection ends; some mutations are "my application has ended".
                Err(_) | Ok(Reply::Refused { .. }) => {}
                Ok(_) if mutated == *Request::End.encode() => {}
                Ok(_) => sockets.push(socket),
            }
        }
    }
    host.handed(&good, 2, "more").unwrap();
    let reader = reader(1);
    assert_eq!(good.borrow(&reader, 1, &[1, 2]).unwrap(), [true, true]);
    reader.close();
}
