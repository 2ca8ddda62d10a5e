//! Row blocks: whole rows of Spark SQL, packed word column by word column. This is the ground floor: bit-packed codes,
//! the loops over a column's values, and the checked reading and writing of a body. Nothing uses it yet: the modes of
//! columns, texts, the encoder and the decoder are not written.
#![allow(dead_code, reason = "the encoder and the decoder are not written")]

mod bits;
mod body;
mod fault;
mod input;
mod kernels;
mod out;
mod stats;
