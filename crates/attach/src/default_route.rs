//! Routes the host's default traffic into a TUN device, and tracks the host's interfaces.

use crate::barred::Barred;
use crate::follow;
use crate::lock::lock;
use crate::works::no_device;
use anabranch_host::{
    Afterwards, DefaultRoute, HostError, Plan, Route, Rule, Selector, Setup, Snapshot, Step, Target, Watch,
    leads_the_default_route, prospect, undo_what_stays,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Greatest prefix length of [`Restorations::rivals`]: VPNs have /1 of IPv4, and 2000::/3.
const WIDE: u8 = 3;

/// The host's default route through a device of ours. Call [`Self::end`] at the end: dropping it undoes everything,
/// including the kill switch.
pub struct LedRoute {
    works: Arc<Mutex<Works>>,
    device: String,
    follower: JoinHandle<()>,
    restorations: watch::Receiver<Restorations>,
}

/// What was done about other programs that remove our rules and routes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Restorations {
    /// Addresses, routes and rules that were set again since the beginning.
    pub steps: u64,
    /// Why something is missing; it is tried again each second.
    pub failure: Option<String>,
    /// Routes of the main table that take an eighth of all addresses or more, and come before ours: "0.0.0.0/1 by tun0".
    pub rivals: Vec<String>,
}

/// The state of the setup.
struct Works {
    setup: Setup,
    route: DefaultRoute,
    /// Our current rules that depend on the host's interfaces.
    exceptions: Vec<Rule>,
    /// The steps that lead new connections to the device; none any more once it is retired.
    leading: Vec<Step>,
    /// All others.
    others: Vec<Step>,
    restorations: watch::Sender<Restorations>,
}

/// The steps, for display; nothing is changed, and no privilege is needed. With `after`, an attachment to uplinks is
/// assumed to exist.
///
/// # Errors
/// [`HostError`], as for [`LedRoute::begin`].
pub fn plan_default_route(route: &DefaultRoute, root: Option<&Path>, after: bool) -> Result<Plan, HostError> {
    let mut found = prospect(root, route.needs_filter())?;
    if after {
        found = found.next()?;
    }
    route.plan(&found)
}

/// Removes the kill switch of a program that has ended. Returns whether there was any.
///
/// # Errors
/// [`HostError`], for example without the privilege.
pub fn end_kill_switch(root: Option<&Path>) -> Result<bool, HostError> {
    undo_what_stays(root)
}

impl LedRoute {
    /// Sets up the host, and tracks its interfaces in a task. `open` opens a TUN device by name. Everything belongs to
    /// the network namespace of the calling thread. Call this within a single-threaded runtime.
    ///
    /// # Errors
    /// [`HostError`]; all changes are then undone.
    pub fn begin(
        route: DefaultRoute,
        root: Option<&Path>,
        open: impl FnOnce(&str) -> io::Result<OwnedFd>,
    ) -> Result<(Self, OwnedFd), HostError> {
        let afterwards = if route.kill_switch { Afterwards::Stays } else { Afterwards::Undone };
        let (mut setup, directory, mut found) = Setup::begin_and(root, route.needs_filter(), afterwards)?;
        // On failure dropping `setup` undoes the recorded steps, and takes the directory's lock for that: ours must be
        // released first.
        let outcome = (|| {
            if directory.running().iter().any(leads_the_default_route) {
                return Err(HostError::AlreadyUp);
            }
            // Our own journal is empty so far.
            found.others = setup.others();
            let plan = route.plan(&found)?;
            let watch = Watch::with_rules().map_err(HostError::system("watch the network over rtnetlink"))?;
            let (mut open, mut descriptor) = (Some(open), None);
            for step in &plan.steps {
                if let Step::Device { name, .. } = step
                    && let Some(open) = open.take()
                {
                    descriptor = Some(open(name).map_err(|error| no_device(step, error))?);
                }
                setup.carry_out(step)?;
            }
            // The old kill switch is removed now that its replacement exists.
            setup.relieve(&directory)?;
            let descriptor = descriptor.ok_or(HostError::NoTun)?;
            Ok((route.exceptions(&found.snapshot), plan, watch, descriptor))
        })();
        drop(directory);
        let (exceptions, plan, watch, descriptor) = outcome?;
        let device = plan.layout.device(0);
        let is_exception = |step: &Step| matches!(step, Step::Rule(rule) if exceptions.contains(rule));
        let steps = plan.steps.into_iter().filter(|step| !is_exception(step));
        let (leading, others) = steps.partition(leads_the_default_route);
        let (told, restorations) = watch::channel(Restorations::default());
        let works = Works { setup, route, exceptions, leading, others, restorations: told };
        let works = Arc::new(Mutex::new(works));
        // The watch started before the last look, so that no change is missed.
        lock(&works).adjust()?;
        let followed = Arc::clone(&works);
        let barred = Barred::default().listen();
        let follower = tokio::spawn(async move {
            follow::follow(watch, barred, move || lock(&followed).keep()).await;
        });
        Ok((Self { works, device, follower, restorations }, descriptor))
    }

