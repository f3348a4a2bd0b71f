//! Another configuration while the router runs. An interface whose settings stay keeps its neighbours and routes.

use super::RouteError;
use super::bfd::Bfd;
use super::config::{ConfigRead, NewConfig, RouteConfig};
use super::daemon::{RouteDaemon, detector, look};
use super::gateway::Gateway;
use super::ground::Ground;
use super::ports::{Port, Role, ports};

impl RouteDaemon {
    /// Takes another configuration, or tells why not and goes on with its own.
    pub(super) fn reconfigure(&mut self, read: ConfigRead) -> Result<(), RouteError> {
        let said = match read {
            Ok(new) => self.consider(new)?,
            Err(fault) => self.refuse(&fault),
        };
        if let Some(tell) = &mut self.tell {
            tell(&said);
        }
        self.tell_of_the_mute();
        Ok(())
    }

    /// Takes a configuration if it can. Returns what to tell.
    fn consider(&mut self, new: NewConfig) -> Result<String, RouteError> {
        let NewConfig { config, mut left } = new;
        // The file may have the same name as before, and another key in it.
        if config.authentication != self.config.authentication && !left.iter().any(|key| key == "key") {
            left.push("key".to_owned());
        }
        let ground = look(&mut self.netlink)?;
        let ports = ports(&config, &ground, &self.ports);
        let checked = config
            .check(&ground)
            .and_then(|()| self.instances.iter().try_for_each(|instance| instance.check(&config, &ports, &ground)));
        match checked {
            Ok(()) => {
                self.counters.configurations.0 += 1;
                self.take(config, ports, ground)?;
                let rest = if left.is_empty() {
                    String::new()
                } else {
                    format!("; a restart is needed for {}", left.join(", "))
                };
                Ok(format!("the configuration was read again{rest}"))
            }
            Err(error) => Ok(self.refuse(&error.to_string())),
        }
    }

    fn refuse(&mut self, fault: &str) -> String {
        self.counters.configurations.1 += 1;
        format!("the configuration stays as it was: {fault}")
    }

    /// Gives back the kernel's settings on interfaces that the router has no use for any more. What cannot be set is told.
    fn give_back(&mut self) {
        let Some(setup) = &mut self.setup else { return };
        for port in self.ports.iter().filter(|port| port.role == Role::Gone) {
            if let (Err(error), Some(tell)) = (setup.give_back(&port.name), &mut self.tell) {
                tell(&error.to_string());
            }
        }
    }

    fn take(&mut self, new: RouteConfig, ports: Vec<Port>, ground: Ground) -> Result<(), RouteError> {
        let now = self.clock.now();
        self.forget_radios();
        let (bfd, gateway) = (self.config.bfd != new.bfd, self.config.gateway != new.gateway);
        let RouteConfig { interfaces, lanes, lane_settings, passive, networks, manet, point_to_point, .. } = new;
        self.config = RouteConfig {
            interfaces,
            lanes,
            lane_settings,
            passive,
            networks,
            manet,
            point_to_point,
            bfd: new.bfd,
            gateway: new.gateway,
            ..self.config.clone()
        };
        for port in self.ports.iter().filter(|port| port.is_mesh()) {
            let stays = ports.iter().any(|one| one.id == port.id && one.is_mesh());
            if let Some(index) = port.index.filter(|_| !stays) {
                self.socket.leave(index);
            }
        }
        self.ports = ports;
        self.give_back();
        if bfd {
            if let Some(old) = self.bfd.take() {
                old.leave(&self.ports);
            }
            self.bfd = self.config.bfd.map(detector).transpose()?;
            self.bfd.iter_mut().for_each(|bfd: &mut Bfd| bfd.unsettled = true);
        }
        if gateway {
            self.gateway = self.config.gateway.map(Gateway::new).transpose()?;
        }
        for instance in &mut self.instances {
            instance.reconfigure(now, &self.config);
        }
        self.adjust(ground)
    }
}
