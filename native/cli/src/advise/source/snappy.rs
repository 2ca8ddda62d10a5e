//! snappy-java's stream: a header of 16 bytes, then chunks of a length and raw snappy. Streams may be
//! concatenated.

use super::{fill, invalid, truncated};
use std::io::{self, Read};

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Magic, version, compatible version.
const HEADER_BYTES: usize = 16;
/// Spark's default is 32 KiB. snappy-java writes no larger chunks than its buffer has.
const MAX_CHUNK: usize = 64 << 20;

pub struct Snappy<R> {
    from: R,
    decoder: snap::raw::Decoder,
    body: Vec<u8>,
    chunk: Vec<u8>,
    at: usize,
    started: bool,
}

impl<R: Read> Snappy<R> {
    pub fn new(from: R) -> Self {
        Self {
            from,
            decoder: snap::raw::Decoder::new(),
            body: Vec::new(),
            chunk: Vec::new(),
            at: 0,
            started: false,
        }
    }

    fn header(&mut self, found: &[u8]) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        let (start, rest) = header.split_at_mut(found.len());
        start.copy_from_slice(found);
        if fill(&mut self.from, rest)? < rest.len() {
            return Err(truncated("the snappy stream is cut inside its header"));
        }
        if &header[..MAGIC.len()] != MAGIC {
            return Err(invalid(format!(
                "not Spark's snappy: it starts with {:02x?} instead of {MAGIC:02x?}",
                &header[..MAGIC.len()]
            )));
        }
        self.started = true;
        Ok(())
    }

    /// Decompresses the next chunk. False at the end of the file.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let mut length = [0; 4];
        match fill(&mut self.from, &mut length)? {
            0 => return Ok(false),
            4 => {}
            _ => return Err(truncated("the snappy stream is cut inside a length")),
        }
        self.at = 0;
        self.chunk.clear();
        // No chunk is as long as the magic's first bytes say.
        if !self.started || length == MAGIC[..4] {
            self.header(&length)?;
            return Ok(true);
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_CHUNK {
            return Err(invalid(format!(
                "a damaged snappy chunk of {length} bytes; at most {MAX_CHUNK} are possible"
            )));
        }
        self.body.resize(length, 0);
        if fill(&mut self.from, &mut self.body)? < length {
            return Err(truncated("the snappy stream is cut inside a chunk"));
        }
        let damaged = |e: snap::Error| invalid(format!("a damaged snappy chunk: {e}"));
        let original = snap::raw::decompress_len(&self.body).map_err(damaged)?;
        if original > MAX_CHUNK {
            return Err(invalid(format!(
                "a damaged snappy chunk of {original} bytes"
            )));
        }
        self.chunk.resize(original, 0);
        let bytes = self.decoder.decompress(&self.body, &mut self.chunk);
        self.chunk.truncate(bytes.map_err(damaged)?);
        Ok(true)
    }
}

impl<R: Read> Read for Snappy<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.chunk.len() {
            if !self.next_chunk()? {
                return Ok(0);
            }
        }
        let n = (&self.chunk[self.at..]).read(to)?;
        self.at += n;
        Ok(n)
    }
}
