//! Compiles the shim that finds libibverbs at run time.

fn main() {
    println!("cargo:rerun-if-changed=shim/verbs.c");
    cc::Build::new()
        .file("shim/verbs.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("faro_verbs_shim");
}
