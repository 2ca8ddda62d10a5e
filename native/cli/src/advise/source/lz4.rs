//! lz4-java's block stream: a header of 21 bytes and a body for each block, an empty block at the end.

use super::{fill, invalid, truncated};
use std::io::{self, Read};
use twox_hash::XxHash32;

const MAGIC: &[u8; 8] = b"LZ4Block";
const HEADER_BYTES: usize = 21;
const SEED: u32 = 0x9747_b28c;
/// lz4-java keeps the lower 28 bits of a hash.
const HASH_MASK: u32 = 0x0fff_ffff;

pub struct Lz4Block<R> {
    from: R,
    body: Vec<u8>,
    block: Vec<u8>,
    at: usize,
    /// The last block was an end block. A stream of Spark ends with one.
    ended: bool,
}

impl<R: Read> Lz4Block<R> {
    pub fn new(from: R) -> Self {
        Self {
            from,
            body: Vec::new(),
            block: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// Decompresses the next block. False at the end of the file.
    fn next_block(&mut self) -> io::Result<bool> {
        let mut header = [0; HEADER_BYTES];
        match fill(&mut self.from, &mut header)? {
            0 if self.ended => return Ok(false),
            HEADER_BYTES => {}
            _ => return Err(truncated("the lz4 stream is cut: no end block")),
        }
        let (magic, fields) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(invalid(format!(
                "not Spark's lz4: a block starts with {magic:02x?} instead of \"LZ4Block\""
            )));
        }
        let int = |at: usize| {
            u32::from_le_bytes([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]])
        };
        let (token, compressed, original, hash) = (fields[0], int(1), int(5), int(9));
        // At most 32 MiB; Spark's default is 32 KiB.
        let max = 1_u32 << (10 + (token & 0x0f));
        if original > max || compressed > max + max / 255 + 16 {
            return Err(invalid(format!(
                "a damaged lz4 block: {compressed} bytes of {original}, at most {max} are possible"
            )));
        }
        self.at = 0;
        self.block.clear();
        self.ended = original == 0;
        if self.ended {
            return Ok(true);
        }
        self.body.resize(compressed as usize, 0);
        if fill(&mut self.from, &mut self.body)? < self.body.len() {
            return Err(truncated("the lz4 stream is cut inside a block"));
        }
        self.block.resize(original as usize, 0);
        match token & 0xf0 {
            0x10 if compressed == original => self.block.copy_from_slice(&self.body),
            0x20 => {
                let decompressed = lz4_flex::block::decompress_into(&self.body, &mut self.block);
                let bytes =
                    decompressed.map_err(|e| invalid(format!("a damaged lz4 block: {e}")))?;
                if bytes != self.block.len() {
                    return Err(invalid(format!(
                        "a damaged lz4 block: {bytes} bytes instead of {original}"
                    )));
                }
            }
            method => {
                return Err(invalid(format!(
                    "an lz4 block of unknown method {method:#x}"
                )))
            }
        }
        let found = XxHash32::oneshot(SEED, &self.block) & HASH_MASK;
        if found != hash {
            return Err(invalid(format!(
                "a damaged lz4 block: its checksum is {found:08x} instead of {hash:08x}"
            )));
        }
        Ok(true)
    }
}

impl<R: Read> Read for Lz4Block<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let n = (&self.block[self.at..]).read(to)?;
        self.at += n;
        Ok(n)
    }
}
