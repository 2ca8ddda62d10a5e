//! The settings of an endpoint that have a default, as Java sends them: one `name=value` per line, so
//! that a new one changes no signature.

use crate::throw::{Failure, Outcome};
use faro_endpoint::{ExchangeConfig, ExchangePolicy, RegionMode, Staging};
use std::time::Duration;

/// What may be set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    pub idle_release: Duration,
    pub staging: Staging,
    pub regions: RegionMode,
    pub exchange: ExchangeConfig,
}

impl Settings {
    /// # Errors
    /// A name that is none, or a value that is not allowed.
    pub fn parse(text: &str) -> Outcome<Self> {
        let mut settings = Self::default();
        for line in text.lines() {
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| Failure::Argument(format!("setting '{line}' has no value")))?;
            match name {
                "memory.idleRelease" => {
                    settings.idle_release = millis("memory.idleRelease", value)?
                }
                "staging" => settings.staging = one_of("staging", value, Staging::ALL)?,
                "regions" => settings.regions = one_of("regions", value, RegionMode::ALL)?,
                "exchange" => {
                    settings.exchange.policy = one_of("exchange", value, ExchangePolicy::ALL)?;
                }
                "exchange.slice" => settings.exchange.slice = slice(value)?,
                _ => return Err(Failure::Argument(format!("there is no setting '{name}'"))),
            }
        }
        Ok(settings)
    }
}

fn slice(value: &str) -> Outcome<Duration> {
    let millis = value.parse().ok().filter(|millis| *millis > 0);
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| Failure::Config {
            key: "exchange.slice",
            value: value.to_owned(),
            allowed: "milliseconds, more than 0".to_owned(),
        })
}

fn millis(key: &'static str, value: &str) -> Outcome<Duration> {
    value
        .parse()
        .map(Duration::from_millis)
        .map_err(|_| Failure::Config {
            key,
            value: value.to_owned(),
            allowed: "milliseconds, 0 or more".to_owned(),
        })
}

fn one_of<T: Copy, const N: usize>(
    key: &'static str,
    value: &str,
    all: [(&str, T); N],
) -> Outcome<T> {
    let found = all.iter().find(|(name, _)| *name == value);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        Failure::Config {
            key,
            value: value.to_owned(),
            allowed: names.join(", "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_has_its_default() {
        let settings = Settings::parse("").ok().unwrap();
        assert_eq!(settings.staging, Staging::OnDemand);
        assert_eq!(settings.regions, RegionMode::Unpinned);
        assert_eq!(settings.idle_release, Duration::ZERO);
        let settings = Settings::parse("memory.idleRelease=1500\nstaging=onCommit\nregions=odp")
            .ok()
            .unwrap();
        assert_eq!(settings.idle_release, Duration::from_millis(1500));
        assert_eq!(settings.staging, Staging::OnCommit);
        assert_eq!(settings.regions, RegionMode::Odp);
        let settings = Settings::parse("exchange=rotated\nexchange.slice=5")
            .ok()
            .unwrap();
        assert_eq!(settings.exchange.policy, ExchangePolicy::Rotated);
        assert_eq!(settings.exchange.slice, Duration::from_millis(5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |text| match Settings::parse(text) {
            Err(Failure::Config {
                key,
                value,
                allowed,
            }) => format!("{key} {value} {allowed}"),
            Err(Failure::Argument(text)) => text,
            _ => panic!("accepted"),
        };
        assert_eq!(
            refused("staging=always"),
            "staging always onDemand, onCommit, planned"
        );
        assert_eq!(
            refused("regions=mapped"),
            "regions mapped unpinned, odp, pinned"
        );
        assert_eq!(
            refused("exchange=sorted"),
            "exchange sorted grouped, rotated, random"
        );
        assert_eq!(
            refused("exchange.slice=0"),
            "exchange.slice 0 milliseconds, more than 0"
        );
        assert_eq!(
            refused("memory.idleRelease=-1"),
            "memory.idleRelease -1 milliseconds, 0 or more"
        );
        assert_eq!(refused("colour=red"), "there is no setting 'colour'");
        assert_eq!(refused("staging"), "setting 'staging' has no value");
    }
}
