//! What the kernel of this host has, and what is changed of it.

use super::options::SteerOptions;
use anabranch_host::{HostError, Setup, Step};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_steer::{Mptcp, PathManagerChoice, PathManagerSetting};
use anabranch_steering::settings::Control;
use anabranch_system::Capability;

/// The choice of a path manager for new connections.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The setting as it is; `None`: this kernel has only its own path manager.
    setting: Option<PathManagerSetting>,
    wanted: Option<PathManagerChoice>,
}

impl Ground {
    /// Looks at the host.
    ///
    /// # Errors
    /// It has no MPTCP, or we may not see it.
    pub fn look(options: &SteerOptions) -> Result<Self, Diagnostic> {
        match Mptcp::read() {
            Mptcp::Missing => {
                return Err(Diagnostic::plain(
                    "this kernel has no MPTCP: it needs Linux 5.15 or later, built with CONFIG_MPTCP",
                ));
            }
            Mptcp::Disabled => {
                return Err(Diagnostic::plain(
                    "MPTCP is off in this network namespace: switch it on with `sysctl -w net.mptcp.enabled=1`",
                ));
            }
            Mptcp::Enabled => {}
        }
        if !Capability::NET_ADMIN.is_held() {
            let message = "this needs CAP_NET_ADMIN to see and change connections of others: run it as root";
            return Err(Diagnostic::plain(message));
        }
        Ok(Self { setting: PathManagerSetting::read(), wanted: options.wanted() })
    }

    /// Who manages the paths of new connections at present.
    fn present(&self) -> PathManagerChoice {
        self.setting.as_ref().map_or(PathManagerChoice::Kernel, PathManagerSetting::choice)
    }

    /// Who will.
    pub fn future(&self) -> PathManagerChoice {
        match &self.setting {
            Some(_) => self.wanted.clone().unwrap_or_else(|| self.present()),
            None => PathManagerChoice::Kernel,
        }
    }

    pub fn control(&self) -> Control {
        match self.future() {
            PathManagerChoice::UserSpace => Control::Subflows,
            PathManagerChoice::Kernel | PathManagerChoice::Other(_) => Control::Priorities,
        }
    }

    /// The change that is needed, if one is.
    fn step(&self) -> Option<Step> {
        let setting = self.setting.as_ref()?;
        let wanted = self.wanted.as_ref().filter(|wanted| **wanted != self.present())?;
        Some(Step::Setting {
            key: setting.key.to_owned(),
            value: setting.value_of(wanted),
            before: Some(setting.value.clone()),
            unless: None,
        })
    }

    /// Makes the change, and undoes what a killed run left. The setting is restored when the result is dropped.
    ///
    /// # Errors
    /// An error of the host.
    pub fn prepare(mut self, options: &SteerOptions) -> Result<(Self, Setup), Diagnostic> {
        let wrong = |error: HostError| Diagnostic::plain(error.to_string());
        let (mut setup, directory, _) = Setup::begin(options.journal.as_deref(), false).map_err(wrong)?;
        // A killed run's setting is restored by now.
        self.setting = PathManagerSetting::read();
        if let Some(step) = self.step() {
            setup.carry_out(&step).map_err(wrong)?;
        }
        drop(directory);
        Ok((self, setup))
    }

    /// The path manager that another program has chosen since [`Self::prepare`], and the step that changes it back.
    pub fn changed(&self) -> Option<(PathManagerChoice, Step)> {
        let now = Self { setting: PathManagerSetting::read(), wanted: self.wanted.clone() };
        Some((now.present(), now.step()?))
    }

    /// What it means, in sentences.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let was = match self.step() {
            Some(_) => format!(", which were the {} path manager's; that is restored at the end", self.present()),
            None => String::new(),
        };
        match self.future() {
            PathManagerChoice::UserSpace => {
                lines.push(format!("new connections are steered one by one (path manager userspace){was}"));
            }
            other => {
                lines.push(format!("new connections are those of the path manager {other}{was}"));
                lines.push(
                    "they are steered by the flags of their endpoints (`ip mptcp endpoint`): a demotion counts for all \
                     connections of this network namespace with the same local address, and subflows are opened by the kernel alone"
                        .to_owned(),
                );
            }
        }
        lines.push(
            "connections that began under the kernel's path manager stay there and are demoted by endpoints alone"
                .to_owned(),
        );
        if self.setting.is_none() && self.wanted == Some(PathManagerChoice::UserSpace) {
            lines.push("this kernel has no path manager in user space: that came with Linux 5.19".to_owned());
        }
        lines
    }
}
