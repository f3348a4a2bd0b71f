//! Quantities with units in scenarios: `"10 Mbit/s"`, `"50 ms"`, `"256 kB"`, `"1 %"`, `"10..20 ms"`.
//!
//! Prefixes are decimal (kB is 1000 bytes) unless written kiB, MiB, GiB. The unit is required; only a share may be a
//! bare number from 0 to 1.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration;

pub trait Quantity: Copy + PartialOrd {
    /// Name for messages: "a rate".
    const WHAT: &'static str;
    /// Example for messages.
    const EXAMPLE: &'static str;
    /// Units with their factor to the base unit.
    const UNITS: &'static [(&'static str, f64)];
    /// Allowed range, for messages about an invalid value in the base unit.
    fn limits(value: f64) -> &'static str;
    /// Converts from the base unit; none if the value is invalid.
    fn from_base(value: f64) -> Option<Self>;
    /// Converts to the base unit.
    fn to_base(self) -> f64;
}

impl Quantity for Rate {
    const WHAT: &'static str = "a rate";
    const EXAMPLE: &'static str = "\"10 Mbit/s\"";
    const UNITS: &'static [(&'static str, f64)] =
        &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("kB/s", 8e3), ("MB/s", 8e6)];
    fn limits(_: f64) -> &'static str {
        "it must lie between 1 bit/s and 10000 Gbit/s"
    }
    fn from_base(value: f64) -> Option<Self> {
        (1.0..=1e13).contains(&value).then(|| Self::from_bits_per_second(value.round() as u64))
    }
    fn to_base(self) -> f64 {
        self.bits_per_second() as f64
    }
}

impl Quantity for Duration {
    const WHAT: &'static str = "a time";
    const EXAMPLE: &'static str = "\"50 ms\"";
    const UNITS: &'static [(&'static str, f64)] =
        &[("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0), ("h", 3600.0)];
    fn limits(value: f64) -> &'static str {
        if value < 0.0 { "it must not be negative" } else { "it must be at most 1e8 s" }
    }
    fn from_base(value: f64) -> Option<Self> {
        (0.0..=1e8).contains(&value).then(|| Self::from_secs_f64(value))
    }
    fn to_base(self) -> f64 {
        self.as_secs_f64()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

impl Quantity for Size {
    const WHAT: &'static str = "a size";
    const EXAMPLE: &'static str = "\"256 kB\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("kiB", 1024.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ];
    fn limits(_: f64) -> &'static str {
        "it must lie between 1 byte and 1e15 bytes"
    }
    fn from_base(value: f64) -> Option<Self> {
        (1.0..=1e15).contains(&value).then(|| Self(value.round() as u64))
    }
    fn to_base(self) -> f64 {
        self.0 as f64
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Packets(pub u64);

impl Quantity for Packets {
    const WHAT: &'static str = "a number of packets";
    const EXAMPLE: &'static str = "\"100 packets\"";
    const UNITS: &'static [(&'static str, f64)] = &[("packets", 1.0), ("packet", 1.0)];
    fn limits(_: f64) -> &'static str {
        "it must be a whole number from 1 to 1e9"
    }
    fn from_base(value: f64) -> Option<Self> {
        ((1.0..=1e9).contains(&value) && value.fract() == 0.0).then_some(Self(value as u64))
    }
    fn to_base(self) -> f64 {
        self.0 as f64
    }
}

/// A share, 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Share(pub f64);

impl Quantity for Share {
    const WHAT: &'static str = "a share";
    const EXAMPLE: &'static str = "\"1 %\"";
    const UNITS: &'static [(&'static str, f64)] = &[("%", 0.01), ("", 1.0)];
    fn limits(_: f64) -> &'static str {
        "it must lie between 0 % and 100 %"
    }
    fn from_base(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }
    fn to_base(self) -> f64 {
        self.0
    }
}

/// A relative change, e.g. "+27.97 %"; at least -100 %.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Change(pub f64);

impl Quantity for Change {
    const WHAT: &'static str = "a change";
    const EXAMPLE: &'static str = "\"+27.97 %\"";
    const UNITS: &'static [(&'static str, f64)] = &[("%", 0.01)];
    fn limits(_: f64) -> &'static str {
        "it must be at least -100 %"
    }
    fn from_base(value: f64) -> Option<Self> {
        (value >= -1.0 && value.is_finite()).then_some(Self(value))
    }
    fn to_base(self) -> f64 {
        self.0
    }
}

/// Splits a number from its unit, which may be missing.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | '_'))).unwrap_or(text.len());
    // An exponent ("1e6 B") is part of the number if digits follow.
    let rest = text.get(end..)?;
    let exponent = rest.strip_prefix(['e', 'E']).map(|after| {
        let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
        let count = digits.chars().take_while(char::is_ascii_digit).count();
        if count == 0 { 0 } else { rest.len() - digits.len() + count }
    });
    let end = end + exponent.unwrap_or(0);
    let number: f64 = text.get(..end)?.replace('_', "").parse().ok()?;
    Some((number, text.get(end..)?.trim()))
}

fn unit<Q: Quantity>(name: &str) -> Result<f64, String> {
    Q::UNITS.iter().find(|(known, _)| *known == name).map(|(_, factor)| *factor).ok_or_else(|| {
        let known: Vec<&str> = Q::UNITS.iter().map(|(known, _)| *known).filter(|known| !known.is_empty()).collect();
        let fault = if name.is_empty() {
            "has no unit".to_owned()
        } else {
            format!("has the unit '{name}', which is not known")
        };
        format!("{} {fault}: write it like {}; units are {}", Q::WHAT, Q::EXAMPLE, known.join(", "))
    })
}

