//! The requests of an executor to the service.

use super::body::{put, put_versions, Body, MessageError, MAX_LEND, VERSIONS};
use super::token::Token;
use faro_wire::{OutputId, VersionRange};
use std::fmt;
use zeroize::Zeroizing;

/// Most map outputs of a LEND that asks for files: the kernel passes 253 descriptors with a message at most.
pub const MAX_LEND_FILES: usize = 126;
/// The longest secret of Spark.
const MAX_SECRET: usize = 2 << 10;
/// The longest card.
const MAX_CARD: usize = 4 << 10;

/// The first byte of each request.
mod kind {
    pub const HELLO: u8 = 1;
    pub const OUTPUT: u8 = 2;
    pub const FORGET: u8 = 3;
    pub const END: u8 = 4;
    pub const STATUS: u8 = 5;
    pub const LEND: u8 = 6;
    pub const HOST: u8 = 8;
    pub const BEHIND: u8 = 9;
}

/// The first message of a connection.
#[derive(Clone)]
pub struct Hello {
    /// Spark's id, part of the keys of connections.
    pub application: String,
    /// The executor's id, which log lines name.
    pub executor: String,
    /// Whether the application's connections are sealed.
    pub sealed: bool,
    pub token: Token,
    /// The secret of Spark's authentication; empty: it does not authenticate.
    pub secret: Zeroizing<Vec<u8>>,
}

impl Hello {
    fn decode(body: &mut Body) -> Result<Self, MessageError> {
        let sealed = body.flag("sealed")?;
        let application = body.name("application")?;
        let executor = body.name("executor")?;
        let token = Token::new(body.array("token")?);
        let secret = body.bytes("secret", MAX_SECRET, "up to 2048")?;
        Ok(Self {
            application,
            executor,
            sealed,
            token,
            secret: Zeroizing::new(secret.to_vec()),
        })
    }
}

impl fmt::Debug for Hello {
    /// Leaves out Spark's secret, which must not get into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hello")
            .field("application", &self.application)
            .field("executor", &self.executor)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

/// A request of an executor.
#[derive(Debug, Clone)]
pub enum Request {
    /// With the versions that the executor speaks.
    Hello(Hello, VersionRange),
    /// A committed map output.
    Output {
        id: OutputId,
        /// True if there are bytes in it, so that a data file comes with the index.
        has_data: bool,
    },
    /// A shuffle was removed.
    Forget { shuffle: u32 },
    /// Asks which of these map outputs the service has, and with `files` for their files.
    Lend {
        shuffle: u32,
        files: bool,
        maps: Vec<i64>,
    },
    /// The application has ended.
    End,
    /// Asks for the service's status; the first and only message of a connection. `from`: so many applications are left out.
    Status { from: u16 },
    /// One of the services of the application, by its place in their list.
    Host {
        /// Copies of each output.
        replicas: u8,
        at: u32,
        of: u32,
        card: Vec<u8>,
    },
    /// Asks how many copies of the application's outputs of this host other services do not have yet.
    Behind,
}

impl Request {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(256));
        match self {
            Self::Hello(hello, offered) => {
                out.push(kind::HELLO);
                put_versions(&mut out, *offered);
                out.push(u8::from(hello.sealed));
                put(&mut out, hello.application.as_bytes());
                put(&mut out, hello.executor.as_bytes());
                out.extend_from_slice(hello.token.bytes());
                put(&mut out, &hello.secret);
            }
            Self::Output { id, has_data } => {
                out.push(kind::OUTPUT);
                out.extend_from_slice(&id.shuffle_id.to_le_bytes());
                out.extend_from_slice(&id.map_id.to_le_bytes());
                out.push(u8::from(*has_data));
            }
            Self::Forget { shuffle } => {
                out.push(kind::FORGET);
                out.extend_from_slice(&shuffle.to_le_bytes());
            }
            Self::Lend {
                shuffle,
                files,
                maps,
            } => {
                out.push(kind::LEND);
                out.extend_from_slice(&shuffle.to_le_bytes());
                out.push(u8::from(*files));
                // A message that is too long is refused when it is sent.
                out.extend_from_slice(&(maps.len() as u16).to_le_bytes());
                for map in maps {
                    out.extend_from_slice(&map.to_le_bytes());
                }
            }
            Self::End => out.push(kind::END),
            Self::Status { from } => {
                out.push(kind::STATUS);
                put_versions(&mut out, VERSIONS.spoken());
                out.extend_from_slice(&from.to_le_bytes());
            }
            Self::Host {
                replicas,
                at,
                of,
                card,
            } => {
                out.push(kind::HOST);
                out.push(*replicas);
                out.extend_from_slice(&at.to_le_bytes());
                out.extend_from_slice(&of.to_le_bytes());
                put(&mut out, card);
            }
            Self::Behind => out.push(kind::BEHIND),
        }
        out
    }

    /// # Errors
    /// The bytes are no message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut body = Body(bytes);
        let request = match body.u8("kind")? {
            kind::HELLO => {
                let offered = body.versions()?;
                Self::Hello(Hello::decode(&mut body)?, offered)
            }
            kind::OUTPUT => Self::Output {
                id: OutputId {
                    shuffle_id: body.shuffle()?,
                    map_id: body.map()?,
                },
                has_data: body.flag("has data")?,
            },
            kind::FORGET => Self::Forget {
                shuffle: body.shuffle()?,
            },
            kind::END => Self::End,
            kind::STATUS => {
                body.versions()?;
                let from = body.u16("number of an application")?;
                Self::Status { from }
            }
            kind::LEND => {
                let (shuffle, files) = (body.shuffle()?, body.flag("files")?);
                let count = match files {
                    true => body.count(MAX_LEND_FILES, "1 to 126")?,
                    false => body.count(MAX_LEND, "1 to 1000")?,
                };
                let maps = (0..count).map(|_| body.map()).collect::<Result<_, _>>()?;
                Self::Lend {
                    shuffle,
                    files,
                    maps,
                }
            }
            kind::HOST => Self::Host {
                replicas: body.u8("replicas")?,
                at: u32::from_le_bytes(body.array("place of a service")?),
                of: u32::from_le_bytes(body.array("number of services")?),
                card: body.bytes("card", MAX_CARD, "up to 4096")?.to_vec(),
            },
            kind::BEHIND => Self::Behind,
            got => return Err(MessageError::Kind { got }),
        };
        body.end()?;
        Ok(request)
    }
}
