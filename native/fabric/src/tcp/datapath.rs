//! WRITE, READ and READ_REPLY over TCP.

use super::listener::StreamListener;
use super::socket::{connect, parse};
use crate::frame::inbound::Sink;
use crate::frame::payload::PayloadKind;
use crate::reactor::driver::Driver;
use crate::session::carrier::Carrier;
use crate::session::context::Context;
use crate::session::payload;
use crate::session::transport::{Datapath, Transport};
use crate::{CloseReason, FabricError, FabricKind, RemoteRange, Write, WriteSources};
use mio::net::TcpStream;
use std::io;

/// The driver of TCP: payload travels in frames.
pub struct Tcp;

impl Transport for Tcp {
    const KIND: FabricKind = FabricKind::Tcp;
    type Socket = TcpStream;
    type State = ();
}

impl Carrier for Tcp {}

impl Driver for Tcp {
    type Listener = StreamListener;
    type Completion = ();

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        Ok(connect(parse(location)?))
    }
}

impl Datapath for Tcp {
    type Kind = PayloadKind;
    type CloseState = ();
    /// Many small frames per system call.
    const STAGING_BYTES: usize = 64 << 10;

    fn on_head(
        &mut self,
        cx: &mut Context<'_>,
        kind: PayloadKind,
        id: u64,
        head: &[u8],
        length: usize,
    ) -> Result<Sink, CloseReason> {
        payload::on_head(cx, kind, id, head, length)
    }

    fn on_frame(
        &mut self,
        cx: &mut Context<'_>,
        _state: &mut (),
        kind: PayloadKind,
        id: u64,
        body: &[u8],
    ) -> Result<(), CloseReason> {
        payload::on_frame(cx, kind, id, body)
    }

    fn on_closed(&mut self, _cx: &mut Context<'_>, _state: (), _told: bool) -> Option<()> {
        None
    }

    fn write_sources(&self, _state: &()) -> WriteSources {
        WriteSources {
            pipes: true,
            ..WriteSources::FRAMES
        }
    }

    fn post_write(&mut self, cx: &mut Context<'_>, _state: &mut (), write: Write) {
        payload::post_write(cx, write);
    }

    fn post_read(
        &mut self,
        cx: &mut Context<'_>,
        _state: &mut (),
        sequence: u64,
        source: RemoteRange,
    ) {
        payload::post_read(cx, sequence, source);
    }
}
