//! The user's choice among devices: a list of devices, ports and subnets, best first.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A value of `spark.faro.verbs.device`, such as `mlx5_0,mlx5_1:2` or `10.1.0.0/16`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSelection(Vec<DevicePattern>);

/// A part of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DevicePattern {
    /// All ports of a device.
    Device(String),
    Port {
        device: String,
        number: u8,
    },
    /// The ports that have an address of the subnet.
    Subnet(Subnet),
}

/// The first `prefix` bits of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subnet {
    address: IpAddr,
    prefix: u8,
}

/// A text that is no [`DeviceSelection`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a device such as mlx5_0, nor a port such as mlx5_0:1, nor a subnet such as 10.1.0.0/16")]
pub struct BadSelection(pub String);

impl DeviceSelection {
    /// Returns the parts, best first.
    pub(crate) fn patterns(&self) -> &[DevicePattern] {
        &self.0
    }
}

impl FromStr for DeviceSelection {
    type Err = BadSelection;

    fn from_str(text: &str) -> Result<Self, BadSelection> {
        let parts = text.split(',').map(|part| part.trim().parse());
        parts.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for DeviceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pattern) in self.0.iter().enumerate() {
            write!(f, "{}{pattern}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for DevicePattern {
    type Err = BadSelection;

    fn from_str(text: &str) -> Result<Self, BadSelection> {
        let bad = || BadSelection(text.to_owned());
        let is_name = |name: &str| {
            let may = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            !name.is_empty() && name.chars().all(may)
        };
        if text.contains('/') {
            return Subnet::parse(text).map(Self::Subnet).ok_or_else(bad);
        }
        match text.split_once(':') {
            None if is_name(text) => Ok(Self::Device(text.to_owned())),
            Some((name, number)) if is_name(name) => Ok(Self::Port {
                device: name.to_owned(),
                number: number.parse().map_err(|_| bad())?,
            }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for DevicePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(name) => f.write_str(name),
            Self::Port { device, number } => write!(f, "{device}:{number}"),
            Self::Subnet(Subnet { address, prefix }) => write!(f, "{address}/{prefix}"),
        }
    }
}

impl Subnet {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let subnet = Self {
            address: address.parse().ok()?,
            prefix: prefix.parse().ok()?,
        };
        (subnet.prefix <= bits(subnet.address).1).then_some(subnet)
    }

    /// Returns the network of that prefix that has an address; with a longer prefix than addresses have,
    /// the address alone.
    pub(crate) fn around(ip: IpAddr, prefix: u8) -> Self {
        let (number, width) = bits(ip);
        let prefix = prefix.min(width);
        let rest = u32::from(width - prefix);
        let head = number.checked_shr(rest).unwrap_or(0);
        let number = head.checked_shl(rest).unwrap_or(0);
        let address = match ip {
            IpAddr::V4(_) => IpAddr::from((number as u32).to_be_bytes()),
            IpAddr::V6(_) => IpAddr::from(number.to_be_bytes()),
        };
        Self { address, prefix }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let ((own, width), (other, other_width)) = (bits(self.address), bits(address));
        // A shift by the whole width leaves nothing to compare.
        let rest = u32::from(width - self.prefix);
        let head = |bits: u128| bits.checked_shr(rest).unwrap_or(0);
        width == other_width && head(own) == head(other)
    }
}

/// Returns an address as a number, and the number's bits.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_written() {
        for text in [
            "mlx5_0",
            "mlx5_0:1",
            "10.1.0.0/16",
            "fd00::/8",
            "b:2,a,10.0.0.0/8",
        ] {
            let selection: DeviceSelection = text.parse().unwrap();
            assert_eq!(selection.to_string(), text);
        }
        let spaced: DeviceSelection = "a, b:1".parse().unwrap();
        assert_eq!(spaced.to_string(), "a,b:1");
        for text in [
            "",
            "a,",
            "mlx5 0",
            "mlx5_0:one",
            "a:",
            ":1",
            "10.1.0.0/33",
            "x/8",
            "fd00::/129",
        ] {
            let bad = text.parse::<DeviceSelection>().unwrap_err().to_string();
            assert!(bad.contains("10.1.0.0/16"), "{text}: {bad}");
        }
    }

    #[test]
    fn a_subnet_has_the_addresses_with_its_first_bits() {
        let has =
            |subnet: &str, ip: &str| Subnet::parse(subnet).unwrap().contains(ip.parse().unwrap());
        assert!(has("10.1.0.0/16", "10.1.255.7") && !has("10.1.0.0/16", "10.2.0.7"));
        assert!(has("10.1.0.5/32", "10.1.0.5") && !has("10.1.0.5/32", "10.1.0.4"));
        assert!(has("0.0.0.0/0", "192.0.2.1") && !has("0.0.0.0/0", "::1"));
        assert!(has("fd00:0:0:1::/64", "fd00:0:0:1::5") && has("::/0", "fe80::1"));
        let around = |ip: &str, prefix| Subnet::around(ip.parse().unwrap(), prefix);
        for (ip, prefix, network) in [
            ("10.1.2.3", 16, "10.1.0.0/16"),
            ("10.1.2.3", 255, "10.1.2.3/32"),
            ("10.1.2.3", 0, "0.0.0.0/0"),
            ("fd00:0:0:1::5", 64, "fd00:0:0:1::/64"),
            ("fd00::5", 0, "::/0"),
        ] {
            assert_eq!(Some(around(ip, prefix)), Subnet::parse(network));
        }
    }
}
