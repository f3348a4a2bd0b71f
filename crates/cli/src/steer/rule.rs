//! Rules of `steer`: `[to=PREFIX] [port=N] [user=NAME] [cgroup=PATH] leave | [policy=POLICY] [uplinks=NAME,NAME]`.

use anabranch_policy::combination::Family;
use anabranch_policy::path_manager::PathManager;
use anabranch_settings::contender::from_option;
use anabranch_steer::{Class, Condition, Group, Rule, user_id};
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;

/// Where control groups are, version 2; beside version 1 in a folder of its own.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// A rule as it was said. Users are looked up when it begins to count, control groups for each connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleOption {
    text: String,
    to: Option<(IpAddr, u8)>,
    port: Option<u16>,
    user: Option<String>,
    cgroup: Option<String>,
    leave: bool,
    policy: Option<String>,
    uplinks: Vec<String>,
}

impl FromStr for RuleOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut rule = Self { text: text.to_owned(), ..Self::default() };
        let mut said = BTreeSet::new();
        for word in text.split_whitespace() {
            let key = word.split_once('=').map_or(word, |(key, _)| key);
            if !said.insert(key) {
                return Err(format!("'{key}' is said twice: all conditions must fit; other rules can follow"));
            }
            let wrong = || {
                format!(
                    "'{word}' is no part of a rule: there are to=, port=, user=, cgroup=, policy=, uplinks= and leave"
                )
            };
            match word.split_once('=') {
                Some(("to", value)) => rule.to = Some(prefix(value)?),
                Some(("port", value)) => rule.port = Some(value.parse().map_err(|_| format!("'{value}' is no port"))?),
                Some(("user", value)) => rule.user = Some(value.to_owned()),
                Some(("cgroup", value)) => rule.cgroup = Some(value.to_owned()),
                Some(("policy", value)) => rule.policy = Some(value.to_owned()),
                Some(("uplinks", value)) if value.split(',').any(str::is_empty) => {
                    return Err(format!("'{word}' lacks the name of an interface"));
                }
                Some(("uplinks", value)) => rule.uplinks = value.split(',').map(str::to_owned).collect(),
                None if word == "leave" => rule.leave = true,
                _ => return Err(wrong()),
            }
        }
        let steers = rule.policy.is_some() || !rule.uplinks.is_empty();
        match (rule.leave, steers) {
            (true, true) => Err("a connection that is left alone has neither policy nor uplinks".to_owned()),
            (false, false) => Err("it needs leave, policy= or uplinks=".to_owned()),
            _ => Ok(rule),
        }
    }
}

/// An address, or one with how many of its first bits count.
fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("'{text}' is no address or prefix such as 192.0.2.0/24");
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), |length| length.parse().map_err(|_| wrong()))?;
    if length <= most { Ok((address, length)) } else { Err(wrong()) }
}

/// The path manager where nothing names one.
pub const PATH_MANAGER: &str = "goodput_trial";

/// What was said of policies, with the default path manager if it names none: parameters alone, or members of other
/// families, are no choice of a path manager.
pub fn completed(policy: &str) -> String {
    let (first, rest) = policy.split_once(',').unwrap_or((policy, ""));
    let mut keys = policy.split(',').filter_map(|part| Some(part.split_once('=')?.0.trim()));
    let family = Family::PathManager.name();
    let is_of_another = |name: &str| {
        let mut others = Family::ALL.into_iter().filter(|other| *other != Family::PathManager);
        others.any(|other| other.members().contains(&name))
    };
    // Other names, such as those of baselines, mean one too.
    let names_one = !first.contains('=') && !is_of_another(first.trim());
    if names_one || keys.any(|key| key == family) {
        return policy.to_owned();
    }
    let choice = format!("{family}={PATH_MANAGER}");
    let parts = if first.contains('=') { [choice.as_str(), policy, ""] } else { [first, &choice, rest] };
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
}

/// A path manager by what was said of it.
pub fn path_manager(policy: &str) -> Result<Box<dyn PathManager>, String> {
    let contender = from_option(&completed(policy))?;
    contender.policies.build_path_manager().map_err(|error| error.to_string())
}

/// Whether a path manager opens subflows as backups.
pub fn opens_backups(policy: &str) -> bool {
    let said = from_option(&completed(policy));
    said.is_ok_and(|said| said.policies.choice(Family::PathManager).settings.get("backup").is_some())
}

impl RuleOption {
    /// Whether it has a policy that opens subflows as backups.
    pub fn opens_backups(&self) -> bool {
        self.policy.as_deref().is_some_and(opens_backups)
    }

    /// The interfaces that it names.
    pub fn uplinks(&self) -> &[String] {
        &self.uplinks
    }

    fn group(&self) -> Option<Group> {
        let path = self.cgroup.as_deref()?.trim_start_matches('/');
        let root = CGROUPS.into_iter().find(|root| Path::new(root).join("cgroup.procs").exists());
        Some(Group::new(Path::new(root.unwrap_or(CGROUPS[1])).join(path)))
    }

