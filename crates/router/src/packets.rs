//! Packets between the routers and the network.

use super::complaints::drops;
use super::daemon::RouteDaemon;
use super::ports::Port;
use super::socket::{ALL_SPF_ROUTERS, OspfSocket};
use super::transport::{Refusal, Transport};
use anabranch_policy::time::Instant;
use anabranch_routing::counters::{Counters, DropReason};
use anabranch_routing::{Destination, Event, NeighborState, Outgoing, Reception, Restart};
use anabranch_wire::ospf::{Packet, RouterId};
use std::io;
use std::net::SocketAddrV6;

/// Packets read before timers are handled.
const BATCH: usize = 64;

/// Bytes of an IPv6 header.
const IPV6_HEADER: u64 = 40;

/// Time until the last packets are repeated, and how long this host forwards after that.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(100);
const LINGER: std::time::Duration = std::time::Duration::from_millis(300);

impl RouteDaemon {
    /// Tells the neighbours that this router ends, twice since packets may be lost. It forwards until they have other routes.
    pub(super) async fn leave(&mut self) {
        let now = self.clock.now();
        let mut last = Vec::new();
        let mut is_alone = true;
        for instance in &mut self.instances {
            is_alone &= instance.router.neighbors(now).all(|neighbor| neighbor.state < NeighborState::TwoWay);
            instance.router.leave(now);
            last.extend(std::iter::from_fn(|| instance.router.poll_transmit()));
        }
        for pause in [AGAIN, LINGER] {
            for outgoing in &last {
                // A packet that is lost costs the neighbours RouterDeadInterval, as without it.
                let _ = send(&self.socket, &mut self.transport, &self.ports, outgoing);
            }
            if is_alone {
                return;
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends a router's packets, and handles its events.
    pub(super) fn drain(&mut self, place: usize) {
        let Some(instance) = self.instances.get_mut(place) else { return };
        while let Some(outgoing) = instance.router.poll_transmit() {
            let outcome = send(&self.socket, &mut self.transport, &self.ports, &outgoing);
            match outcome {
                Some(bytes) => {
                    self.counters.sent.0 += 1;
                    self.counters.sent.1 += bytes;
                }
                None => self.counters.not_sent += 1,
            }
        }
        while let Some(event) = instance.router.poll_event() {
            match event {
                Event::Routes => self.apply_at = Instant::ZERO,
                Event::Unfinished { interface, neighbor, address, other_mtu } => {
                    let name = self.ports.iter().find(|port| port.id == interface).map_or("-", |port| &port.name);
                    let news = self.complaints.unfinished(neighbor, name, address, other_mtu);
                    if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
                        tell(&news);
                    }
                }
                Event::Neighbor { interface, neighbor, from, to } => {
                    self.bfd.iter_mut().for_each(|bfd| bfd.unsettled = true);
                    if from >= NeighborState::TwoWay && to < NeighborState::TwoWay {
                        self.counters.lost.0 += 1;
                        let name = self.ports.iter().find(|port| port.id == interface).map_or("-", |port| &port.name);
                        let news = self.complaints.lost(neighbor, name);
                        if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
                            tell(&news);
                        }
                    }
                }
                Event::Restart { interface, neighbor, restart } => {
                    let name = self.ports.iter().find(|port| port.id == interface).map_or("-", |port| &port.name);
                    let news = self.complaints.restart(restarted(neighbor, name, restart));
                    if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
                        tell(&news);
                    }
                }
                Event::Level { .. } => {}
            }
        }
    }

