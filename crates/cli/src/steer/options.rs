//! What can be said to `steer`.

use super::rule::{PATH_MANAGER, RuleOption, completed, opens_backups, path_manager};
use crate::configuration::ConfigurationOption;
use crate::status::StatusOptions;
use crate::uplink_care::UplinkOptions;
use anabranch_policy::time::Duration;
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_settings::quantity;
use anabranch_steer::{Classes, PathManagerChoice};
use anabranch_steering::settings::Settings;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What can be said to `steer`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("probe", |probe| probe.hide(true)), mut_arg("probe_answer", |answer| answer.hide(true)))]
pub struct SteerOptions {
    /// Which of the kernel's path managers new connections of this network namespace get
    #[arg(long, value_name = "WHICH", default_value = "userspace")]
    path_manager: Wanted,
    /// The path manager that decides, with its parameters, e.g. lm3, path_manager.PARAMETER=VALUE for the default one, or
    /// path_manager=pu2m2,path_manager.PARAMETER=VALUE; other families are the kernel's business
    #[arg(long, value_name = "POLICY", default_value = PATH_MANAGER)]
    policy: String,
    /// Interval between samples
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = interval)]
    pub interval: Duration,
    /// Open subflows from this interface's addresses (repeatable) [default: all interfaces with a default route]
    #[arg(long = "uplink", value_name = "INTERFACE")]
    pub uplinks: Vec<String>,
    /// Uplink used only while no other works (repeatable)
    #[arg(long = "backup", value_name = "INTERFACE")]
    pub backups: Vec<String>,
    /// What becomes of certain connections: conditions to=PREFIX, port=N, user=NAME, cgroup=PATH, then leave (not
    /// steered), or policy=POLICY and uplinks=NAME,NAME (repeatable; the first that fits counts)
    #[arg(long = "rule", value_name = "RULE")]
    pub rules: Vec<RuleOption>,
    /// Say what would be done, and exit
    #[arg(long)]
    pub check: bool,
    /// Log each decision as a line of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Log events of the kernel too
    #[arg(long)]
    pub verbose: bool,
    /// Directory for the journal that restores the setting after a crash [default: /run/anabranch, or
    /// $XDG_RUNTIME_DIR/anabranch]
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    #[command(flatten)]
    pub configuration: ConfigurationOption,
    #[command(flatten)]
    pub status: StatusOptions,
    #[command(flatten)]
    pub care: UplinkOptions,
}

/// A path manager of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Wanted {
    /// That of user space, while this runs: each connection is steered by itself
    Userspace,
    /// The kernel's own: only priorities change, for all connections with the same local address
    Kernel,
    /// Whichever it is
    AsIs,
}

fn interval(text: &str) -> Result<Duration, String> {
    let time: Duration = quantity::parse(text)?;
    let possible = Duration::from_millis(10)..=Duration::from_secs(10);
    if possible.contains(&time) { Ok(time) } else { Err("samples can be 10 ms to 10 s apart".to_owned()) }
}

impl SteerOptions {
    /// Checks that need neither privileges nor the network.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), Diagnostic> {
        self.status.check()?;
        let stranger = self.backups.iter().find(|name| !self.uplinks.is_empty() && !self.uplinks.contains(name));
        if let Some(name) = stranger {
            let message = format!("{name} is none of the uplinks that are named: add --uplink {name}");
            return Err(Diagnostic::option(&format!("--backup {name}"), message));
        }
        self.care.check(&self.uplinks, &self.backups)?;
        if self.care.looks_for_portals() {
            return Err(Diagnostic::option("--probe", "this sends nothing: portals are not looked for"));
        }
        path_manager(&self.policy).map_err(|message| self.wrong(message)).map(drop)
    }

    /// What steers.
    ///
    /// # Errors
    /// There is no path manager of a name that was said, or it has no such parameter; or a user of a rule is not there.
    pub fn classes(&self, settings: Settings) -> Result<Classes, Diagnostic> {
        let manager = path_manager(&self.policy).map_err(|message| self.wrong(message))?;
        let mut rules = Vec::new();
        for rule in &self.rules {
            rules.push(rule.build(&self.policy).map_err(|message| Diagnostic::option("--rule", message))?);
        }
        Ok(Classes::new(rules, manager, settings))
    }

    fn wrong(&self, message: String) -> Diagnostic {
        Diagnostic::option(&format!("--policy {}", self.policy), message)
    }

    /// The interfaces that were named, but for those with a role.
    pub fn interfaces(&self) -> impl Iterator<Item = &String> {
        self.uplinks.iter().chain(self.rules.iter().flat_map(RuleOption::uplinks))
    }

    /// The control groups of rules that are not there, each in a sentence.
    pub fn missing_groups(&self) -> Vec<String> {
        self.rules.iter().filter_map(RuleOption::missing).collect()
    }

    /// The policy, with the path manager if that was not said.
    pub fn policy(&self) -> String {
        completed(&self.policy)
    }

    /// Whether a policy opens subflows as backups.
    pub fn opens_backups(&self) -> bool {
        opens_backups(&self.policy) || self.rules.iter().any(RuleOption::opens_backups)
    }

    /// The path manager that new connections shall have; `None`: whichever it is.
    pub fn wanted(&self) -> Option<PathManagerChoice> {
        match self.path_manager {
            Wanted::Userspace => Some(PathManagerChoice::UserSpace),
            Wanted::Kernel => Some(PathManagerChoice::Kernel),
            Wanted::AsIs => None,
        }
    }
}
