//! Decodes whole parts and checks every batch.

use faro_rows::{Batch, Codec, Corruption, Piece, RowDecoder, ROW_HEAD_BYTES};

/// Returns the rows of a batch. Panics if its layout is not the one that lib.rs describes.
pub fn rows_of(batch: Batch<'_>) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    collect(batch, &mut rows, &mut Vec::new());
    rows
}

/// Appends the rows of a batch to `rows`. A row in pieces is collected in `long` until it is whole.
pub fn collect(batch: Batch<'_>, rows: &mut Vec<Vec<u8>>, long: &mut Vec<u8>) {
    match batch {
        Batch::Empty => {}
        Batch::Piece {
            bytes,
            piece: Piece { offset, row_bytes },
        } => {
            if offset == 0 {
                // An incomplete row in `long` belonged to a part that was abandoned.
                long.clear();
            }
            assert!(!bytes.is_empty());
            assert_eq!(long.len(), offset);
            long.extend_from_slice(bytes);
            assert!(long.len() <= row_bytes);
            if long.len() == row_bytes {
                rows.push(std::mem::take(long));
            }
        }
        Batch::Rows { bytes, rows: count } => {
            let (mut at, before) = (0, rows.len());
            while at < bytes.len() {
                let (head, rest) = bytes[at..].split_at(ROW_HEAD_BYTES);
                assert_eq!(head[4..], [0; 4]);
                let length = u32::from_ne_bytes(head[..4].try_into().expect("4 bytes")) as usize;
                assert_eq!(length % 8, 0);
                rows.push(rest[..length].to_vec());
                at += ROW_HEAD_BYTES + length;
            }
            assert_eq!(rows.len() - before, count as usize);
        }
    }
}

/// The result of decoding a part: the rows before its end or before the corruption.
pub struct Outcome {
    pub rows: Vec<Vec<u8>>,
    pub error: Option<Corruption>,
}

impl Outcome {
    pub fn whole(self) -> Vec<Vec<u8>> {
        assert_eq!(self.error, None);
        self.rows
    }
}

/// Decodes one part in pushes whose lengths repeat `cuts` (0 counts as 1).
pub fn decode(decoder: &mut RowDecoder, part: &[u8], cuts: &[usize]) -> Outcome {
    let (mut rows, mut long) = (Vec::new(), Vec::new());
    let error = push_all(decoder, part, cuts, &mut rows, &mut long).err();
    collect(decoder.turn(), &mut rows, &mut long);
    if error.is_some() {
        decoder.abandon_part();
        assert!(!decoder.has_batch());
    }
    Outcome { rows, error }
}

fn push_all(
    decoder: &mut RowDecoder,
    mut part: &[u8],
    cuts: &[usize],
    rows: &mut Vec<Vec<u8>>,
    long: &mut Vec<u8>,
) -> Result<(), Corruption> {
    let mut cuts = cuts.iter().cycle();
    while !part.is_empty() {
        let cut = cuts
            .next()
            .map_or(part.len(), |cut| part.len().min(1.max(*cut)));
        let (mut piece, rest) = part.split_at(cut);
        loop {
            let pushed = decoder.push(piece)?;
            piece = &piece[pushed.taken..];
            if !pushed.full {
                break;
            }
            filled(decoder, rows, long);
        }
        assert!(piece.is_empty());
        part = rest;
    }
    while decoder.end_part()?.full {
        filled(decoder, rows, long);
    }
    Ok(())
}

/// Takes a full batch. It must have a row or a piece of one: otherwise the decoder would make no
/// progress.
fn filled(decoder: &mut RowDecoder, rows: &mut Vec<Vec<u8>>, long: &mut Vec<u8>) {
    assert!(decoder.has_batch());
    collect(decoder.turn(), rows, long);
}

pub fn decoder(codec: Codec, batch_bytes: usize) -> RowDecoder {
    RowDecoder::new(codec, batch_bytes).expect("a decoder")
}
