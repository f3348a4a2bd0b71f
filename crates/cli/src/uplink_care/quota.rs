//! Data quotas of uplinks per day or month. The usage is stored in a file, so that it survives restarts.

use super::counter::octets;
use crate::console::{since_1970, stamp};
use anabranch_settings::quantity::{self, Size};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::str::FromStr;

/// Identifies the boot of the system.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Periods whose usage is kept beside that of the current one, in case that the clock is set back to one of them.
const KEPT: usize = 3;

/// Period of a quota, in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// Calendar month.
    Month,
}

/// The quota of an uplink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quota {
    pub interface: String,
    /// Sum of both directions, bytes of the interface.
    pub octets: u64,
    pub period: Period,
}

impl FromStr for Quota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no quota: write it like wwan0=5GB/month or wwan0=200MB/day");
        let (interface, amount) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let (size, period) = amount.rsplit_once('/').ok_or_else(wrong)?;
        let period = match period.trim() {
            "day" => Period::Day,
            "month" => Period::Month,
            _ => return Err(wrong()),
        };
        let Size(octets) = quantity::parse(size)?;
        Ok(Self { interface: interface.to_owned(), octets, period })
    }
}

impl Period {
    /// Name of the period at `seconds` since 1970.
    fn name(self, seconds: u64) -> String {
        let length = match self {
            Self::Day => "2026-11-24".len(),
            Self::Month => "2026-11".len(),
        };
        stamp(seconds).chars().take(length).collect()
    }
}

/// Usage of a quota.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Ledger {
    period: String,
    used: u64,
    boot: String,
    /// The interface's counter when this was written.
    counter: u64,
    /// Other periods and their usage, those last counted first.
    others: Vec<(String, u64)>,
}

impl Ledger {
    fn read(text: &str) -> Option<Self> {
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let other = |line: &str| {
            let (period, used) = line.strip_prefix("other ")?.split_once(' ')?;
            Some((period.to_owned(), used.parse().ok()?))
        };
        Some(Self {
            period: value("period")?.to_owned(),
            used: value("used")?.parse().ok()?,
            boot: value("boot")?.to_owned(),
            counter: value("counter")?.parse().ok()?,
            others: text.lines().filter_map(other).take(KEPT).collect(),
        })
    }

    fn text(&self) -> String {
        let Self { period, used, boot, counter, others } = self;
        let others: String = others.iter().map(|(period, used)| format!("other {period} {used}\n")).collect();
        format!("period {period}\nused {used}\nboot {boot}\ncounter {counter}\n{others}")
    }

    /// Usage in a period.
    fn used_in(&self, period: &str) -> u64 {
        if self.period == period {
            return self.used;
        }
        self.others.iter().find(|(other, _)| other == period).map_or(0, |(_, used)| *used)
    }

    /// Adds usage since then: counters restart with the system and with the interface. The clock may have been set to
    /// an earlier period, or back from one that was wrong.
    fn advance(mut self, period: String, boot: &str, counter: u64) -> Self {
        let passed = if self.boot == boot && counter >= self.counter { counter - self.counter } else { counter };
        let used = self.used_in(&period).saturating_add(passed);
        if self.period != period {
            self.others.insert(0, (self.period, self.used));
            self.others.retain(|(other, _)| *other != period);
            self.others.truncate(KEPT);
        }
        Self { period, used, boot: boot.to_owned(), counter, others: self.others }
    }
}

/// Updates and stores the usage of an uplink. Several programs may do so for the same uplink: traffic is counted once.
pub fn used(directory: &Path, quota: &Quota) -> io::Result<u64> {
    let now = since_1970().as_secs();
    let boot = std::fs::read_to_string(BOOT).unwrap_or_default();
    count(directory, quota, now, boot.trim(), octets(&quota.interface))
}

fn count(directory: &Path, quota: &Quota, now: u64, boot: &str, counter: Option<u64>) -> io::Result<u64> {
    let period = quota.period.name(now);
    std::fs::create_dir_all(directory)?;
    let path = directory.join(format!("quota-{}", quota.interface));
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let known = Ledger::read(&text);
    let Some(counter) = counter else {
        // The interface does not exist: no traffic.
        return Ok(known.map_or(0, |ledger| ledger.used_in(&period)));
    };
    let ledger = match known {
        Some(ledger) => ledger.advance(period, boot, counter),
        // Earlier traffic may not belong to this period.
        None => Ledger { period, boot: boot.to_owned(), counter, ..Ledger::default() },
    };
    write(&mut file, &ledger.text())?;
    Ok(ledger.used)
}

/// Overwrites the file. What a crash leaves of a longer text is a part of a line, or a period that the new text has too.
fn write(file: &mut File, text: &str) -> io::Result<()> {
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(text: &str) -> Quota {
        text.parse().expect("a quota")
    }

    #[test]
    fn a_quota_is_an_uplink_a_size_and_a_time() {
        let found = quota("wwan0=5GB/month");
        assert_eq!((found.interface.as_str(), found.octets, found.period), ("wwan0", 5_000_000_000, Period::Month));
        assert_eq!(quota("usb0=200 MB/day").octets, 200_000_000);
        for wrong in ["", "wwan0", "wwan0=5GB", "wwan0=5GB/week", "=5GB/day", "wwan0=five/day"] {
            assert!(wrong.parse::<Quota>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_has_passed_is_known_after_a_restart_and_begins_anew_with_the_month() {
        let directory = std::env::temp_dir().join(format!("anabranch-quota-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let quota = quota("wwan0=1kB/month");
        // 2024-02-29, as in the calendar's test.
        let (february, march) = (1_709_251_199, 1_709_251_200);
        let count = |now, boot, counter| super::count(&directory, &quota, now, boot, counter).expect("it is kept");
        assert_eq!(count(february, "one", Some(5_000)), 0, "what was before is not known");
        assert_eq!(count(february, "one", Some(5_300)), 300);
        assert_eq!(count(february, "one", None), 300, "the interface is away");
        assert_eq!(count(february, "one", Some(100)), 400, "it was made anew");
        assert_eq!(count(february, "two", Some(50)), 450, "the system was started anew");
        assert_eq!(count(march, "two", Some(60)), 10);
        std::fs::remove_dir_all(&directory).expect("it is the test's own");
    }

    #[test]
    fn a_step_of_the_clock_to_another_month_and_back_loses_nothing() {
        let directory = std::env::temp_dir().join(format!("anabranch-quota-step-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let quota = quota("wwan0=1kB/month");
        // 2024-02-29, and a day in 2100, as in the calendar's test. A host without a clock of its own begins in 1970.
        let (february, in_2100, in_1970) = (1_709_251_199, 4_107_542_400, 60);
        let count = |now, counter| super::count(&directory, &quota, now, "one", Some(counter)).expect("it is kept");
        assert_eq!(count(february, 1_000), 0);
        assert_eq!(count(february, 1_700), 700);
        assert_eq!(count(in_1970, 1_710), 10);
        assert_eq!(count(in_1970, 1_720), 20);
        assert_eq!(count(february, 1_720), 700, "what passed in 1970 stays there");
        assert_eq!(count(in_2100, 1_750), 30);
        assert_eq!(count(february, 1_751), 701);
        assert_eq!(count(in_1970, 1_751), 20);
        std::fs::remove_dir_all(&directory).expect("it is the test's own");
    }
}
