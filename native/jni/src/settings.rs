//! The settings of an endpoint: Java sends them as text, one `name=value` per line, and this module
//! turns them into a [`Config`].
//!
//! The name of a setting is the name of its key in Spark's configuration without `spark.faro.`.
//! A new setting is one line of [`SETTINGS`]. A setting that is not given has the value of
//! `Config::default`. Durations are in milliseconds and sizes in bytes: Java has converted the units by then. Spark's secret is no setting,
//! because errors print values: `Native.start` takes it as bytes.

use crate::keys::{key, ADVERTISED_ADDRESS, APPLICATION, NAME, PROTECTION};
use crate::throw::{EntryResult, Failure};
use faro_endpoint::{Config, ExchangePolicy, FabricChoice, Protection, RegionMode};
use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

const PROTECTIONS: [(&str, Protection); 2] =
    [("clear", Protection::Clear), ("sealed", Protection::Sealed)];

/// The allowed values, for the message of a refused one.
struct AllowedValues(String);

/// Parses a value into its field.
type Setter = fn(&mut Config, &str) -> Result<(), AllowedValues>;

/// Every setting by its name.
const SETTINGS: &[(&str, Setter)] = &[
    (NAME, |c, v| set(&mut c.name, Ok(v.to_owned()))),
    (APPLICATION, |c, v| {
        set(&mut c.security.application, Ok(v.to_owned()))
    }),
    (PROTECTION, |c, v| {
        set(&mut c.security.protection, one_of(v, &PROTECTIONS))
    }),
    ("fabric", |c, v| {
        set(&mut c.fabric, one_of(v, &FabricChoice::ALL))
    }),
    ("bindAddress", |c, v| set(&mut c.bind, address(v))),
    (ADVERTISED_ADDRESS, |c, v| set(&mut c.advertise, address(v))),
    ("port", |c, v| set(&mut c.port, within(v, 0, u16::MAX))),
    ("memory.limit", |c, v| set(&mut c.memory_limit, bytes(v))),
    ("memory.idleRelease", |c, v| {
        set(&mut c.idle_release, millis(v, 0))
    }),
    ("request.timeout", |c, v| {
        set(&mut c.request_timeout, millis(v, 1))
    }),
    ("regions", |c, v| {
        set(&mut c.regions, one_of(v, RegionMode::ALL))
    }),
    ("exchange", |c, v| {
        set(&mut c.exchange.policy, one_of(v, &ExchangePolicy::ALL))
    }),
    ("exchange.slice", |c, v| {
        set(&mut c.exchange.slice, millis(v, 1))
    }),
    ("verbs.device", |c, v| {
        set(&mut c.verbs.device, devices(v).map(Some))
    }),
    ("verbs.gidIndex", |c, v| {
        set(&mut c.verbs.gid_index, within(v, 0, 255).map(Some))
    }),
    ("verbs.trafficClass", |c, v| {
        set(&mut c.verbs.traffic_class, within(v, 0, 255))
    }),
    ("verbs.serviceLevel", |c, v| {
        set(&mut c.verbs.service_level, within(v, 0, 15))
    }),
    ("verbs.timeout", |c, v| {
        set(&mut c.verbs.timeout, within(v, 1, 31))
    }),
    ("verbs.retryCount", |c, v| {
        set(&mut c.verbs.retry_count, within(v, 0, 7))
    }),
    ("verbs.rnrRetry", |c, v| {
        set(&mut c.verbs.rnr_retry, within(v, 0, 7))
    }),
];

/// The configuration that `text` describes. Without an advertised address, peers get the bind
/// address.
///
/// # Errors
/// Returns `Config` for a value that is not allowed, and `Argument` for a line without `=` or an
/// unknown name.
pub fn parse(text: &str) -> EntryResult<Config> {
    let mut config = Config::default();
    let mut advertised = false;
    for line in text.lines() {
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| Failure::Argument(format!("setting '{line}' has no value")))?;
        let (name, setter) = SETTINGS
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| {
                let allowed = names(SETTINGS);
                Failure::Argument(format!("there is no setting '{name}', allowed: {allowed}"))
            })?;
        setter(&mut config, value).map_err(|AllowedValues(allowed)| Failure::Config {
            key: key(name),
            value: value.to_owned(),
            allowed,
        })?;
        advertised |= *name == ADVERTISED_ADDRESS;
    }
    // What peers read is to be there before they ask.
    config.stages_outputs = config.regions == RegionMode::Optimistic;
    if !advertised {
        config.advertise = config.bind;
    }
    Ok(config)
}

