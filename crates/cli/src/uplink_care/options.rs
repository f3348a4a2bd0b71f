//! Options of roles, quotas and portal checks of uplinks.

use super::portal::Page;
use super::quota::Quota;
use crate::diagnostic::Diagnostic;
use clap::Args;
use std::path::PathBuf;

/// Which uplinks cost, and how a portal is found.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Uplinks")]
pub struct UplinkOptions {
    /// This uplink costs: it is used only while no other works, or, with --quota, until that is used up (repeatable)
    #[arg(long, value_name = "INTERFACE")]
    pub(super) metered: Vec<String>,
    /// What may pass a metered uplink, both ways, before it is a backup: SIZE/day or SIZE/month, e.g. wwan0=5GB/month (repeatable)
    #[arg(long = "quota", value_name = "INTERFACE=SIZE/PERIOD", value_parser = quota)]
    pub(super) quotas: Vec<Quota>,
    /// Ask for this page over each uplink, as in http://HOST/PATH or http://HOST:PORT/PATH: if it is not what answers, a portal is in the way, and the uplink is
    /// not used until that is gone
    #[arg(long, value_name = "URL", value_parser = page)]
    pub(super) probe: Option<Page>,
    /// What the page of --probe begins with [default: nothing, and its status is 204]
    #[arg(long, value_name = "TEXT", requires = "probe")]
    pub(super) probe_answer: Option<String>,
    /// Directory where it is written down what was used of quotas [default: $STATE_DIRECTORY, /var/lib/anabranch, or for other
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

    pub(super) fn quota(&self, name: &str) -> Option<&Quota> {
        self.quotas.iter().find(|quota| quota.interface == name)
    }
}
