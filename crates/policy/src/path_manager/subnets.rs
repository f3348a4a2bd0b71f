//! Which addresses are in one subnet, and so a pair of [`super::same_subnet`], whose header has the source.

use crate::table::{Choice, Number, Reader, SettingError, Settings};
use core::net::IpAddr;

const PREFIX: Number = Number {
    name: "prefix",
    unit: "bits",
    default: 24.0,
    range: 0.0..=32.0,
    summary: "How many bits two IPv4 addresses of one subnet have in common",
};
const PREFIX_IPV6: Number = Number {
    name: "prefix_ipv6",
    unit: "bits",
    default: 64.0,
    range: 0.0..=128.0,
    summary: "How many bits two IPv6 addresses of one subnet have in common",
};
const READING: Choice<Reading> = Choice {
    name: "reading",
    default: Reading::Text,
    words: &[("text", Reading::Text), ("pseudo_code", Reading::PseudoCode)],
    summary: "Whether, as in the pseudo-code, addresses of the initial subflow's network are paired with all",
};

/// The rule to follow, of the paper's two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Equation 6: the same subnet.
    Text,
    /// Line 7 of the pseudo-code: the same subnet, or a source on the network of the initial subflow.
    PseudoCode,
}

/// Which addresses may be paired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subnets {
    /// Length of the common prefix of IPv4 addresses of a subnet, at most 32.
    pub prefix: u8,
    /// Length of the common prefix of IPv6 addresses of a subnet, at most 128.
    pub prefix_ipv6: u8,
    pub reading: Reading,
}

impl Default for Subnets {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

impl Subnets {
    /// Reads the settings.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            prefix: reader.read(&PREFIX)? as u8,
            prefix_ipv6: reader.read(&PREFIX_IPV6)? as u8,
            reading: reader.read(&READING)?,
        })
    }

    /// Whether a subflow between the two may be opened; `initial` is the local address of the initial subflow, if it is
    /// up. Addresses are in canonical form.
    pub(super) fn pair(self, from: IpAddr, to: IpAddr, initial: Option<IpAddr>) -> bool {
        let from_initial = self.reading == Reading::PseudoCode && initial.is_some_and(|one| self.share(from, one));
        self.share(from, to) || from_initial
    }

    /// Whether two addresses are in one subnet.
    fn share(self, one: IpAddr, other: IpAddr) -> bool {
        match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                let different = u32::from(one) ^ u32::from(other);
                different.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                let different = u128::from(one) ^ u128::from(other);
                different.leading_zeros() >= u32::from(self.prefix_ipv6)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bit_of_the_prefix_counts_and_the_first_after_it_does_not() {
        let subnets = Subnets { prefix: 23, ..Subnets::default() };
        let [one, near, far] = ["10.0.2.1", "10.0.3.254", "10.0.4.1"].map(|text| text.parse().unwrap());
        assert!(subnets.share(one, near));
        assert!(!subnets.share(one, far));
        // With a prefix of length 0, every address of the family is in one subnet, and none of the other family.
        let all = Subnets { prefix: 0, prefix_ipv6: 0, ..Subnets::default() };
        assert!(all.share(one, far));
        assert!(!all.share(one, "2001:db8::1".parse().unwrap()));
    }
}
