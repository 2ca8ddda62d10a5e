//! Every message of the endpoint layer as one type, grouped by the service that takes it.
//!
//! A frame is decoded once, when it arrives. A new message is one variant here, and the compiler
//! then names every `match` that has to handle it.

use super::body::BodyReader;
use super::{
    Abort, ClearToSend, CommandReply, DataReady, DataWritten, Failed, Fetch, FetchResponse, Join,
    MemberCommand, MoreBuffers, ReadOffer,
};
use crate::{kind, WireError};

/// A decoded message of the endpoint layer, by the service that takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// For the server of fetches; the frame's id is the client's request.
    ToServer(ToServer),
    /// For the client that sent the `FETCH`; the frame's id is its request.
    ToClient(ToClient),
    /// For a member of a collective; the frame's id is the member.
    ToMember(ToMember),
    /// For what takes and sends commands; the frame's id is the sender's number of the command.
    ToCommands(ToCommands),
}

/// A message of a fetch's client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToServer {
    /// `FETCH`.
    Fetch(Fetch),
    /// `MORE_BUFFERS`.
    MoreBuffers(MoreBuffers),
    /// `CANCEL`, which has no body: the client needs nothing more of the request.
    Cancel,
}

/// A message of a fetch's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToClient {
    /// `FETCH_RESPONSE`.
    FetchResponse(FetchResponse),
    /// `DATA_WRITTEN`.
    DataWritten(DataWritten),
    /// `READ_OFFER`.
    ReadOffer(ReadOffer),
    /// `FAILED`.
    Failed(Failed),
}

/// A message between members of a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToMember {
    /// `JOIN`.
    Join(Join),
    /// `CLEAR_TO_SEND`.
    ClearToSend(ClearToSend),
    /// `DATA_READY`.
    DataReady(DataReady),
    /// `ABORT`.
    Abort(Abort),
}

/// A command, or the answer to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToCommands {
    /// `COMMAND`.
    Command(MemberCommand),
    /// `COMMAND_ANSWER`.
    Answer(CommandReply),
}

impl Incoming {
    /// Reads the body of a frame of `kind`.
    ///
    /// # Errors
    /// `UnknownKind` for a kind that is not the endpoint layer's, `Trailing` for a `CANCEL` with a
    /// body; otherwise those of the message's own `decode`.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        Ok(match kind {
            kind::FETCH => Self::ToServer(ToServer::Fetch(Fetch::decode(body)?)),
            kind::MORE_BUFFERS => Self::ToServer(ToServer::MoreBuffers(MoreBuffers::decode(body)?)),
            kind::CANCEL => {
                BodyReader::new("CANCEL", body).end()?;
                Self::ToServer(ToServer::Cancel)
            }
            kind::FETCH_RESPONSE => {
                Self::ToClient(ToClient::FetchResponse(FetchResponse::decode(body)?))
            }
            kind::DATA_WRITTEN => Self::ToClient(ToClient::DataWritten(DataWritten::decode(body)?)),
            kind::READ_OFFER => Self::ToClient(ToClient::ReadOffer(ReadOffer::decode(body)?)),
            kind::FAILED => Self::ToClient(ToClient::Failed(Failed::decode(body)?)),
            kind::JOIN => Self::ToMember(ToMember::Join(Join::decode(body)?)),
            kind::CLEAR_TO_SEND => {
                Self::ToMember(ToMember::ClearToSend(ClearToSend::decode(body)?))
            }
            kind::DATA_READY => Self::ToMember(ToMember::DataReady(DataReady::decode(body)?)),
            kind::ABORT => Self::ToMember(ToMember::Abort(Abort::decode(body)?)),
            kind::COMMAND => Self::ToCommands(ToCommands::Command(MemberCommand::decode(body)?)),
            kind::COMMAND_ANSWER => {
                Self::ToCommands(ToCommands::Answer(CommandReply::decode(body)?))
            }
            got => return Err(WireError::UnknownKind { got }),
        })
    }

    /// Returns the frame kind.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::ToServer(message) => message.kind(),
            Self::ToClient(message) => message.kind(),
            Self::ToMember(message) => message.kind(),
            Self::ToCommands(message) => message.kind(),
        }
    }

    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::ToServer(message) => message.encode(),
            Self::ToClient(message) => message.encode(),
            Self::ToMember(message) => message.encode(),
            Self::ToCommands(message) => message.encode(),
        }
    }
}

impl ToServer {
    /// Returns the frame kind.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Fetch(_) => kind::FETCH,
            Self::MoreBuffers(_) => kind::MORE_BUFFERS,
            Self::Cancel => kind::CANCEL,
        }
    }

    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Fetch(message) => message.encode(),
            Self::MoreBuffers(message) => message.encode(),
            Self::Cancel => Vec::new(),
        }
    }
}

impl ToClient {
    /// Returns the frame kind.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::FetchResponse(_) => kind::FETCH_RESPONSE,
            Self::DataWritten(_) => kind::DATA_WRITTEN,
            Self::ReadOffer(_) => kind::READ_OFFER,
            Self::Failed(_) => kind::FAILED,
        }
    }

    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::FetchResponse(message) => message.encode(),
            Self::DataWritten(message) => message.encode(),
            Self::ReadOffer(message) => message.encode(),
            Self::Failed(message) => message.encode(),
        }
    }
}

impl ToMember {
    /// Returns the frame kind.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Join(_) => kind::JOIN,
            Self::ClearToSend(_) => kind::CLEAR_TO_SEND,
            Self::DataReady(_) => kind::DATA_READY,
            Self::Abort(_) => kind::ABORT,
        }
    }

    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Join(message) => message.encode(),
            Self::ClearToSend(message) => message.encode(),
            Self::DataReady(message) => message.encode(),
            Self::Abort(message) => message.encode(),
        }
    }
}

impl ToCommands {
    /// Returns the frame kind.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Command(_) => kind::COMMAND,
            Self::Answer(_) => kind::COMMAND_ANSWER,
        }
    }

    /// Returns the body's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Command(message) => message.encode(),
            Self::Answer(reply) => reply.encode(),
        }
    }
}