    /// That the control group is not there, in a sentence.
    pub fn missing(&self) -> Option<String> {
        let path = self.cgroup.as_deref().filter(|_| self.group().is_some_and(|group| group.id().is_none()))?;
        Some(format!("there is no control group {path}, of version 2: the rule for it fits nothing until there is"))
    }

    /// The rule, with `policy` where it names none.
    ///
    /// # Errors
    /// There is no such user or policy.
    pub fn build(&self, policy: &str) -> Result<Rule, String> {
        let user = self.user.as_deref().map(|name| user_id(name).ok_or_else(|| format!("there is no user {name}")));
        let condition = Condition { remote: self.to, port: self.port, user: user.transpose()?, cgroup: self.group() };
        let class = || {
            let manager = path_manager(self.policy.as_deref().unwrap_or(policy))?;
            Ok::<_, String>(Class { manager, uplinks: self.uplinks.clone() })
        };
        Ok(Rule { condition, class: if self.leave { None } else { Some(class()?) } })
    }
}

impl fmt::Display for RuleOption {
    /// What it means.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = vec!["connections".to_owned()];
        of.extend(self.to.map(|(address, length)| format!("to {address}/{length}")));
        of.extend(self.port.map(|port| format!("to port {port}")));
        of.extend(self.user.as_ref().map(|user| format!("of user {user}")));
        of.extend(self.cgroup.as_ref().map(|cgroup| format!("in control group {cgroup}")));
        write!(f, "{} ", of.join(" "))?;
        if self.leave {
            return f.write_str("are left alone");
        }
        match &self.policy {
            Some(policy) => write!(f, "are steered by {}", completed(policy))?,
            None => f.write_str("are steered")?,
        }
        if self.uplinks.is_empty() { Ok(()) } else { write!(f, " over {}", self.uplinks.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_which_connections_and_what_becomes_of_them() {
        let said = |text: &str| text.parse::<RuleOption>().map(|rule| rule.to_string());
        let rule = "to=192.0.2.0/24 port=443 user=root policy=lm3 uplinks=wlan0,wwan0";
        let words = "connections to 192.0.2.0/24 to port 443 of user root are steered by lm3 over wlan0, wwan0";
        assert_eq!(said(rule), Ok(words.to_owned()));
        assert_eq!(
            said("cgroup=/user.slice leave"),
            Ok("connections in control group /user.slice are left alone".to_owned())
        );
        for wrong in [
            "",
            "port=22",
            "leave policy=lm3",
            "uplinks=",
            "port=22 uplinks=wlan0,",
            "port=1 port=2 leave",
            "to=192.0.2.0/33 leave",
            "port=x leave",
            "nobody=1 leave",
            "never",
        ] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_there_is_refused_when_the_rule_begins_to_count() {
        let build = |text: &str| text.parse::<RuleOption>().expect("a rule").build("lm3");
        assert_eq!(build("user=root leave").map(|rule| rule.condition.user).ok().flatten(), Some(0));
        for wrong in ["user=nobody-of-this-name leave", "policy=nonsense"] {
            assert!(build(wrong).is_err(), "{wrong}");
        }
    }

    /// A service's is made when it starts.
    #[test]
    fn a_control_group_that_is_not_there_is_told_and_fits_nothing() {
        let rule: RuleOption = "cgroup=/none/such leave".parse().expect("a rule");
        let told = "there is no control group /none/such, of version 2: the rule for it fits nothing until there is";
        assert_eq!(rule.missing().as_deref(), Some(told));
        let group = rule.build("lm3").expect("it may come").condition.cgroup.expect("it was said");
        assert!(group.directory.ends_with("none/such") && group.id().is_none(), "{group:?}");
        let without: RuleOption = "port=1 leave".parse().expect("a rule");
        assert_eq!(without.missing(), None);
    }

    #[test]
    fn parameters_alone_and_members_of_other_families_are_those_of_the_default_path_manager() {
        for (said, meant) in [
            ("lm3", "lm3"),
            ("path_manager=lm3,path_manager.rounding=up", "path_manager=lm3,path_manager.rounding=up"),
            ("lm3,path_manager.rounding=up", "lm3,path_manager.rounding=up"),
            ("path_manager.dead_after=1", "path_manager=goodput_trial,path_manager.dead_after=1"),
            ("congestion=cubic", "path_manager=goodput_trial,congestion=cubic"),
            ("cubic", "cubic,path_manager=goodput_trial"),
            ("cubic,path_manager.dead_after=1", "cubic,path_manager=goodput_trial,path_manager.dead_after=1"),
        ] {
            assert_eq!(completed(said), meant);
            assert!(path_manager(said).is_ok(), "{said}");
        }
        // It has no such parameter, which full_mesh has.
        assert!(path_manager("path_manager.backup=joined").is_err());
        assert!(opens_backups("full_mesh,path_manager.backup=joined") && !opens_backups("full_mesh"));
    }
}
