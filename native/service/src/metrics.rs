//! The service's figures for Prometheus, over HTTP. They are sums, so nothing of an application is named.

use crate::error::ServiceError;
use crate::service::Service;
use crate::status::Figures;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Deadline of a client's request, and of its reading.
const WAIT: Duration = Duration::from_secs(1);
/// The part of a request that is read: its first line is enough.
const REQUEST: usize = 1 << 10;

/// Answers until the process ends, one client at a time.
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
        let address = listener.local_addr().map_err(of)?;
        std::thread::Builder::new()
            .name("faro-metrics".to_owned())
            .spawn(move || {
                for client in listener.incoming() {
                    let client = client.inspect_err(|_| {
                        // Without descriptors this would repeat at once.
                        std::thread::sleep(WAIT);
                    });
                    let answered = client.and_then(|client| answer(client, &service));
                    if let Err(error) = answered {
                        log::debug!("metrics were not read: {error}");
                    }
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

fn answer(mut client: TcpStream, service: &Service) -> io::Result<()> {
    client.set_read_timeout(Some(WAIT))?;
    client.set_write_timeout(Some(WAIT))?;
    let mut request = [0; REQUEST];
    let got = client.read(&mut request)?;
    let (status, body) = match request[..got].starts_with(b"GET /metrics ") {
        true => ("200 OK", text(&service.figures())),
        false => ("404 Not Found", "only GET /metrics\n".to_owned()),
    };
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
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
        let text = text(&vec![("outputs", 3), ("refused_total", 1)]);
        assert_eq!(
            text,
            "# TYPE faro_service_outputs gauge\nfaro_service_outputs 3\n\
             # TYPE faro_service_refused_total counter\nfaro_service_refused_total 1\n"
        );
    }
}
