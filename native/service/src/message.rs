//! What an executor and the service say to each other: one message is one packet, with its descriptors beside it.
//!
//! ```text
//!  request | u8 kind | body                              numbers are little-endian
//!   HELLO    "faro" | u16 version | u8 sealed | text application | text executor | 32 token | bytes secret
//!   OUTPUT   u32 shuffle | i64 map | u8 has data          descriptors: the index, then the data file if it has one
//!   FORGET   u32 shuffle
//!   END      (nothing)
//!   LEND     u32 shuffle | u8 files | u16 n | n i64 map   which outputs there are; with files, their descriptors too
//!   STATUS   "faro" | u16 version                         not from executors: what the service has, see `status`
//!   HOST     u8 replicas | u32 at | u32 of | bytes card   service `at` of the application's `of` services
//!   BEHIND   (nothing)                                    how many copies the application's outputs of here lack
//!  answer  | u8 kind | body
//!   WELCOME  bytes card
//!   DONE     (nothing)
//!   LENT     u16 n | n u8                                 0: not here, 1: all empty, 2: has data; descriptors as OUTPUT's
//!   REFUSED  u8 why | text
//!   STATUS   text version | 17 u64, see `status`
//!   BEHIND   u64 copies
//!  text, bytes: u16 length, then as many bytes
//! ```
//! HELLO and STATUS begin with their version, so that another version can be refused with a line that names both.

use faro_wire::OutputId;
use ring::digest;
use std::fmt;
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Of these layouts.
pub const VERSION: u16 = 3;
/// The longest message; a card takes up to 4 KiB.
pub const MAX_MESSAGE: usize = 8 << 10;
/// Most map outputs of a LEND.
pub const MAX_LEND: usize = 1_000;
/// Most map outputs of a LEND that asks for files: the kernel passes 253 descriptors with a message at most.
pub const MAX_LEND_FILES: usize = 126;
/// The longest id of an application or an executor.
const MAX_NAME: usize = 255;
/// The longest secret of Spark.
const MAX_SECRET: usize = 2 << 10;
/// An answer's first byte; 4 is that of a status.
const BEHIND: u8 = 5;
const LENT: u8 = 6;
/// A request's first byte.
const LEND: u8 = 6;
/// The longest card.
const MAX_CARD: usize = 4 << 10;
const MAGIC: &[u8; 4] = b"faro";
const TOKEN_BYTES: usize = 32;

/// What only the executors of one application know.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Token([u8; TOKEN_BYTES]);

impl Token {
    /// Takes over bytes that are secret already.
    #[must_use]
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(bytes)
    }

    /// The application's name in the service. The token cannot be calculated from it.
    #[must_use]
    pub fn key(&self) -> Key {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(b"faro service 1 application");
        context.update(&self.0);
        let hash = context.finish();
        let mut key = [0; Key::BYTES];
        key.copy_from_slice(&hash.as_ref()[..Key::BYTES]);
        Key(key)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// An application, as the service names it; its directory has this as hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    const BYTES: usize = 16;

    /// The key that a directory is named by; `None`: it is no such name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let digit = |c: u8| matches!(c, b'0'..=b'9' | b'a'..=b'f');
        if name.len() != 2 * Self::BYTES || !name.bytes().all(digit) {
            return None;
        }
        let mut key = [0; Self::BYTES];
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&name[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Self(key))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The first message of a connection.
#[derive(Clone)]
pub struct Hello {
    /// Spark's id, part of the keys of connections.
    pub application: String,
    /// For log lines.
    pub executor: String,
    /// Whether the application's connections are sealed.
    pub sealed: bool,
    pub token: Token,
    /// What Spark's authentication shares; empty: it does not authenticate.
    pub secret: Zeroizing<Vec<u8>>,
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

/// What an executor says.
#[derive(Debug, Clone)]
pub enum Request {
    Hello(Hello),
    /// A committed map output.
    Output {
        id: OutputId,
        /// There are bytes in it, so a data file comes with the index.
        has_data: bool,
    },
    /// A shuffle was removed.
    Forget {
        shuffle: u32,
    },
    /// Which of these map outputs are here, and if `files`, their files.
    Lend {
        shuffle: u32,
        files: bool,
        maps: Vec<i64>,
    },
    /// The application has ended.
    End,
    /// What the service has; the first and only message of a connection.
    Status,
    /// One of the services of the application, by its place in their list.
    Host {
        /// Copies of each output.
        replicas: u8,
        at: u32,
        of: u32,
        card: Vec<u8>,
    },
    /// How many copies of the application's outputs of this host other services do not have yet.
    Behind,
}

/// What the service answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The card of the application's endpoint here.
    Welcome {
        card: Vec<u8>,
    },
    Done,
    /// The answer to `Lend`, in its order.
    Lent(Vec<Lent>),
    Refused {
        why: Refusal,
        text: String,
    },
    /// Copies that other services do not have yet.
    Behind(u64),
}

/// What there is of a map output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lent {
    NotHere = 0,
    /// An index; all partitions are empty.
    Empty = 1,
    /// An index and a data file.
    Whole = 2,
}

