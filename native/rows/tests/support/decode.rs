//! Decodes whole parts and looks at every batch.

use faro_rows::{BatchView, Codec, Corruption, RowDecoder, ROW_HEAD_BYTES};

/// The rows of a batch; panics where its layout is not what lib.rs says.
pub fn rows_of(batch: BatchView) -> Vec<Vec<u8>> {
    assert_eq!(batch.address as usize % 8, 0);
    // SAFETY: the view covers `bytes` initialised bytes of the decoder's buffer, which stay until the
    // first push after the next turn; every caller has the decoder and has made no such push.
    let bytes = unsafe { std::slice::from_raw_parts(batch.address, batch.bytes) };
    let (mut at, mut rows) = (0, Vec::new());
    while at < bytes.len() {
        let (head, rest) = bytes[at..].split_at(ROW_HEAD_BYTES);
        assert_eq!(head[4..], [0; 4]);
        let length = u32::from_ne_bytes(head[..4].try_into().expect("4 bytes")) as usize;
        assert_eq!(length % 8, 0);
        rows.push(rest[..length].to_vec());
        at += ROW_HEAD_BYTES + length;
    }
    assert_eq!(rows.len(), batch.rows as usize);
    rows
}

/// What came of a part: the rows in front of its end or of the corruption.
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

/// Decodes one part, pushed in pieces of the lengths of `cuts`, again and again (0 counts as 1).
pub fn decode(decoder: &mut RowDecoder, part: &[u8], cuts: &[usize]) -> Outcome {
    let mut rows = Vec::new();
    let error = push_all(decoder, part, cuts, &mut rows).err();
    rows.extend(rows_of(decoder.turn()));
    if error.is_some() {
        decoder.abandon_part();
        assert_eq!(decoder.rows_waiting(), 0);
    }
    Outcome { rows, error }
}

fn push_all(
    decoder: &mut RowDecoder,
    mut part: &[u8],
    cuts: &[usize],
    rows: &mut Vec<Vec<u8>>,
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
            rows.extend(filled(decoder));
        }
        assert!(piece.is_empty());
        part = rest;
    }
    while decoder.end_part()?.full {
        rows.extend(filled(decoder));
    }
    Ok(())
}

/// A batch that is full has a row: otherwise nothing would go on.
fn filled(decoder: &mut RowDecoder) -> Vec<Vec<u8>> {
    assert_ne!(decoder.rows_waiting(), 0);
    rows_of(decoder.turn())
}

pub fn decoder(codec: Codec, batch_bytes: usize) -> RowDecoder {
    RowDecoder::new(codec, batch_bytes).expect("a decoder")
}
