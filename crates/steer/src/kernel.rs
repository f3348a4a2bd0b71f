//! What the running kernel has: MPTCP, the path manager for new connections, and what has switched MPTCP off.

use anabranch_host::read_setting;
use std::collections::BTreeMap;
use std::fmt;

/// Settings below `/proc/sys`: the path manager's name, since 6.15, and its number.
const NAME: &str = "net/mptcp/path_manager";
const NUMBER: &str = "net/mptcp/pm_type";

/// Whether sockets of MPTCP can be made.
const ENABLED: &str = "net/mptcp/enabled";

/// Who manages the paths of connections that begin from now on. A connection keeps the one that it began with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathManagerChoice {
    /// The kernel, by the endpoints and limits of the namespace.
    Kernel,
    /// A daemon.
    UserSpace,
    /// One with another name.
    Other(String),
}

impl fmt::Display for PathManagerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::UserSpace => "userspace",
            Self::Other(name) => name,
        })
    }
}

/// A setting that chooses a path manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathManagerSetting {
    /// Its path below `/proc/sys`.
    pub key: &'static str,
    pub value: String,
}

impl PathManagerSetting {
    /// The setting of the calling thread's namespace; `None` without one, which is the kernel's before 5.19.
    pub fn read() -> Option<Self> {
        let of = |key| read_setting(key).map(|value| Self { key, value });
        of(NAME).or_else(|| of(NUMBER))
    }

    pub fn choice(&self) -> PathManagerChoice {
        match self.value.as_str() {
            "kernel" | "0" => PathManagerChoice::Kernel,
            "userspace" | "1" => PathManagerChoice::UserSpace,
            other => PathManagerChoice::Other(other.to_owned()),
        }
    }

    /// The value that chooses a path manager.
    pub fn value_of(&self, choice: &PathManagerChoice) -> String {
        match (self.key, choice) {
            (NUMBER, PathManagerChoice::Kernel) => "0".to_owned(),
            (NUMBER, PathManagerChoice::UserSpace) => "1".to_owned(),
            _ => choice.to_string(),
        }
    }
}

/// Whether MPTCP is there and enabled in the calling thread's namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mptcp {
    Enabled,
    /// By `net.mptcp.enabled`.
    Disabled,
    /// The kernel was built without it.
    Missing,
}

impl Mptcp {
    pub fn read() -> Self {
        match read_setting(ENABLED).as_deref() {
            Some("0") => Self::Disabled,
            Some(_) => Self::Enabled,
            None => Self::Missing,
        }
    }
}

/// Counters of MPTCP (`MPTcpExt` in `/proc/net/netstat`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters(BTreeMap<String, u64>);

/// What makes connections plain TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// In a word.
    pub cause: &'static str,
    /// What to say of it.
    pub text: &'static str,
    counter: &'static str,
}

const LOSSES: [Loss; 4] = [
    Loss {
        cause: "blackhole",
        text: "SYNs with MP_CAPABLE were not answered: the kernel uses TCP without MPTCP for new connections, for net.mptcp.blackhole_timeout",
        counter: "Blackhole",
    },
    Loss {
        cause: "client",
        text: "a client answered without MPTCP: a middlebox removes the option",
        counter: "MPCapableFallbackACK",
    },
    Loss { cause: "server", text: "a server answered without MPTCP", counter: "MPCapableFallbackSYNACK" },
    Loss { cause: "midway", text: "options were lost midway: connections fell back to TCP", counter: "DssFallback" },
];

impl Counters {
    /// The counters of the calling thread's namespace.
    pub fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default())
    }

    /// Lines come in pairs, one with names and one with numbers.
    fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
        let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let pairs = names.split(' ').zip(numbers.split(' '));
        Self(pairs.filter_map(|(name, number)| Some((name.to_owned(), number.parse().ok()?))).collect())
    }

    fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// What has made connections plain TCP since `before`, with how often.
    pub fn losses_since(&self, before: &Self) -> impl Iterator<Item = (u64, &'static Loss)> {
        LOSSES.iter().filter_map(move |loss| {
            let more = self.get(loss.counter).saturating_sub(before.get(loss.counter));
            (more > 0).then_some((more, loss))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_settings_name_the_same_path_managers() {
        for (key, kernel, user_space) in [(NAME, "kernel", "userspace"), (NUMBER, "0", "1")] {
            let setting = |value: &str| PathManagerSetting { key, value: value.to_owned() };
            assert_eq!(setting(kernel).choice(), PathManagerChoice::Kernel);
            assert_eq!(setting(user_space).choice(), PathManagerChoice::UserSpace);
            assert_eq!(setting(kernel).value_of(&PathManagerChoice::UserSpace), user_space);
            assert_eq!(setting(user_space).value_of(&PathManagerChoice::Kernel), kernel);
        }
        let other = PathManagerSetting { key: NAME, value: "bpf".to_owned() };
        assert_eq!(other.choice().to_string(), "bpf");
    }

    #[test]
    fn a_counter_that_grew_is_told() {
        let text = |number: u64| {
            format!("TcpExt: Blackhole\nTcpExt: 9\nMPTcpExt: MPCapableSYNRX Blackhole\nMPTcpExt: 3 {number}\n")
        };
        let (before, after) = (Counters::parse(&text(1)), Counters::parse(&text(3)));
        let told: Vec<u64> = after.losses_since(&before).map(|(more, _)| more).collect();
        assert_eq!(told, [2]);
        assert_eq!(after.losses_since(&after).count(), 0);
        assert_eq!(after.losses_since(&Counters::parse("")).map(|(more, _)| more).collect::<Vec<_>>(), [3]);
    }
}