    /// Gives the packets that have arrived to the routers.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let now = self.clock.now();
            let Some(received) = self.socket.receive()? else { return Ok(()) };
            let mesh = self.ports.iter().find(|port| port.index == Some(received.interface) && port.is_mesh());
            // Other programs on this host may listen to OSPF on other interfaces.
            let Some(port) = mesh else { continue };
            self.counters.received.0 += 1;
            self.counters.received.1 += IPV6_HEADER + received.bytes.len() as u64;
            let number = received.bytes.get(14).copied().unwrap_or_default();
            let Some(place) = self.instances.iter().position(|instance| instance.number == number) else {
                self.counters.other_instances += 1;
                let news = self.complaints.of_another_instance(number, &port.name, received.source);
                if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
                    tell(&news);
                }
                continue;
            };
            let radio = self.radio.as_ref();
            let how = Reception {
                source: received.source,
                multicast: received.destination.is_multicast(),
                signal: radio.and_then(|radio| radio.signal(now, port.id, received.source)),
            };
            let Self { counters, complaints, .. } = self;
            let mut refuse = |refusal: Refusal, count: u64| {
                *counters.refused.entry(refusal).or_default() += count;
                complaints.refused(refusal, &port.name, how.source)
            };
            let news = match self.transport.decode(&received) {
                Ok(decoded) => {
                    let damaged = [
                        (Refusal::Signalling, u64::from(decoded.dropped_lls.is_some())),
                        (Refusal::Advertisement, decoded.dropped_lsas.len() as u64),
                    ];
                    let damaged = damaged.into_iter().filter(|(_, count)| *count > 0);
                    let news = damaged.filter_map(|(refusal, count)| refuse(refusal, count)).last();
                    let port = port.clone();
                    self.hand_over(now, place, &port, &how, &decoded.packet).or(news)
                }
                Err(refusal) => refuse(refusal, 1),
            };
            if let Some((news, tell)) = news.zip(self.tell.as_mut()) {
                tell(&news);
            }
        }
        Ok(())
    }

    /// Gives a packet to a router. Returns the report on what it dropped, if it is new.
    fn hand_over(
        &mut self,
        now: Instant,
        place: usize,
        port: &Port,
        how: &Reception,
        packet: &Packet,
    ) -> Option<String> {
        let instance = self.instances.get_mut(place)?;
        let of = |counters: &Counters| {
            (drops(counters), counters.dropped(DropReason::DuplicateRouterId), counters.router_lsas_of_another)
        };
        let before = of(instance.router.counters());
        instance.router.handle_packet(now, port.id, how, packet);
        let after = of(instance.router.counters());
        let own = self.ports.iter().find(|own| own.source == Some(how.source));
        let news = match own {
            // A host with two interfaces in one network hears itself.
            Some(own) if after.1 > before.1 => self.complaints.own(&port.name, &own.name),
            _ => self.complaints.dropped(&before.0, &after.0, &port.name, how.source),
        };
        if after.1 > before.1 && own.is_none() {
            self.identity.hear(now, port.source, how.source);
        }
        if after.2 > before.2 {
            self.identity.lose(now, self.config.manet.rxmt_interval);
        }
        self.drain(place);
        news
    }
}

/// A sentence about a neighbour that restarts.
fn restarted(neighbor: RouterId, interface: &str, restart: Restart) -> String {
    let neighbor = std::net::Ipv4Addr::from_bits(neighbor.0);
    let what = match restart {
        Restart::Begun(grace) => format!("restarts and stays a neighbour for {} s", grace.as_secs_f64()),
        Restart::Refused => "restarts and cannot be helped, since it does not know the network as it is".to_owned(),
        Restart::Over => "has restarted".to_owned(),
        Restart::Expired => "has not restarted in time".to_owned(),
        Restart::Changed => "restarts while the network changes, and is helped no longer".to_owned(),
    };
    format!("the neighbour {neighbor} on {interface} {what}")
}

/// Sends a packet. Returns its IP bytes, or `None` if it could not be sent.
fn send(socket: &OspfSocket, transport: &mut Transport, ports: &[Port], outgoing: &Outgoing) -> Option<u64> {
    let port = ports.iter().find(|port| port.id == outgoing.interface)?;
    let (index, source) = (port.index?, port.source?);
    let destination = match outgoing.destination {
        Destination::AllSpfRouters => ALL_SPF_ROUTERS,
        Destination::Neighbor(_, address) => address,
    };
    let bytes = transport.encode(source, destination, &outgoing.packet)?;
    let to = SocketAddrV6::new(destination, 0, 0, index);
    socket.send(source, to, outgoing.packet.body.is_urgent(), bytes).ok()?;
    Some(IPV6_HEADER + bytes.len() as u64)
}
