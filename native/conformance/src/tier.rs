//! How many of its cases a test takes: a sample in `make test`, all of them in `make test-all`.

/// Returns `all` where the environment has `FARO_TESTS=all`, otherwise `sample`.
///
/// This is the one place that reads the variable. `make test-all` sets it for the tests that call this
/// function, and so does who runs a test by itself and wants all of it. A whole group of tests that
/// only `make test-all` runs says so in the list of tests: `#[ignore = "make test-all"]`.
/// `tests/setup/cargo-tests` names the programs with either.
pub fn cases<T>(all: T, sample: T) -> T {
    match std::env::var_os("FARO_TESTS") {
        Some(tier) if tier == "all" => all,
        _ => sample,
    }
}