    pub fn device(&self) -> &str {
        &self.device
    }

    /// Changes when something was set again, or cannot be.
    pub fn restorations(&self) -> watch::Receiver<Restorations> {
        self.restorations.clone()
    }

    /// Sets the server's addresses.
    ///
    /// # Errors
    /// [`HostError`], if a rule cannot be set.
    pub fn set_servers(&self, servers: Vec<IpAddr>) -> Result<(), HostError> {
        let mut works = lock(&self.works);
        works.route.servers = servers;
        works.adjust()
    }

    /// New connections use the host's own routes; those from the device's address continue. With a kill switch nothing
    /// changes.
    ///
    /// # Errors
    /// [`HostError`], if a rule cannot be removed.
    pub fn retire(&self) -> Result<(), HostError> {
        lock(&self.works).retire()
    }

    /// Undoes all changes. With a kill switch they stay: once the device is closed, nothing leaves by default routes
    /// until [`end_kill_switch`] or the next start.
    ///
    /// # Errors
    /// [`HostError::Undo`] if a change could not be undone.
    pub fn end(self) -> Result<(), HostError> {
        self.follower.abort();
        let mut works = lock(&self.works);
        if works.route.kill_switch {
            works.setup.leave();
            return Ok(());
        }
        works.setup.undo()
    }
}

impl Drop for LedRoute {
    fn drop(&mut self) {
        self.follower.abort();
        // A destructor cannot report errors.
        let _ = lock(&self.works).setup.undo();
    }
}

/// Routes of other programs that are as good as default routes.
fn rivals(snapshot: &Snapshot) -> Vec<String> {
    let routes = snapshot.interfaces.iter().flat_map(|interface| &interface.routes);
    let wide = routes.filter(|route| (1..=WIDE).contains(&route.length));
    let name = |route: &Route| match &route.target {
        Target::Device { name, .. } => format!("{}/{} by {name}", route.destination, route.length),
        Target::Unreachable => format!("{}/{}", route.destination, route.length),
    };
    wide.map(name).collect()
}

impl Works {
    /// Updates the rules, and restores what other programs have removed: `systemd-networkd` removes others' rules and routes
    /// when it starts.
    fn keep(&mut self) -> Result<(), HostError> {
        let adjusted = self.adjust();
        // Exceptions come first, as at the beginning.
        let exceptions = self.exceptions.iter().cloned().map(Step::Rule).collect::<Vec<_>>();
        let restored = self.setup.restore(self.others.iter().chain(&exceptions).chain(&self.leading));
        let outcome = adjusted.and(restored.outcome);
        self.restorations.send_if_modified(|told| {
            let before = core::mem::replace(&mut told.failure, outcome.as_ref().err().map(ToString::to_string));
            told.steps += restored.steps;
            restored.steps > 0 || told.failure != before
        });
        outcome
    }

    /// Updates the rules for the current interfaces.
    fn adjust(&mut self) -> Result<(), HostError> {
        let snapshot = self.setup.look()?;
        let rivals = rivals(&snapshot);
        self.restorations.send_if_modified(|told| core::mem::replace(&mut told.rivals, rivals) != told.rivals);
        let mut wanted = self.route.exceptions(&snapshot);
        // A rule for a missing interface is harmless, and applies when it returns.
        let bound = self.exceptions.iter().filter(|rule| matches!(rule.selector, Selector::Output(_)));
        let bound: Vec<Rule> = bound.filter(|rule| !wanted.contains(rule)).cloned().collect();
        wanted.extend(bound);
        for rule in &wanted {
            if !self.exceptions.contains(rule) {
                self.setup.carry_out(&Step::Rule(rule.clone()))?;
                self.exceptions.push(rule.clone());
            }
        }
        while let Some(at) = self.exceptions.iter().position(|rule| !wanted.contains(rule)) {
            self.setup.remove(&Step::Rule(self.exceptions[at].clone()))?;
            self.exceptions.remove(at);
        }
        Ok(())
    }

    fn retire(&mut self) -> Result<(), HostError> {
        if self.route.kill_switch {
            return Ok(());
        }
        let leading = core::mem::take(&mut self.leading);
        leading.iter().try_for_each(|step| self.setup.remove(step))
    }
}