fn checked<Q: Quantity>(base: f64, text: &str) -> Result<Q, String> {
    Q::from_base(base).ok_or_else(|| format!("'{}' is not possible for {}: {}", text.trim(), Q::WHAT, Q::limits(base)))
}

pub fn parse<Q: Quantity>(text: &str) -> Result<Q, String> {
    if text.contains("..") {
        return Err(format!(
            "{} is expected here, not a range; where a range may stand it says how it is drawn: \
             {{ uniform = \"{text}\", drawn = \"per_run\" }}",
            Q::WHAT
        ));
    }
    let (number, name) =
        split(text).ok_or_else(|| format!("'{text}' is not {}: write it like {}", Q::WHAT, Q::EXAMPLE))?;
    checked(number * unit::<Q>(name)?, text)
}

/// Parses a closed range, `"10..20 ms"`, with the unit at the end or at both ends.
pub fn parse_range<Q: Quantity>(text: &str) -> Result<(Q, Q), String> {
    let wrong = || format!("'{text}' is not a range of two values: write it like \"10..20 unit\"");
    let (low, high) = text.split_once("..").ok_or_else(wrong)?;
    let (high_number, high_unit) = split(high).ok_or_else(wrong)?;
    let (low_number, low_unit) = split(low).ok_or_else(wrong)?;
    let factor = unit::<Q>(high_unit)?;
    let low_factor = if low_unit.is_empty() { factor } else { unit::<Q>(low_unit)? };
    let (low, high): (Q, Q) = (checked(low_number * low_factor, text)?, checked(high_number * factor, text)?);
    if low > high {
        return Err(format!("the range '{text}' is reversed: its lower end is above its upper end"));
    }
    Ok((low, high))
}

/// Parses a time range, `"10..30 s"`, or without end, `"50 s.."`.
pub fn parse_range_of_time(text: &str) -> Result<(Duration, Option<Duration>), String> {
    match text.trim().strip_suffix("..") {
        Some(start) => Ok((parse(start)?, None)),
        None => {
            let (start, end) = parse_range(text)?;
            if start == end { Err(format!("the time '{text}' is empty")) } else { Ok((start, Some(end))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse::<Rate>("10 Mbit/s"), Ok(Rate::from_bits_per_second(10_000_000)));
        assert_eq!(parse::<Rate>("1.5MB/s"), Ok(Rate::from_bits_per_second(12_000_000)));
        assert_eq!(parse::<Duration>("50 ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse::<Duration>("1 us"), Ok(Duration::from_micros(1)));
        assert_eq!(parse::<Size>("32 kB"), Ok(Size(32_000)));
        assert_eq!(parse::<Size>("2 MiB"), Ok(Size(2_097_152)));
        assert_eq!(parse::<Size>("1e6 B"), Ok(Size(1_000_000)));
        assert_eq!(parse::<Packets>("500 packets"), Ok(Packets(500)));
        assert_eq!(parse::<Share>("1 %"), Ok(Share(0.01)));
        assert_eq!(parse::<Share>("0.25"), Ok(Share(0.25)));
        assert_eq!(parse::<Change>("-4.35 %"), Ok(Change(-0.0435)));
    }

    #[test]
    fn impossible_quantities_are_refused_with_a_reason() {
        assert!(parse::<Rate>("-3 Mbit/s").unwrap_err().contains("between 1 bit/s and"));
        assert!(parse::<Rate>("99999 Gbit/s").unwrap_err().contains("and 10000 Gbit/s"));
        assert!(parse::<Share>("120 %").unwrap_err().contains("between 0 % and 100 %"));
        assert!(parse::<Duration>("-1 s").unwrap_err().contains("not be negative"));
        assert!(parse::<Duration>("5 parsecs").unwrap_err().contains("'parsecs', which is not known"));
        assert!(parse::<Duration>("5").unwrap_err().contains("has no unit"));
        assert!(parse::<Packets>("1.5 packets").unwrap_err().contains("whole number"));
        assert!(parse::<Duration>("10..20 ms").unwrap_err().contains("not a range"));
        assert!(parse::<Rate>("fast").unwrap_err().contains("'fast' is not a rate"));
    }

    #[test]
    fn ranges_take_their_unit_from_the_end() {
        let milliseconds = |a, b| Ok((Duration::from_millis(a), Duration::from_millis(b)));
        assert_eq!(parse_range::<Duration>("10..20 ms"), milliseconds(10, 20));
        assert_eq!(parse_range::<Duration>("500 ms..1 s"), milliseconds(500, 1000));
        assert_eq!(parse_range::<Share>("0..50 %"), Ok((Share(0.0), Share(0.5))));
        assert!(parse_range::<Duration>("20..10 ms").unwrap_err().contains("reversed"));
        assert!(parse_range::<Duration>("20 ms").unwrap_err().contains("not a range"));
    }

    #[test]
    fn a_range_of_time_may_have_no_end() {
        assert_eq!(parse_range_of_time("50 s.."), Ok((Duration::from_secs(50), None)));
        assert_eq!(parse_range_of_time("10..30 s"), Ok((Duration::from_secs(10), Some(Duration::from_secs(30)))));
        assert!(parse_range_of_time("30..30 s").unwrap_err().contains("empty"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC{0,20}|[0-9.e+-]{0,6} ?(ms|%|Mbit/s)?") {
            let _ = parse::<Duration>(&text);
            let _ = parse::<Share>(&text);
            let _ = parse_range::<Rate>(&text);
            let _ = parse_range_of_time(&text);
        }
    }
}
