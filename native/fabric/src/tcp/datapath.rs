//! WRITE, READ and READ_REPLY over TCP.

use super::socket::{connect, parse};
use crate::stream::driver::{ControlChannel, Datapath, Transport, TransportDriver};
use crate::stream::inbound::Sink;
use crate::stream::payload::{self, PayloadKind};
use crate::stream::session::Context;
use crate::stream::turns::OverSocket;
use crate::{CloseReason, FabricError, FabricKind, RemoteRange, Write};
use mio::net::{TcpListener, TcpStream};
use std::io;

/// What TCP adds to the stream: payload in frames.
pub(crate) struct Tcp;

impl Transport for Tcp {
    const KIND: FabricKind = FabricKind::Tcp;
    type Connection = ();
}

impl ControlChannel for Tcp {
    type Socket = TcpStream;
    type Listener = TcpListener;

    fn start(&mut self, location: &str) -> Result<io::Result<TcpStream>, FabricError> {
        Ok(connect(parse(location)?))
    }
}

impl TransportDriver for Tcp {
    type Path = OverSocket;
}

impl Datapath for Tcp {
    type Kind = PayloadKind;
    type Remains = ();
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