fn set<T>(field: &mut T, value: Result<T, AllowedValues>) -> Result<(), AllowedValues> {
    *field = value?;
    Ok(())
}

fn devices<T: FromStr>(text: &str) -> Result<T, AllowedValues> {
    let allowed = "a list of devices such as mlx5_0, ports such as mlx5_0:1 and subnets such as \
                   10.1.0.0/16";
    text.parse().map_err(|_| AllowedValues(allowed.to_owned()))
}

fn address(text: &str) -> Result<IpAddr, AllowedValues> {
    text.parse()
        .map_err(|_| AllowedValues("an IPv4 or IPv6 address".to_owned()))
}

fn within<T: FromStr + PartialOrd + Display>(
    text: &str,
    min: T,
    max: T,
) -> Result<T, AllowedValues> {
    match text.parse() {
        Ok(number) if number >= min && number <= max => Ok(number),
        _ => Err(AllowedValues(format!("{min} to {max}"))),
    }
}

fn bytes(text: &str) -> Result<u64, AllowedValues> {
    match text.parse() {
        Ok(bytes) if bytes >= 1 => Ok(bytes),
        _ => Err(AllowedValues("a number of bytes, 1 or more".to_owned())),
    }
}

fn millis(text: &str, min: u64) -> Result<Duration, AllowedValues> {
    match text.parse() {
        Ok(millis) if millis >= min => Ok(Duration::from_millis(millis)),
        _ => Err(AllowedValues(format!("milliseconds, {min} or more"))),
    }
}

fn one_of<T: Copy>(text: &str, all: &[(&str, T)]) -> Result<T, AllowedValues> {
    let found = all.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| AllowedValues(names(all)))
}

