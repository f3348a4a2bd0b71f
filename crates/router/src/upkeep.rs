//! Keeps the kernel's routes, rules and settings as the routers want them, whatever other programs do.

use super::RouteError;
use super::daemon::RouteDaemon;
use super::gateway::uplink;
use super::ground::{Device, Ground, Network};
use super::kernel::{MAIN_TABLE, Table};
use super::ports::{Port, Role};
use super::settings;
use anabranch_host::{Step, read_setting};
use anabranch_policy::time::{Duration, Instant};
use std::collections::BTreeSet;

/// Delay before a retry of changes that the kernel refused.
const RETRY: Duration = Duration::from_secs(1);

/// Delay of a look at the kernel's tables after another program changed them, so that a burst of changes needs one.
const CALM: Duration = Duration::from_millis(200);

/// Delay of a look at the default routes after a change. A daemon that renews one removes it for a moment.
const BRIEF: Duration = Duration::from_millis(50);

/// Least time between two reports of such changes.
const QUIET: Duration = Duration::from_secs(10);

impl RouteDaemon {
    /// Another program has changed routes, rules or settings.
    pub(super) fn rerouted(&mut self) {
        self.repair.due = self.repair.due.min(self.clock.now() + CALM);
    }

    /// Sets routes and rules again that another program has removed or changed.
    pub(super) fn repair(&mut self, now: Instant) -> Result<(), RouteError> {
        self.repair.due = Instant::NEVER;
        let failed = || RouteError::system("read the routing tables");
        let rules = self.kernel.repair_rules().map_err(failed())?;
        let lost = self.kernel.refresh().map_err(failed())?;
        let routes = if lost.is_empty() { 0 } else { self.apply(now, &lost) };
        // Those of an interface that has just come back are set by the look at it that is due.
        let settings = if self.changed { Vec::new() } else { self.restore_settings() };
        if self.changed {
            self.rerouted();
        }
        self.counters.kernel.restored += rules;
        self.counters.settings_restored += settings.len() as u64;
        if (rules + routes > 0 || !settings.is_empty()) && now >= self.repair.tell_from {
            self.repair.tell_from = now + QUIET;
            let table = self.config.table;
            if let Some(tell) = self.tell.as_mut().filter(|_| rules + routes > 0) {
                tell(&format!(
                    "another program removed or changed {routes} routes and {rules} rules of table {table}: they are set again"
                ));
            }
            if let Some(tell) = self.tell.as_mut().filter(|_| !settings.is_empty()) {
                tell(&format!("another program changed {}: they are set again", settings.join(", ")));
            }
        }
        Ok(())
    }

    /// Sets the kernel's settings again that are not as a router needs them: those of an interface that has come back, and
    /// those that another program has changed. Returns which. What cannot be set is told once and tried again.
    pub(super) fn restore_settings(&mut self) -> Vec<String> {
        let Some(setup) = &mut self.setup else { return Vec::new() };
        let used = |port: &&Port| port.index.is_some() && !matches!(port.role, Role::Loopback | Role::Gone);
        let mut steps = settings::steps(self.ports.iter().filter(used).map(|port| &*port.name), &self.config.families);
        for (family, uplink) in self.gateway.iter().flat_map(|gateway| &gateway.uplinks) {
            steps.extend(uplink.iter().flat_map(|name| settings::uplink_steps(name, &[*family])));
        }
        let (mut restored, mut refused) = (Vec::new(), BTreeSet::new());
        for step in steps {
            let Step::Setting { key, .. } = &step else { continue };
            match setup.carry_out(&step) {
                Ok(()) => restored.push(key.replace('/', ".")),
                // The interface has disappeared since: its notification triggers another look.
                Err(_) if read_setting(key).is_none() => {}
                Err(error) => {
                    refused.insert(key.clone());
                    if let Some(tell) = self.tell.as_mut().filter(|_| !self.repair.refused.contains(key)) {
                        tell(&format!("a setting of the kernel cannot be set, which is tried again: {error}"));
                    }
                }
            }
        }
        if !refused.is_empty() {
            self.repair.due = self.repair.due.min(self.clock.now() + RETRY);
        }
        self.repair.refused = refused;
        restored
    }

    /// Counts and tells what has changed at the interfaces of the mesh.
    pub(super) fn note_changes(&mut self, ground: &Ground) {
        let mut news = Vec::new();
        for port in self.ports.iter().filter(|port| port.is_mesh()) {
            let device = port.device(ground);
            if port.source.is_some() && device.and_then(Device::speaks).is_none() {
                self.counters.lost.1 += 1;
                news.extend(self.complaints.down(&port.name));
            }
            let before = self.ground.devices.get(&port.name).map(|device| device.mtu);
            if let Some((before, device)) = before.zip(device).filter(|(before, device)| *before != device.mtu) {
                self.counters.mtu_changes += 1;
                news.push(format!("the MTU of {} is {} instead of {before} from now on", port.name, device.mtu));
            }
        }
        if let Some(tell) = &mut self.tell {
            news.iter().for_each(|news| tell(news));
        }
    }

    /// Tells of interfaces of the mesh that cannot send and never could: of those that could, their loss is told.
    pub(super) fn tell_of_the_mute(&mut self) {
        let Self { ports, complaints, tell: Some(tell), .. } = self else { return };
        for port in ports.iter().filter(|port| port.is_mesh() && port.source.is_none()) {
            if let Some(news) = complaints.down(&port.name) {
                tell(&news);
            }
        }
    }

    /// A default route of the host has changed.
    pub(super) fn uplinks_changed(&mut self) {
        if let Some(gateway) = &mut self.gateway {
            gateway.due = gateway.due.min(self.clock.now() + BRIEF);
        }
    }

    /// Tells the mesh of the host's own default routes, or withdraws them.
    pub(super) fn look_for_uplinks(&mut self, now: Instant) -> Result<(), RouteError> {
        let Some(gateway) = self.gateway.as_mut().filter(|gateway| gateway.due <= now) else { return Ok(()) };
        gateway.due = Instant::NEVER;
        let mut is_new = false;
        for instance in &mut self.instances {
            let family = instance.family;
            let found = uplink(&mut self.netlink, family, &self.ground, &self.ports);
            let found = found.map_err(RouteError::system("read the default routes"))?;
            is_new |= gateway.note(family, found);
            if let Some((news, tell)) = gateway.news(now, family).zip(self.tell.as_mut()) {
                tell(&news);
            }
            instance.router.set_default_route(now, gateway.metric(family));
        }
        if is_new {
            self.restore_settings();
        }
        (0..self.instances.len()).for_each(|place| self.drain(place));
        Ok(())
    }

    /// Updates the kernel's table. Returns how many of the routes that were `lost` it has again.
    pub(super) fn apply(&mut self, now: Instant, lost: &BTreeSet<Network>) -> u64 {
        let mut wanted = Table::new();
        self.instances
            .iter()
            .for_each(|instance| instance.add_to(&mut wanted, &self.config.lane_settings, &self.ports, &self.ground));
        if self.config.table == MAIN_TABLE {
            // The links' own networks are there, and more specific.
            wanted.retain(|_, ways| !ways.is_empty());
        }
        let applied = self.kernel.apply(&wanted, lost);
        self.apply_at = if applied.refused > 0 { now + RETRY } else { Instant::NEVER };
        self.counters.kernel.set += applied.set;
        self.counters.kernel.removed += applied.removed;
        self.counters.kernel.refused += applied.refused;
        self.counters.kernel.restored += applied.restored;
        applied.restored
    }
}
