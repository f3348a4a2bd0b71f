//! The host's default route, led into a TUN device, and what follows the host's interfaces of it.

use crate::barred::Barred;
use crate::follow;
use crate::lock::lock;
use crate::works::no_device;
use anabranch_host::{
    Afterwards, DefaultRoute, HostError, Plan, Rule, Selector, Setup, Step, Watch, leads_the_default_route, prospect,
    undo_what_stays,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// The host's default route, led into a device of ours. Ask it to [`Self::end`]; dropping it undoes everything, the kill switch too.
pub struct LedRoute {
    works: Arc<Mutex<Works>>,
    device: String,
    follower: JoinHandle<()>,
}

/// What is set up.
struct Works {
    setup: Setup,
    route: DefaultRoute,
    /// The rules of ours that follow the host, as they are.
    exceptions: Vec<Rule>,
    /// Those that stay the same.
    others: Vec<Step>,
}

/// All steps, for those who want to see them first; nothing is changed, and no right is needed. `after` says that an attachment to
/// uplinks will be there already.
///
/// # Errors
/// [`HostError`], as of [`LedRoute::begin`].
pub fn plan_default_route(route: &DefaultRoute, root: Option<&Path>, after: bool) -> Result<Plan, HostError> {
    let mut found = prospect(root, route.needs_filter())?;
    if after {
        found = found.next()?;
    }
    route.plan(&found)
}

/// Removes what a kill switch left whose program is no more. Returns whether there was any.
///
/// # Errors
/// [`HostError`], e.g. without the right to it.
pub fn end_kill_switch(root: Option<&Path>) -> Result<bool, HostError> {
    undo_what_stays(root)
}

impl LedRoute {
    /// Sets the host up, and follows its interfaces as a task. `open` opens a TUN device of a name. All belongs to the network
    /// namespace of the calling thread. To be called within a runtime with one thread.
    ///
    /// # Errors
    /// [`HostError`]; the host is as it was then.
    pub fn begin(
        route: DefaultRoute,
        root: Option<&Path>,
        open: impl FnOnce(&str) -> io::Result<OwnedFd>,
    ) -> Result<(Self, OwnedFd), HostError> {
        let afterwards = if route.kill_switch { Afterwards::Stays } else { Afterwards::Undone };
        let (mut setup, directory, mut found) = Setup::begin_and(root, route.needs_filter(), afterwards)?;
        // If something fails, what was noted is undone when `setup` goes, which must not wait for our own lock.
        let outcome = (|| {
            if directory.running().iter().any(leads_the_default_route) {
                return Err(HostError::AlreadyUp);
            }
            // Our own notes are none yet.
            found.others = setup.others();
            let plan = route.plan(&found)?;
            let watch = Watch::open().map_err(HostError::system("watch the network over rtnetlink"))?;
            let (mut open, mut descriptor) = (Some(open), None);
            for step in &plan.steps {
                if let Step::Device { name, .. } = step
                    && let Some(open) = open.take()
                {
                    descriptor = Some(open(name).map_err(|error| no_device(step, error))?);
                }
                setup.carry_out(step)?;
            }
            // What a kill switch left goes now that there is something in its place.
            setup.relieve(&directory)?;
            let descriptor = descriptor.ok_or(HostError::NoTun)?;
            Ok((route.exceptions(&found.snapshot), plan, watch, descriptor))
        })();
        drop(directory);
        let (exceptions, plan, watch, descriptor) = outcome?;
        let device = plan.layout.device(0);
        let is_exception = |step: &Step| matches!(step, Step::Rule(rule) if exceptions.contains(rule));
        let others = plan.steps.into_iter().filter(|step| !is_exception(step)).collect();
        let works = Arc::new(Mutex::new(Works { setup, route, exceptions, others }));
        // The watch began before the last look, so that nothing is missed.
        lock(&works).adjust()?;
        let followed = Arc::clone(&works);
        let follower = tokio::spawn(async move {
            follow::follow(watch, &Barred::default(), move || lock(&followed).adjust()).await;
        });
        Ok((Self { works, device, follower }, descriptor))
    }

    /// The device's name.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The server has these addresses from now on.
    ///
    /// # Errors
    /// [`HostError`], if a rule cannot be set.
    pub fn set_servers(&self, servers: Vec<IpAddr>) -> Result<(), HostError> {
        let mut works = lock(&self.works);
        works.route.servers = servers;
        works.adjust()
    }

    /// What begins from now on takes the host's own routes; what has an address of the device goes on. With a kill switch
    /// nothing changes.
    ///
    /// # Errors
    /// [`HostError`], if a rule cannot be removed.
    pub fn retire(&self) -> Result<(), HostError> {
        lock(&self.works).retire()
    }

    /// Undoes everything. With a kill switch it is left as it is; once the device is closed, nothing leaves by default routes until
    /// [`end_kill_switch`] or the next start.
    ///
    /// # Errors
    /// [`HostError::Undo`] if something could not be removed.
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
        // Nobody is left to be told.
        let _ = lock(&self.works).setup.undo();
    }
}

impl Works {
    /// Brings the rules in line with what the network looks like now.
    fn adjust(&mut self) -> Result<(), HostError> {
        let snapshot = self.setup.look()?;
        let mut wanted = self.route.exceptions(&snapshot);
        // A rule for an interface that is gone does no harm, and is there when it comes back.
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
        let leads = |step: &&Step| leads_the_default_route(step);
        self.others.iter().filter(leads).try_for_each(|step| self.setup.remove(step))
    }
}
