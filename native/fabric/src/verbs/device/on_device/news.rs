//! The device's asynchronous events, where the link can be taken down: in the guest only.

use super::super::survey::device_file;
use super::*;
use std::path::Path;
use std::process::Command;

fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap())
        .args(words)
        .status()
        .unwrap();
    assert!(status.success(), "{command}");
}

/// Returns whether this runs in a guest, so that no real link is taken down.
fn in_guest() -> bool {
    std::env::var_os("FARO_SOFTROCE_GUEST").is_some()
}

/// Waits for news that `wanted` knows.
fn news(device: &Device, wanted: impl Fn(&AsyncEvent) -> bool) {
    let mut others = Vec::new();
    loop {
        while let Some(event) = device.next_async() {
            if wanted(&event) {
                return;
            }
            others.push(event);
        }
        assert!(readable(device.async_fd(), true), "only {others:?}");
    }
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn no_news_does_not_block() {
    let bench = DeviceBench::new();
    while bench.device.next_async().is_some() {}
    assert_eq!(bench.device.next_async(), None);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_link_that_flaps_is_told() {
    if !in_guest() {
        return;
    }
    let bench = DeviceBench::new();
    run("ip link set dev eth0 down");
    let port =
        |event: &AsyncEvent, wanted| matches!(event, AsyncEvent::Port { up, .. } if *up == wanted);
    news(&bench.device, |event| port(event, false));
    let error = Device::open(&VerbsOptions::default(), IpAddr::from(Ipv4Addr::LOCALHOST)).err();
    run("ip link set dev eth0 up");
    news(&bench.device, |event| port(event, true));
    let text = error.unwrap().to_string();
    assert!(text.contains("is DOWN"), "{text}");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn an_address_that_goes_is_told() {
    if !in_guest() {
        return;
    }
    let alone = alone();
    let near: IpAddr = "10.77.9.1".parse().unwrap();
    run("ip addr add 10.77.9.1/24 dev eth0");
    let device = Device::open(&VerbsOptions::default(), near).unwrap();
    assert!(
        device.describe().contains("10.77.9.1"),
        "{}",
        device.describe()
    );
    assert!(device.has_its_gid());
    run("ip addr del 10.77.9.1/24 dev eth0");
    news(&device, |event| *event == AsyncEvent::Gids);
    // The table changes when the kernel gets to it, which may be after the news.
    while device.has_its_gid() {
        std::thread::yield_now();
    }
    drop(alone);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn the_mtu_follows_the_link() {
    if !in_guest() {
        return;
    }
    let bench = DeviceBench::new();
    let before = std::fs::read_to_string("/sys/class/net/eth0/mtu").unwrap();
    assert_eq!(bench.device.address().mtu_bytes(), 4096);
    run("ip link set dev eth0 mtu 1500");
    let during = bench.device.address().mtu_bytes();
    run(&format!("ip link set dev eth0 mtu {}", before.trim()));
    assert_eq!(during, 1024);
    assert_eq!(bench.device.address().mtu_bytes(), 4096);
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_device_that_cannot_be_opened_says_which_file() {
    if !in_guest() {
        return;
    }
    let _alone = alone();
    let failure = || {
        let near = IpAddr::from(Ipv4Addr::LOCALHOST);
        let error = Device::open(&VerbsOptions::default(), near).err();
        error.unwrap()
    };
    let name = device_file(Path::new("/sys/class/infiniband_verbs"), "rxe1").unwrap();
    let file = format!("/dev/infiniband/{name}");
    run(&format!("mv {file} /dev/infiniband/away"));
    let error = failure();
    run(&format!("mv /dev/infiniband/away {file}"));
    assert!(matches!(error, VerbsError::NoFile { .. }), "{error:?}");
    assert!(error.to_string().contains(&file), "{error}");
}

#[test]
#[ignore = "needs an RDMA device: tests/softroce/run"]
fn a_device_that_is_taken_away_is_noticed_and_let_go() {
    if !in_guest() {
        return;
    }
    let bench = DeviceBench::new();
    let [mut a, b] = bench.pair();
    let (from, to) = (bench.memory(1), bench.memory(0));
    assert!(bench.device.is_there());
    let deletion = "link delete rxe1".split(' ');
    let mut deletion = Command::new("rdma").args(deletion).spawn().unwrap();
    while bench.device.is_there() {
        std::thread::yield_now();
    }
    // Software RoCE waits for this process, reports nothing and works on.
    a.post_send(&[bench.request(1, bench.write(&to, None), &from, 64)])
        .unwrap();
    assert_eq!(bench.completions(1)[0].status, CompletionStatus::Done);
    assert!(deletion.try_wait().unwrap().is_none());
    drop((a, b, from, to));
    let _alone = bench.end();
    assert!(deletion.wait().unwrap().success());
    let error = Device::open(&VerbsOptions::default(), IpAddr::from(Ipv4Addr::LOCALHOST)).err();
    run("rdma link add rxe1 type rxe netdev eth0");
    assert!(
        matches!(error, Some(VerbsError::NoDevice { .. })),
        "{error:?}"
    );
    assert!(open().is_there());
}
