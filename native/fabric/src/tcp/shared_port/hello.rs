//! Looks at the first frame of a connection without receiving it.

use crate::frame::bodies::{Hello, Layout};
use faro_wire::header::{HEADER_BYTES, VERSIONS};
use faro_wire::{kind, FrameHeader};
use mio::net::TcpStream;
use std::io;

/// Bytes of the frame with HELLO.
const FRAME_BYTES: usize = HEADER_BYTES + size_of::<Hello>();

/// What a connection begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FirstFrame {
    /// Too few bytes to tell.
    Part,
    /// A HELLO of a version that this side speaks.
    Hello(Hello),
    /// Something else, or the end. The reactor that receives it ends the connection, with the reason.
    Other,
}

/// Peeks at the first bytes of an accepted connection.
pub(super) fn look(socket: &TcpStream) -> FirstFrame {
    let mut bytes = [0; FRAME_BYTES];
    loop {
        return match socket.peek(&mut bytes) {
            Ok(0) => FirstFrame::Other,
            Ok(length) => parse(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => FirstFrame::Part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => FirstFrame::Other,
        };
    }
}

fn parse(bytes: &[u8]) -> FirstFrame {
    if bytes.len() < HEADER_BYTES {
        return FirstFrame::Part;
    }
    let Ok(header) = FrameHeader::parse(bytes) else {
        return FirstFrame::Other;
    };
    let is_hello = header.kind == kind::HELLO && header.flags.get() == 0;
    if !is_hello || header.length.get() as usize != size_of::<Hello>() {
        return FirstFrame::Other;
    }
    let Some(body) = bytes.get(HEADER_BYTES..FRAME_BYTES) else {
        return FirstFrame::Part;
    };
    match Hello::decode(body) {
        Ok(hello) => {
            let has_version = VERSIONS.spoken().common(hello.versions()).is_ok();
            match has_version && header.check_body(body).is_ok() {
                true => FirstFrame::Hello(hello),
                false => FirstFrame::Other,
            }
        }
        Err(_) => FirstFrame::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_secure::{Protection, HELLO_BYTES};
    use faro_wire::header::VERSION;
    use zerocopy::IntoBytes;

    fn frame(kind: u8, hello: &Hello) -> Vec<u8> {
        let body = hello.as_bytes();
        [FrameHeader::for_body(kind, 0, body).as_bytes(), body].concat()
    }

    #[test]
    fn a_hello_is_known_when_all_of_it_is_there() {
        let hello = Hello::new(Protection::Clear, [7; HELLO_BYTES]);
        let bytes = frame(kind::HELLO, &hello);
        for length in 0..bytes.len() {
            assert_eq!(parse(&bytes[..length]), FirstFrame::Part, "{length}");
        }
        assert_eq!(parse(&bytes), FirstFrame::Hello(hello));
    }

    #[test]
    fn what_is_no_hello_is_received_and_judged() {
        let hello = Hello::new(Protection::Clear, [7; HELLO_BYTES]);
        let bytes = frame(kind::HELLO, &hello);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped), FirstFrame::Other, "bit {bit}");
        }
        assert_eq!(parse(&frame(kind::GOODBYE, &hello)), FirstFrame::Other);
        let newer = Hello {
            lowest: VERSION + 1,
            highest: VERSION + 1,
            ..hello
        };
        assert_eq!(parse(&frame(kind::HELLO, &newer)), FirstFrame::Other);
        let longer = [hello.as_bytes(), &[0]].concat();
        let header = FrameHeader::for_body(kind::HELLO, 0, &longer);
        assert_eq!(parse(header.as_bytes()), FirstFrame::Other);
    }
}
