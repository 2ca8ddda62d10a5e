//! A switch between two hosts of a guest. It takes their ports off the bridge, passes each packet on by itself, keeps a copy,
//! and may change what it passes on: what can be done on the way between two machines.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Ports of the hosts h1 and h2.
const PORTS: [&str; 2] = ["port1", "port2"];
/// `struct virtio_net_hdr`: what the kernel has not done to a packet yet (checksum, segments). It goes with the packet.
const OFFLOAD_BYTES: usize = 10;
/// Longest packet: one of TCP that a device would cut into segments.
const LONGEST_BYTES: usize = 70 << 10;
/// Maximum time of a wait for packets, in milliseconds.
const WAIT_MS: i32 = 20;

/// A packet that was passed on: an Ethernet frame, as it was sent.
pub struct Packet {
    /// 0 for h1, 1 for h2.
    pub from: usize,
    pub bytes: Vec<u8>,
}

/// Changes packets in place; `from` as in [`Packet`].
pub type Change = Box<dyn FnMut(usize, &mut [u8]) + Send>;

/// Runs until it is stopped; then the ports are the bridge's again.
pub struct Switch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Packet>>>,
}

impl Switch {
    pub fn start(change: Change) -> Self {
        for port in PORTS {
            ip(&["link", "set", port, "nomaster"]);
        }
        let ports = PORTS.map(open);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        Self {
            stop,
            thread: Some(std::thread::spawn(move || run(&ports, change, &stopped))),
        }
    }

    /// Stops the switch, and returns every packet that was passed on.
    pub fn stop(mut self) -> Vec<Packet> {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        for port in PORTS {
            ip(&["link", "set", port, "master", "br0"]);
        }
    }
}

fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).status().unwrap();
    assert!(done.success(), "ip {words:?}");
}

fn checked(result: libc::c_int, what: &str) -> libc::c_int {
    assert!(result >= 0, "{what}: {}", io::Error::last_os_error());
    result
}

/// Opens a socket that receives all packets of the interface.
fn open(port: &str) -> OwnedFd {
    let name = std::ffi::CString::new(port).unwrap();
    // SAFETY: `name` is a string that ends with 0 and lives as long as the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    assert!(index > 0, "no interface {port}");
    let all = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: takes no pointers. It has no packets before it is bound.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    checked(socket, "a packet socket");
    // SAFETY: the descriptor was made above, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    set(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1);
    set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 32 << 20);
    // SAFETY: of integers and an array of bytes only, for which 0 is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = all;
    address.sll_ifindex = index as i32;
    let bytes = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: `address` is a `sockaddr_ll` of `bytes` bytes that lives as long as the call.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) };
    checked(bound, "binding a packet socket");
    socket
}

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) {
    let bytes = size_of::<i32>() as u32;
    let at = (&raw const value).cast();
    // SAFETY: `at` points to `bytes` bytes that live as long as the call.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, at, bytes) };
    checked(set, "an option of a packet socket");
}

fn run(ports: &[OwnedFd; 2], mut change: Change, stop: &AtomicBool) -> Vec<Packet> {
    let (mut seen, mut buffer) = (Vec::new(), vec![0; LONGEST_BYTES]);
    while !stop.load(Ordering::Acquire) {
        let mut waits = [0, 1].map(|port: usize| libc::pollfd {
            fd: ports[port].as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: `waits` has two entries and lives as long as the call.
        checked(
            unsafe { libc::poll(waits.as_mut_ptr(), 2, WAIT_MS) },
            "poll",
        );
        for from in 0..2 {
            while let Some(bytes) = receive(&ports[from], &mut buffer) {
                change(from, &mut buffer[OFFLOAD_BYTES..bytes]);
                send(&ports[1 - from], &buffer[..bytes]);
                let bytes = buffer[OFFLOAD_BYTES..bytes].to_vec();
                seen.push(Packet { from, bytes });
            }
        }
    }
    seen
}

/// Receives an incoming packet, with the bytes that precede it, and returns their number.
fn receive(port: &OwnedFd, buffer: &mut [u8]) -> Option<usize> {
    loop {
        // SAFETY: as in `open`.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: `buffer` is writable for its length, `address` for `length` bytes; both live as long as the call.
        let bytes = unsafe {
            libc::recvfrom(
                port.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
                (&raw mut address).cast(),
                &raw mut length,
            )
        };
        let bytes = usize::try_from(bytes).ok()?;
        // Packets that this machine's kernel sends by itself are not the hosts'.
        if address.sll_pkttype != libc::PACKET_OUTGOING {
            return Some(bytes);
        }
    }
}

fn send(port: &OwnedFd, packet: &[u8]) {
    let (at, length) = (packet.as_ptr().cast(), packet.len());
    // SAFETY: `packet` is readable for its length and lives as long as the call.
    let sent = unsafe { libc::send(port.as_raw_fd(), at, length, 0) };
    assert_eq!(sent, length as isize, "{}", io::Error::last_os_error());
}