impl Lent {
    /// How many descriptors come with it.
    #[must_use]
    pub fn files(self) -> usize {
        match self {
            Self::NotHere => 0,
            Self::Empty => 1,
            Self::Whole => 2,
        }
    }
}

/// Why the service refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It speaks another version.
    Version = 1,
    /// It does not serve this user.
    User = 2,
    /// A message that cannot be one, or not now.
    Message = 3,
    /// It has as many applications, connections or outputs as it may.
    Full = 4,
    /// The application has as many bytes here as it may.
    Quota = 5,
    /// The files are not those of a map output.
    Files = 6,
    /// The system refused something: no space, no descriptors.
    System = 7,
    /// The application has ended here.
    Ended = 8,
}

impl Refusal {
    fn of_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Version,
            2 => Self::User,
            3 => Self::Message,
            4 => Self::Full,
            5 => Self::Quota,
            6 => Self::Files,
            7 => Self::System,
            8 => Self::Ended,
            _ => return None,
        })
    }
}

/// Why bytes are no message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    #[error("a message of kind {got}, which version {VERSION} does not have")]
    Kind { got: u8 },
    #[error("a greeting of version {got}, this is version {VERSION}")]
    Version { got: u16 },
    #[error("a greeting that does not begin with 'faro'")]
    Magic,
    #[error("a message that ends within '{what}'")]
    Short { what: &'static str },
    #[error("{what} of {got} bytes, allowed: {allowed}")]
    Length {
        what: &'static str,
        got: usize,
        allowed: &'static str,
    },
    #[error("{what} is {got}, allowed: {allowed}")]
    Value {
        what: &'static str,
        got: u64,
        allowed: &'static str,
    },
    #[error("{what} is not text")]
    NotText { what: &'static str },
    #[error("{got} bytes after the end of a message")]
    Long { got: usize },
}

impl Request {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(256));
        match self {
            Self::Hello(hello) => {
                out.push(1);
                out.extend_from_slice(MAGIC);
                out.extend_from_slice(&VERSION.to_le_bytes());
                out.push(u8::from(hello.sealed));
                put(&mut out, hello.application.as_bytes());
                put(&mut out, hello.executor.as_bytes());
                out.extend_from_slice(&hello.token.0);
                put(&mut out, &hello.secret);
            }
            Self::Output { id, has_data } => {
                out.push(2);
                out.extend_from_slice(&id.shuffle_id.to_le_bytes());
                out.extend_from_slice(&id.map_id.to_le_bytes());
                out.push(u8::from(*has_data));
            }
            Self::Forget { shuffle } => {
                out.push(3);
                out.extend_from_slice(&shuffle.to_le_bytes());
            }
            Self::Lend {
                shuffle,
                files,
                maps,
            } => {
                out.push(LEND);
                out.extend_from_slice(&shuffle.to_le_bytes());
                out.push(u8::from(*files));
                // A message that is too long is refused when it is sent.
                out.extend_from_slice(&(maps.len() as u16).to_le_bytes());
                for map in maps {
                    out.extend_from_slice(&map.to_le_bytes());
                }
            }
            Self::End => out.push(4),
            Self::Status => {
                out.push(5);
                out.extend_from_slice(MAGIC);
                out.extend_from_slice(&VERSION.to_le_bytes());
            }
            Self::Host {
                replicas,
                at,
                of,
                card,
            } => {
                out.push(8);
                out.push(*replicas);
                out.extend_from_slice(&at.to_le_bytes());
                out.extend_from_slice(&of.to_le_bytes());
                put(&mut out, card);
            }
            Self::Behind => out.push(9),
        }
        out
    }

    /// # Errors
    /// The bytes are no message of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut body = Body(bytes);
        let request = match body.u8("kind")? {
            1 => Self::Hello(body.hello()?),
            2 => Self::Output {
                id: OutputId {
                    shuffle_id: body.shuffle()?,
                    map_id: body.map()?,
                },
                has_data: body.flag("has data")?,
            },
            3 => Self::Forget {
                shuffle: body.shuffle()?,
            },
            4 => Self::End,
            5 => {
                body.version()?;
                Self::Status
            }
            LEND => {
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
            8 => Self::Host {
                replicas: body.u8("replicas")?,
                at: u32::from_le_bytes(body.array("place of a service")?),
                of: u32::from_le_bytes(body.array("number of services")?),
                card: body.bytes("card", MAX_CARD, "up to 4096")?.to_vec(),
            },
            9 => Self::Behind,
            got => return Err(MessageError::Kind { got }),
        };
        body.end()?;
        Ok(request)
    }
}

