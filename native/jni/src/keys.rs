//! The names of settings, as they cross JNI and as users write them.

/// Prefix of a setting's name in the user's configuration.
const KEY_PREFIX: &str = "spark.faro.";

/// Settings that Java makes up, for which there is no key.
pub const NAME: &str = "name";
pub const ADVERTISED_ADDRESS: &str = "advertisedAddress";
pub const APPLICATION: &str = "application";
pub const PROTECTION: &str = "protection";

/// Returns the name of a setting as the user wrote it.
pub fn key(name: &str) -> String {
    match name {
        NAME | ADVERTISED_ADDRESS | APPLICATION | PROTECTION => name.to_owned(),
        _ => format!("{KEY_PREFIX}{name}"),
    }
}
