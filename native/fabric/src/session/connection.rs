//! One connection as a value, and the state that a fabric's connections share. Neither knows the
//! event loop.

use super::context::Context;
use super::handshake::seals;
use super::state::{ConnectionPhase, FabricShared, Session};
use super::transport::Datapath;
use crate::frame::inbound::Inbound;
use crate::frame::kinds::FrameKind;
use crate::frame::records::{Records, BATCH_BYTES};
use crate::ConnectionId;

/// One connection: its socket, its framing, its protocol state, and the state that only its fabric
/// keeps.
pub(crate) struct FabricConnection<D: Datapath> {
    pub(crate) socket: D::Socket,
    pub(crate) inbound: Inbound<FrameKind<D::Kind>>,
    pub(crate) session: Session,
    /// The connection's records, once it is sealed.
    pub(crate) records: Option<Box<Records>>,
    pub(crate) state: D::State,
    /// The kernel takes bytes: no send was cut short since it became writable.
    pub(crate) writable: bool,
    /// The peer's end of stream (or an error) is announced: a short read is not the last one.
    pub(crate) ending: bool,
    /// On the list of connections to read on.
    pub(crate) unread: bool,
}

/// Driver, shared state and buffers that the connections of one fabric have in common.
pub(crate) struct Common<D: Datapath> {
    pub(crate) driver: D,
    pub(crate) shared: FabricShared,
    /// Buffer for bytes that are not received in place; empty between turns.
    pub(crate) staging: Box<[u8]>,
    /// Buffer in which records are sealed and opened; empty between turns.
    pub(crate) records: Box<[u8]>,
}

impl<D: Datapath> Common<D> {
    pub(crate) fn new(driver: D, shared: FabricShared) -> Self {
        let records = match seals(shared.fabric, shared.protection) {
            false => 0,
            true => BATCH_BYTES,
        };
        Self {
            driver,
            shared,
            staging: vec![0; D::STAGING_BYTES].into_boxed_slice(),
            records: vec![0; records].into_boxed_slice(),
        }
    }

    pub(crate) fn buffer_bytes(&self) -> usize {
        self.staging.len() + self.records.len()
    }
}

impl<D: Datapath> FabricConnection<D> {
    pub(crate) fn new(socket: D::Socket, session: Session) -> Self {
        Self {
            socket,
            inbound: Inbound::new(),
            session,
            records: None,
            state: D::State::default(),
            writable: false,
            ending: false,
            unread: false,
        }
    }

    pub(crate) fn id(&self) -> ConnectionId {
        self.session.connection
    }

    pub(crate) fn is_open(&self) -> bool {
        self.session.phase == ConnectionPhase::OpenConnection
    }

    /// Returns its protocol state, for work on its queue and events.
    pub(crate) fn context<'a>(&'a mut self, shared: &'a mut FabricShared) -> Context<'a> {
        Context::new(&mut self.session, shared)
    }

    /// Returns its protocol state, the fabric's driver, and the state that the driver keeps for it.
    pub(crate) fn parts<'a>(
        &'a mut self,
        common: &'a mut Common<D>,
    ) -> (Context<'a>, &'a mut D, &'a mut D::State) {
        let cx = Context::new(&mut self.session, &mut common.shared);
        (cx, &mut common.driver, &mut self.state)
    }

    pub(crate) fn has_unsent(&self) -> bool {
        let records = self.records.as_ref();
        !self.session.outbound.is_empty() || records.is_some_and(|records| !records.is_sent())
    }

    pub(crate) fn sends_records(&self) -> bool {
        match self.session.phase {
            ConnectionPhase::Pairing | ConnectionPhase::OpenConnection => self.records.is_some(),
            ConnectionPhase::Connecting
            | ConnectionPhase::AwaitWelcome
            | ConnectionPhase::AwaitHello
            | ConnectionPhase::AwaitProof => false,
        }
    }

    /// Returns the bytes of memory that it holds for incomplete frames and records, in both
    /// directions.
    pub(crate) fn buffered(&self) -> usize {
        let records = self.records.as_ref();
        self.inbound.buffered() + records.map_or(0, |records| records.buffered())
    }
}