impl Reply {
    /// The packet.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::new());
        match self {
            Self::Welcome { card } => {
                out.push(1);
                put(&mut out, card);
            }
            Self::Done => out.push(2),
            Self::Lent(all) => {
                out.push(LENT);
                out.extend_from_slice(&(all.len() as u16).to_le_bytes());
                out.extend(all.iter().map(|lent| *lent as u8));
            }
            Self::Refused { why, text } => {
                out.push(3);
                out.push(*why as u8);
                let cut = text.char_indices().take(500).last();
                let end = cut.map_or(0, |(at, c)| at + c.len_utf8());
                put(&mut out, &text.as_bytes()[..end]);
            }
            Self::Behind(copies) => {
                out.push(BEHIND);
                out.extend_from_slice(&copies.to_le_bytes());
            }
        }
        out
    }

    /// # Errors
    /// The bytes are no answer of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut body = Body(bytes);
        let reply = match body.u8("kind")? {
            1 => Self::Welcome {
                card: body.bytes("card", MAX_MESSAGE, "up to 8192")?.to_vec(),
            },
            2 => Self::Done,
            3 => {
                let code = body.u8("why")?;
                let why = Refusal::of_code(code).ok_or(MessageError::Value {
                    what: "the reason of a refusal",
                    got: code.into(),
                    allowed: "1 to 8",
                })?;
                let text = body.bytes("text", MAX_MESSAGE, "up to 8192")?;
                Self::Refused {
                    why,
                    text: String::from_utf8_lossy(text).into_owned(),
                }
            }
            BEHIND => Self::Behind(body.u64("copies")?),
            LENT => {
                let count = body.count(MAX_LEND, "1 to 1000")?;
                let lent = |_| match body.u8("what is lent")? {
                    0 => Ok(Lent::NotHere),
                    1 => Ok(Lent::Empty),
                    2 => Ok(Lent::Whole),
                    got => Err(MessageError::Value {
                        what: "what is lent",
                        got: got.into(),
                        allowed: "0 to 2",
                    }),
                };
                Self::Lent((0..count).map(lent).collect::<Result<_, _>>()?)
            }
            got => return Err(MessageError::Kind { got }),
        };
        body.end()?;
        Ok(reply)
    }
}

