//! Compares the sizes, alignments and offsets of Faro's types of libibverbs with those that bindgen
//! made for the crate `ibverbs-sys` from another copy of the header.

#[allow(dead_code, unused_imports)]
#[path = "../../../../native/fabric/src/verbs/device/sys/mod.rs"]
mod sys;

use std::mem::{align_of, offset_of};
use std::process::ExitCode;
use sys::*;

fn main() -> ExitCode {
    let all: &[(&str, usize, usize)] = &include!(concat!(env!("OUT_DIR"), "/comparisons.rs"));
    let different = all.iter().filter(|(_, ours, theirs)| ours != theirs);
    let mut failed = 0;
    for (what, ours, theirs) in different {
        println!("{what} is {ours} in Faro, {theirs} in ibverbs-sys");
        failed += 1;
    }
    println!("{} passed, {failed} failed", all.len() - failed);
    ExitCode::from(u8::from(failed > 0 || all.is_empty()))
}