fn names<T>(all: &[(&str, T)]) -> String {
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use faro_endpoint::ExchangeConfig;

    fn accepted(text: &str) -> Config {
        parse(text).unwrap_or_else(|failure| panic!("{text}: {failure:?}"))
    }

    fn refused(text: &str) -> String {
        match parse(text) {
            Err(Failure::Config {
                key,
                value,
                allowed,
            }) => format!("{key} '{value}' {allowed}"),
            Err(Failure::Argument(text)) => text,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn a_setting_that_is_not_given_has_its_default() {
        let config = accepted("");
        assert_eq!(config.fabric, FabricChoice::Auto);
        assert_eq!(config.port, 0);
        assert_eq!(config.memory_limit, 256 << 20);
        assert_eq!(config.idle_release, Duration::from_secs(60));
        assert_eq!(config.request_timeout, Duration::from_secs(30));
        assert!(!config.stages_outputs);
        assert_eq!(config.regions, RegionMode::Unpinned);
        assert_eq!(config.exchange, ExchangeConfig::default());
        assert_eq!(config.verbs.device, None);
        assert_eq!(config.verbs.gid_index, None);
        assert_eq!(config.security.protection, Protection::Clear);
        assert_eq!(config.security.application, "");
        assert!(config.security.secret.is_none());
    }

    #[test]
    fn every_setting_reaches_its_field() {
        let config = accepted(
            "name=a=b\nfabric=shm\nbindAddress=::1\nadvertisedAddress=10.0.0.8\nport=65535\n\
             memory.limit=268435456\nmemory.idleRelease=1500\nrequest.timeout=2500\n\
             regions=optimistic\nexchange=rotated\nexchange.slice=5\nverbs.device=mlx5_0:1\n\
             verbs.gidIndex=255\nverbs.trafficClass=104\nverbs.serviceLevel=15\nverbs.timeout=31\n\
             verbs.retryCount=0\nverbs.rnrRetry=5\napplication=app-2026=1\nprotection=sealed",
        );
        assert_eq!(config.name, "a=b");
        assert_eq!(config.fabric, FabricChoice::Shm);
        assert_eq!(config.bind.to_string(), "::1");
        assert_eq!(config.advertise.to_string(), "10.0.0.8");
        assert_eq!(config.port, 65_535);
        assert_eq!(config.memory_limit, 256 << 20);
        assert_eq!(config.idle_release, Duration::from_millis(1_500));
        assert_eq!(config.request_timeout, Duration::from_millis(2_500));
        assert_eq!(config.regions, RegionMode::Optimistic);
        assert!(config.stages_outputs);
        assert_eq!(config.exchange.policy, ExchangePolicy::Rotated);
        assert_eq!(config.exchange.slice, Duration::from_millis(5));
        assert_eq!(config.verbs.device, Some("mlx5_0:1".parse().unwrap()));
        assert_eq!(config.verbs.gid_index, Some(255));
        assert_eq!(config.verbs.traffic_class, 104);
        assert_eq!(config.verbs.service_level, 15);
        assert_eq!(config.verbs.timeout, 31);
        assert_eq!(config.verbs.retry_count, 0);
        assert_eq!(config.verbs.rnr_retry, 5);
        assert_eq!(config.security.application, "app-2026=1");
        assert_eq!(config.security.protection, Protection::Sealed);
    }

    #[test]
    fn the_advertised_address_is_the_bind_address_unless_given() {
        let config = accepted("bindAddress=10.0.0.7");
        assert_eq!(config.advertise.to_string(), "10.0.0.7");
        let config = accepted("advertisedAddress=10.0.0.8\nbindAddress=0.0.0.0");
        assert_eq!(config.advertise.to_string(), "10.0.0.8");
    }

    #[test]
    fn a_refused_value_is_named_with_its_key_and_what_is_allowed() {
        for (line, message) in [
            ("bindAddress=here", "'here' an IPv4 or IPv6 address"),
            ("port=65536", "'65536' 0 to 65535"),
            ("port=-1", "'-1' 0 to 65535"),
            ("memory.limit=0", "'0' a number of bytes, 1 or more"),
            ("memory.limit=64m", "'64m' a number of bytes, 1 or more"),
            ("memory.idleRelease=-1", "'-1' milliseconds, 0 or more"),
            ("request.timeout=0", "'0' milliseconds, 1 or more"),
            ("exchange=sorted", "'sorted' auto, grouped, rotated, random"),
            ("exchange.slice=0", "'0' milliseconds, 1 or more"),
            ("verbs.gidIndex=256", "'256' 0 to 255"),
            ("verbs.trafficClass=-1", "'-1' 0 to 255"),
            ("verbs.trafficClass=256", "'256' 0 to 255"),
            ("verbs.serviceLevel=16", "'16' 0 to 15"),
            ("verbs.timeout=0", "'0' 1 to 31"),
            ("verbs.timeout=32", "'32' 1 to 31"),
            ("verbs.retryCount=8", "'8' 0 to 7"),
            ("verbs.rnrRetry=8", "'8' 0 to 7"),
        ] {
            let (name, _) = line.split_once('=').unwrap();
            assert_eq!(refused(line), format!("spark.faro.{name} {message}"));
        }
        let fabrics = FabricChoice::ALL.map(|(name, _)| name).join(", ");
        assert_eq!(
            refused("fabric=TCP"),
            format!("spark.faro.fabric 'TCP' {fabrics}")
        );
        assert_eq!(
            refused("advertisedAddress=there"),
            "advertisedAddress 'there' an IPv4 or IPv6 address"
        );
        assert_eq!(refused("protection=tls"), "protection 'tls' clear, sealed");
    }

    #[test]
    #[cfg(not(feature = "research"))]
    fn the_modes_for_comparison_are_not_in_this_build() {
        let unpinned = accepted("regions=unpinned").regions;
        assert_eq!(unpinned, RegionMode::Unpinned);
        let key = "spark.faro.regions";
        assert_eq!(
            refused("regions=pinned"),
            format!("{key} 'pinned' unpinned, optimistic")
        );
    }

    #[test]
    #[cfg(feature = "research")]
    fn the_modes_for_comparison_are_in_this_build() {
        assert_eq!(accepted("regions=odp").regions, RegionMode::Odp);
        assert_eq!(accepted("regions=pinned").regions, RegionMode::Pinned);
        assert_eq!(
            refused("regions=mapped"),
            "spark.faro.regions 'mapped' unpinned, optimistic, odp, pinned"
        );
    }

    #[test]
    fn a_line_that_is_no_setting_is_refused() {
        assert_eq!(
            refused("colour=red"),
            "there is no setting 'colour', allowed: name, application, protection, fabric, \
             bindAddress, advertisedAddress, port, memory.limit, memory.idleRelease, \
             request.timeout, regions, exchange, exchange.slice, verbs.device, verbs.gidIndex, \
             verbs.trafficClass, verbs.serviceLevel, verbs.timeout, verbs.retryCount, \
             verbs.rnrRetry"
        );
        assert_eq!(refused("regions"), "setting 'regions' has no value");
    }
}
