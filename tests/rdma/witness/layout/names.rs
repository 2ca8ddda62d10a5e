//! Makes the comparisons of `main.rs`: one for each assertion in Faro's own `layout.rs`, so that a
//! type or a field that is added there is compared here too.

use std::path::PathBuf;
use std::{env, fs};

/// Below the repository.
const ASSERTIONS: &str = "native/fabric/src/verbs/device/sys/layout.rs";
/// What the bindings have in unions, or under names of bindgen's: type, Faro's field, theirs.
const OTHER_NAMES: [(&str, &str, &str); 3] = [
    ("ibv_send_wr", "imm_data", "__bindgen_anon_1.imm_data"),
    ("ibv_send_wr", "remote_addr", "wr.rdma.remote_addr"),
    ("ibv_send_wr", "rkey", "wr.rdma.rkey"),
];
/// The bindings have this type by hand, with fields that only their crate can name. The exchange
/// reads what is in them.
const PRIVATE: (&str, [&str; 5]) = (
    "ibv_wc",
    ["wr_id", "status", "opcode", "vendor_err", "byte_len"],
);

fn main() {
    let directory = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let source = directory("CARGO_MANIFEST_DIR")
        .join("../../..")
        .join(ASSERTIONS);
    println!("cargo::rerun-if-changed={}", source.display());
    let text = fs::read_to_string(&source).expect("Faro's layout.rs can be read");
    let comparisons: String = text.lines().filter_map(comparison).collect();
    let place = directory("OUT_DIR").join("comparisons.rs");
    fs::write(place, format!("[{comparisons}]")).expect("cargo's directory can be written");
}

/// `(text, Faro's value, the bindings' value),` of a line such as
/// `const _: () = assert!(offset_of!(ibv_wc, wr_id) == 0);`.
fn comparison(line: &str) -> Option<String> {
    let asserted = line.strip_prefix("const _: () = assert!(")?;
    let (value, _) = asserted.split_once(" == ")?;
    let theirs = match value.strip_prefix("offset_of!(") {
        Some(pair) => {
            let (name, field) = pair.strip_suffix(')')?.split_once(", ")?;
            if name == PRIVATE.0 && PRIVATE.1.contains(&field) {
                return None;
            }
            let field = other_name(name, field);
            format!("offset_of!(ibverbs_sys::{name}, {field})")
        }
        None => value.replace("::<", "::<ibverbs_sys::"),
    };
    Some(format!("({value:?}, {value}, {theirs}),\n"))
}

fn other_name<'a>(name: &str, field: &'a str) -> &'a str {
    let same = |(of, ours, _): &&(&str, &str, &str)| *of == name && *ours == field;
    OTHER_NAMES.iter().find(same).map_or(field, |other| other.2)
}
