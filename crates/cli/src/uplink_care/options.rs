//! Options of roles, quotas and portal checks of uplinks.

use super::portal::Page;
use super::quota::Quota;
use anabranch_settings::diagnostic::Diagnostic;
use clap::Args;
use std::path::PathBuf;

/// Which uplinks cost, and how a portal is found.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Uplinks")]
pub struct UplinkOptions {
    /// Metered uplink: used only while no other works, or with --quota until the quota is exhausted (repeatable)
    #[arg(long, value_name = "INTERFACE")]
    pub(super) metered: Vec<String>,
    /// Quota of a metered uplink, both directions, after which it is a backup: SIZE/day or SIZE/month, e.g.
    /// wwan0=5GB/month (repeatable)
    #[arg(long = "quota", value_name = "INTERFACE=SIZE/PERIOD", value_parser = quota)]
    pub(super) quotas: Vec<Quota>,
    /// Captive-portal check: fetch http://HOST/PATH or http://HOST:PORT/PATH over each uplink, and do not use the
    /// uplink while the answer is a different one
    #[arg(long, value_name = "URL", value_parser = page)]
    pub(super) probe: Option<Page>,
    /// Expected start of the --probe page [default: empty, with status 204]
    #[arg(long, value_name = "TEXT", requires = "probe")]
    pub(super) probe_answer: Option<String>,
    /// Directory for the used part of quotas [default: $STATE_DIRECTORY, /var/lib/anabranch, or for other
    /// users $XDG_STATE_HOME/anabranch]
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,
}

fn quota(text: &str) -> Result<Quota, String> {
    text.parse()
}

fn page(text: &str) -> Result<Page, String> {
    text.parse()
}

impl UplinkOptions {
    /// Whether portals are looked for.
    pub fn looks_for_portals(&self) -> bool {
        self.probe.is_some()
    }

    /// Checks the options against each other and against the given uplinks and backups.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self, uplinks: &[String], backups: &[String]) -> Result<(), Diagnostic> {
        for name in &self.metered {
            let option = format!("--metered {name}");
            if !uplinks.is_empty() && !uplinks.contains(name) {
                let message = format!("{name} is none of the uplinks that are named: add --uplink {name}");
                return Err(Diagnostic::option(&option, message));
            }
            if backups.contains(name) {
                return Err(Diagnostic::option(
                    &option,
                    format!("{name} is a backup: it is used even less; choose one"),
                ));
            }
        }
        for quota in &self.quotas {
            let name = &quota.interface;
            if !self.metered.contains(name) {
                let message = format!("{name} is not metered: add --metered {name}");
                return Err(Diagnostic::option(&format!("--quota {name}"), message));
            }
            if self.quotas.iter().filter(|other| other.interface == *name).count() > 1 {
                return Err(Diagnostic::option(
                    &format!("--quota {name}"),
                    format!("{name} has two quotas; choose one"),
                ));
            }
        }
        Ok(())
    }

    /// The interfaces that are metered.
    pub fn metered(&self) -> &[String] {
        &self.metered
    }

    pub(super) fn quota(&self, name: &str) -> Option<&Quota> {
        self.quotas.iter().find(|quota| quota.interface == name)
    }
}
