#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(unused_imports, reason = "each test binary uses a part")]

pub mod damage;
pub mod decode;
pub mod encode;
pub mod fuzz;
pub mod row_block;
pub mod unsafe_row;

pub use decode::{collect, decode, decoder, rows_of, Outcome};
