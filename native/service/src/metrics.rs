//! The service's figures for Prometheus, over HTTP. They are sums, so nothing of an application is named.

use crate::error::ServiceError;
use crate::service::Service;
use crate::status::Figures;
use faro_sync::clock;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time of a client for its request and for the answer.
const WAIT: Duration = Duration::from_secs(30);
/// Time before a listener without descriptors is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// Clients at a time; for a further one the oldest goes.
const CLIENTS: usize = 64;
/// The part of a request that is read: its first line is enough.
const REQUEST: usize = 1 << 10;

/// Answers until the process ends, each client when its request has come: no client waits for another one.
pub struct Metrics {
    address: SocketAddr,
}

impl Metrics {
    /// # Errors
    /// `Socket`, `Thread`.
    pub fn start(service: Arc<Service>, address: SocketAddr) -> Result<Self, ServiceError> {
        let of = |source| ServiceError::Socket {
            path: address.to_string().into(),
            source,
        };
        let listener = TcpListener::bind(address).map_err(of)?;
        listener.set_nonblocking(true).map_err(of)?;
        let address = listener.local_addr().map_err(of)?;
        std::thread::Builder::new()
            .name("faro-metrics".to_owned())
            .spawn(move || {
                let mut clients = VecDeque::new();
                loop {
                    serve(&listener, &mut clients, &service);
                }
            })
            .map_err(ServiceError::Thread)?;
        Ok(Self { address })
    }

    /// Returns the address at which it answers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A client that has not asked yet, and when it came.
struct SilentClient {
    stream: TcpStream,
    since: Instant,
}

/// Waits until a client comes or asks, or has had its time.
fn serve(listener: &TcpListener, clients: &mut VecDeque<SilentClient>, service: &Service) {
    let mut ready: Vec<PollFd<'_>> = vec![PollFd::new(listener, PollFlags::IN)];
    ready.extend(
        clients
            .iter()
            .map(|one| PollFd::new(&one.stream, PollFlags::IN)),
    );
    let wait = Timespec {
        tv_sec: PAUSE.as_secs() as i64,
        tv_nsec: 0,
    };
    let polled = poll(&mut ready, Some(&wait));
    let comes = !ready[0].revents().is_empty();
    let asks: Vec<bool> = ready[1..]
        .iter()
        .map(|one| !one.revents().is_empty())
        .collect();
    drop(ready);
    if polled.is_err() {
        return;
    }
    let mut asks = asks.into_iter();
    let now = clock::now();
    clients.retain_mut(|client| {
        if asks.next().unwrap_or(false) {
            if let Err(error) = answer(&mut client.stream, service) {
                log::debug!("metrics were not read: {error}");
            }
            return false;
        }
        now.saturating_duration_since(client.since) < WAIT
    });
    if !comes {
        return;
    }
    match listener.accept() {
        Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
            if clients.len() == CLIENTS {
                clients.pop_front();
            }
            clients.push_back(SilentClient { stream, since: now });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        // Without descriptors this would repeat at once.
        Err(_) => std::thread::sleep(PAUSE),
    }
}

/// The answer is shorter than what the kernel keeps for a connection, so its writing does not wait.
fn answer(client: &mut TcpStream, service: &Service) -> io::Result<()> {
    let mut request = [0; REQUEST];
    let got = client.read(&mut request)?;
    let (status, body) = match request[..got].starts_with(b"GET /metrics ") {
        true => ("200 OK", text(&service.figures())),
        false => ("404 Not Found", "only GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    );
    client.write_all(answer.as_bytes())
}

/// Prometheus' text format; what only grows ends in `_total`.
fn text(figures: &Figures) -> String {
    let mut text = String::new();
    for (name, value) in figures {
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        text.push_str(&format!(
            "# TYPE faro_service_{name} {kind}\nfaro_service_{name} {value}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_a_type_and_a_value() {
        let text = text(&vec![("outputs".into(), 3), ("refused_total".into(), 1)]);
        assert_eq!(
            text,
            "# TYPE faro_service_outputs gauge\nfaro_service_outputs 3\n\
             # TYPE faro_service_refused_total counter\nfaro_service_refused_total 1\n"
        );
    }
}