pub(crate) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    // A message that is too long is refused when it is sent.
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..usize::from(length)]);
}

/// What is left of a message.
pub(crate) struct Body<'a>(pub(crate) &'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, what: &'static str, bytes: usize) -> Result<&'a [u8], MessageError> {
        let (front, rest) = self
            .0
            .split_at_checked(bytes)
            .ok_or(MessageError::Short { what })?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], MessageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, MessageError> {
        Ok(self.array::<1>(what)?[0])
    }

    fn flag(&mut self, what: &'static str) -> Result<bool, MessageError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            got => Err(MessageError::Value {
                what,
                got: got.into(),
                allowed: "0 or 1",
            }),
        }
    }

    /// Spark counts shuffles from 0 as an `Int`.
    fn shuffle(&mut self) -> Result<u32, MessageError> {
        let got = u32::from_le_bytes(self.array("shuffle")?);
        match i32::try_from(got) {
            Ok(_) => Ok(got),
            Err(_) => Err(MessageError::Value {
                what: "shuffle",
                got: got.into(),
                allowed: "0 to 2147483647",
            }),
        }
    }

    /// Spark takes the attempt's id, which counts from 0.
    fn map(&mut self) -> Result<i64, MessageError> {
        let got = i64::from_le_bytes(self.array("map")?);
        match got {
            0.. => Ok(got),
            _ => Err(MessageError::Value {
                what: "map",
                got: got as u64,
                allowed: "0 to 9223372036854775807",
            }),
        }
    }

    fn count(&mut self, max: usize, allowed: &'static str) -> Result<usize, MessageError> {
        let got = usize::from(u16::from_le_bytes(self.array("count")?));
        match got {
            got if (1..=max).contains(&got) => Ok(got),
            got => Err(MessageError::Value {
                what: "the number of map outputs",
                got: got as u64,
                allowed,
            }),
        }
    }

    fn bytes(
        &mut self,
        what: &'static str,
        max: usize,
        allowed: &'static str,
    ) -> Result<&'a [u8], MessageError> {
        let got = usize::from(u16::from_le_bytes(self.array(what)?));
        if got > max {
            return Err(MessageError::Length { what, got, allowed });
        }
        self.take(what, got)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, MessageError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn name(&mut self, what: &'static str) -> Result<String, MessageError> {
        let bytes = self.bytes(what, MAX_NAME, "1 to 255")?;
        let text = std::str::from_utf8(bytes).map_err(|_| MessageError::NotText { what })?;
        if text.is_empty() {
            let got = 0;
            let allowed = "1 to 255";
            return Err(MessageError::Length { what, got, allowed });
        }
        if text.chars().any(char::is_control) {
            return Err(MessageError::NotText { what });
        }
        Ok(text.to_owned())
    }

    fn version(&mut self) -> Result<(), MessageError> {
        if &self.array::<4>("greeting")? != MAGIC {
            return Err(MessageError::Magic);
        }
        let got = u16::from_le_bytes(self.array("version")?);
        match got {
            VERSION => Ok(()),
            got => Err(MessageError::Version { got }),
        }
    }

    fn hello(&mut self) -> Result<Hello, MessageError> {
        self.version()?;
        let sealed = self.flag("sealed")?;
        let application = self.name("application")?;
        let executor = self.name("executor")?;
        let token = Token::new(self.array("token")?);
        let secret = self.bytes("secret", MAX_SECRET, "up to 2048")?;
        Ok(Hello {
            application,
            executor,
            sealed,
            token,
            secret: Zeroizing::new(secret.to_vec()),
        })
    }

    pub(crate) fn end(&self) -> Result<(), MessageError> {
        match self.0.len() {
            0 => Ok(()),
            got => Err(MessageError::Long { got }),
        }
    }
}
