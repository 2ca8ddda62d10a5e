//! Lists and maps of a line, held up to a bound. A line of 64 MiB can list 33 million numbers.

use super::plain::{self, PlainName};
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// Stages of one line, and of an application.
pub const MAX_STAGES: usize = 100_000;
/// Parents of one stage.
const MAX_PARENTS: usize = 1_000;
/// Parents of all stages of one line, and of an application.
pub const MAX_ALL_PARENTS: usize = 500_000;

/// The properties of applications and jobs that are used.
const KEPT: [&str; 8] = [
    "spark.master",
    "spark.shuffle.manager",
    "spark.plugins",
    "spark.shuffle.push.enabled",
    "spark.shuffle.compress",
    "spark.network.crypto.enabled",
    DESCRIPTION,
    GROUP,
];
pub const DESCRIPTION: &str = "spark.job.description";
pub const GROUP: &str = "spark.jobGroup.id";

/// Calls `each` for the values of a list.
struct Each<T, F>(F, PhantomData<T>);

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
        to.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(value) = list.next_element()? {
            (self.0)(value);
        }
        Ok(())
    }
}

pub fn each<'de, D, T>(from: D, each: impl FnMut(T)) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(Each(each, PhantomData))
}

/// The numbers of stages.
pub fn stages<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    numbers(from, MAX_STAGES)
}

pub fn parents<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u64>, D::Error> {
    numbers(from, MAX_PARENTS)
}

fn numbers<'de, D: Deserializer<'de>>(from: D, most: usize) -> Result<Vec<u64>, D::Error> {
    let mut kept = Vec::new();
    each(from, |number| {
        if kept.len() < most {
            kept.push(number);
        }
    })?;
    Ok(kept)
}

/// The used part of a stage's RDDs.
#[derive(Debug, Default, Clone, Copy)]
pub struct StageRdds {
    /// The RDD that the stage computes. The others of a stage are its ancestors, which were made before it.
    pub last: Option<u64>,
    pub reads_rows: bool,
    pub writes_rows: bool,
}

#[derive(Deserialize)]
struct RddInfo {
    #[serde(rename = "RDD ID", default)]
    id: Option<u64>,
    #[serde(rename = "Name", default, deserialize_with = "is_shuffled_row")]
    shuffled_row: bool,
    #[serde(rename = "Scope", default, deserialize_with = "is_exchange")]
    exchange: bool,
}

fn is_shuffled_row<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    plain::text(from, |name| name.starts_with("ShuffledRowRDD"))
}

/// The scope is JSON in a text: `{"id":"4","name":"Exchange"}`.
fn is_exchange<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    plain::text(from, |scope| scope.contains("\"name\":\"Exchange\""))
}

impl<'de> Deserialize<'de> for StageRdds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        each(from, |rdd: RddInfo| {
            all.last = all.last.max(rdd.id);
            all.reads_rows |= rdd.shuffled_row;
            all.writes_rows |= rdd.exchange && !rdd.shuffled_row;
        })?;
        Ok(all)
    }
}

/// Milliseconds that tasks spent in operators of Spark SQL, from the operators' own metrics. Those whose time
/// has that of their input in it are left out (`time in aggregation build`).
#[derive(Debug, Default, Clone, Copy)]
pub struct OperatorTimes {
    pub sort_ms: u64,
    pub scan_ms: u64,
}

#[derive(Deserialize)]
struct MetricInfo {
    #[serde(rename = "Name", default)]
    name: PlainName,
    #[serde(rename = "Value", default)]
    value: MetricValue,
}

/// Spark writes SQL metrics as texts, and others as numbers or lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum MetricValue {
    Number(u64),
    Text(PlainName),
    Other(IgnoredAny),
}

impl Default for MetricValue {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl MetricValue {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(text) => text.0.parse().unwrap_or(0),
            Self::Other(_) => 0,
        }
    }
}

impl<'de> Deserialize<'de> for OperatorTimes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut all = Self::default();
        each(from, |metric: MetricInfo| {
            let sum = match metric.name.0.as_str() {
                "sort time" => &mut all.sort_ms,
                "scan time" => &mut all.scan_ms,
                _ => return,
            };
            *sum = sum.saturating_add(metric.value.number());
        })?;
        Ok(all)
    }
}

/// The used properties.
#[derive(Debug, Default)]
pub struct KeptProperties(BTreeMap<&'static str, String>);

impl KeptProperties {
    /// The value, or the empty text.
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }
}

/// A key, if it is a used one.
struct KeptKey(Option<&'static str>);

impl<'de> Deserialize<'de> for KeptKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        plain::text(from, |key| {
            Self(KEPT.iter().find(|kept| **kept == key).copied())
        })
    }
}

impl<'de> Deserialize<'de> for KeptProperties {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Properties;
        impl<'de> Visitor<'de> for Properties {
            type Value = KeptProperties;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("a map")
            }

            fn visit_unit<E>(self) -> Result<KeptProperties, E> {
                Ok(KeptProperties::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeptProperties, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(KeptKey(key)) = map.next_key()? {
                    if let Some(key) = key {
                        kept.insert(key, map.next_value::<PlainName>()?.0);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(KeptProperties(kept))
            }
        }
        from.deserialize_any(Properties)
    }
}
