//! Declares `cfg(loom)` (src/sync.rs) for rustc's check of cfg names.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rerun-if-changed=build.rs");
}
