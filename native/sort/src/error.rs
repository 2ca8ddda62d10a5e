/// Reason why rows cannot be sorted. Each one is a defect of the caller: rows come from Spark.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SortError {
    #[error("column {ordinal} of rows with {fields} columns")]
    NoColumn { ordinal: usize, fields: usize },
    #[error("a row of {bytes} bytes at {at} in a page of {page} bytes")]
    RowLength { at: usize, bytes: u64, page: usize },
    #[error("{bytes} bytes at {offset} in a row of {row} bytes")]
    Variable {
        offset: usize,
        bytes: usize,
        row: usize,
    },
    #[error("{rows} rows in {pages} pages take more than {max} bits for their positions")]
    TooMany { rows: u64, pages: usize, max: u32 },
    #[error("page {page} has other rows than when it was surveyed")]
    OtherPage { page: usize },
    #[error("{found} words for entries, {needed} are needed")]
    Room { found: usize, needed: usize },
    #[error("{call} at this point of a sort")]
    Sequence { call: &'static str },
}
