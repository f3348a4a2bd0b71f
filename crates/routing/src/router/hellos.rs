//! Sends and receives Hellos (RFC 5614, 4; RFC 2328, 9.5 and 10.5).

use anabranch_policy::Instant;
use anabranch_wire::ospf::{Body, Hello, LinkStateId, Lls, LsaKey, LsaType};

use crate::counters::DropReason;
use crate::database::Place;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::hello::reading::{CheckedHello, ManetHello, Reader, check};
use crate::hello::writing::next_hello;
use crate::interface::{Interface, InterfaceTimer};
use crate::neighbor::manet::Said;
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::router::Router;
use crate::verbs::{Destination, Event, Reception};

impl Router {
    /// Sends the Hello that is due on an interface, and schedules the next.
    pub(super) fn send_hello(&mut self, now: Instant, handle: InterfaceHandle) {
        self.refresh(now, handle);
        let interface = &mut self.interfaces[handle];
        if self.forecasts.update_suspects_announced(interface) {
            self.output.tell(Event::Routes);
        }
        let (interval, jitter) = (interface.config.hello_interval, interface.config.hello_jitter);
        interface.hello.send(now, interval, jitter, self.random.unit());
        interface.timers.set(InterfaceTimer::Hello, interface.hello.at());
        let (hello, lls) = next_hello(interface, self.config.router_id, self.config.options());
        self.output.send(interface.config.id, Destination::AllSpfRouters, Body::Hello(hello), lls);
    }

    pub(super) fn receive_hello(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        how: &Reception,
        hello: &Hello,
        lls: Option<&Lls>,
    ) -> Result<(), DropReason> {
        let checked = check(hello, lls, &self.interfaces[at.interface].config, self.config.is_ipv4())?;
        self.check_address(now, at, how)?;
        if self.interfaces[at.interface].barred.contains(at.router, now) {
            return Err(DropReason::Unfinished);
        }
        self.find_or_add(now, at, how)?;
        let sequence = match &checked {
            CheckedHello::Manet(hello) => Some(hello.sequence()),
            CheckedHello::Other(_) => None,
        };
        self.interfaces[at.interface].hear_hello(now, at.router, how.signal, sequence);
        if self.interfaces[at.interface].update_link_cost(at.router) && self.interfaces[at].is_bidirectional() {
            self.calculation.schedule(now);
            self.check_router_lsa(now);
        }
        let neighbor = &mut self.interfaces[at];
        neighbor.address = how.source;
        let moved = neighbor.interface != hello.interface && neighbor.is_bidirectional();
        neighbor.interface = hello.interface;
        if moved {
            self.calculation.schedule(now);
        }
        match checked {
            CheckedHello::Manet(hello) => {
                self.receive_manet_hello(now, at, how, &hello)?;
                self.check_attempt(now, at);
                Ok(())
            }
            CheckedHello::Other(hello) => {
                self.interfaces[at].priority = hello.priority;
                self.neighbor_event(now, at, NeighborEvent::HelloReceived { accepted: true });
                let heard = hello.neighbors.contains(&self.config.router_id);
                let heard = heard || self.interfaces[at].grace.is_some();
                let event = if heard { NeighborEvent::TwoWayReceived } else { NeighborEvent::OneWayReceived };
                self.neighbor_event(now, at, event);
                Ok(())
            }
        }
    }

    /// A neighbour that is still heard from another address has the same Router ID as this one, unless it changed its
    /// address. RFC 5340 does not say what to do. The first one stays, since an exchange with both in turn would never
    /// end. The other one is told by the first one's Router-LSA.
    fn check_address(&mut self, now: Instant, at: NeighborHandle, how: &Reception) -> Result<(), DropReason> {
        let interface = &self.interfaces[at.interface];
        let Some(neighbor) = interface.neighbors.get(&at.router) else { return Ok(()) };
        let is_heard = now.since(neighbor.manet.heard) < interface.config.hello_interval * 2;
        if neighbor.address == how.source || neighbor.state == NeighborState::Down || !is_heard {
            return Ok(());
        }
        let key = LsaKey { kind: LsaType::ROUTER, advertising: at.router, id: LinkStateId(0) };
        let place = Place { link: None, key };
        if self.database.get(place).is_some() {
            self.send_update(now, at.interface, Destination::Neighbor(at.router, how.source), &[place]);
        }
        Err(DropReason::DuplicateNeighbor)
    }

    /// Abandons an adjacency whose exchange makes no progress: the neighbour must not stay in the election.
    fn check_attempt(&mut self, now: Instant, at: NeighborHandle) {
        let interface = &mut self.interfaces[at.interface];
        let (id, dead_interval) = (interface.config.id, interface.config.router_dead_interval);
        let Some(neighbor) = interface.neighbors.get(&at.router) else { return };
        let finishing = interface.manet().is_some_and(|manet| manet.acceptance.finishing);
        if !finishing || !neighbor.attempt.has_failed(now, dead_interval) {
            return;
        }
        let (address, other_mtu) = (neighbor.address, neighbor.attempt.other_mtu);
        interface.barred.add(now, at.router, dead_interval, self.config.limits.neighbors);
        self.output.counters.exchanges_failed += 1;
        self.output.tell(Event::Unfinished { interface: id, neighbor: at.router, address, other_mtu });
        self.neighbor_event(now, at, NeighborEvent::KillNbr);
    }

    /// Adds a neighbour unless it is known.
    fn find_or_add(&mut self, now: Instant, at: NeighborHandle, how: &Reception) -> Result<(), DropReason> {
        let interface = &mut self.interfaces[at.interface];
        if interface.neighbors.contains_key(&at.router) {
            return Ok(());
        }
        if interface.neighbors.len() >= self.config.limits.neighbors {
            return Err(DropReason::NeighborLimit);
        }
        let forecaster = self.forecasts.forecaster(interface.config.id, at.router);
        interface.add_neighbor(now, at.router, how.source, forecaster);
        Ok(())
    }

    /// A neighbour that is heard, or known to hear this router, since its last Hello, and does not know yet that it is heard,
    /// is told so soon. One to which a path leads already can wait for the next regular Hello: where many move, somebody is new
    /// all the time. One that began anew is told in any case, and needs a full Hello: paths seem to lead to it by what was told before.
    fn answer_newcomer(&mut self, now: Instant, at: NeighborHandle, before: NeighborState, anew: bool) {
        let neighbor = &self.interfaces[at];
        let is_told = neighbor.manet.said.sets.hears(self.config.router_id);
        let (is_nearer, is_new) = (neighbor.state > before, before == NeighborState::Down);
        let interface = &mut self.interfaces[at.interface];
        if is_new {
            interface.meet(now);
        }
        if anew || is_nearer && !is_told && !self.calculation.reaches(at.router) {
            interface.hasten_hello(now, self.random.unit());
        }
        interface.review_waiting();
    }

    /// A neighbour began anew before it was missed: it knows nothing of what was said before, and what it said is out of date.
    fn forget_conversation(&mut self, now: Instant, at: NeighborHandle) {
        self.neighbor_event(now, at, NeighborEvent::OneWayReceived);
        let interface = &mut self.interfaces[at.interface];
        interface.anew.insert(at.router);
        interface.neighbors.get_mut(&at.router).expect("its Hello is being read").manet.said = Said::default();
    }

    fn receive_manet_hello(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        how: &Reception,
        hello: &ManetHello<'_>,
    ) -> Result<(), DropReason> {
        let anew = self.interfaces[at].has_begun_anew(hello.sequence());
        if anew {
            self.forget_conversation(now, at);
        }
        let reader = Reader {
            now,
            own: self.config.router_id,
            signal: how.signal,
            forecast: self.forecasts.of(now, &self.interfaces[at]),
            most: self.config.limits.neighbors,
            reached: self.calculation.reaches(at.router),
        };
        let Interface { config, neighbors, .. } = &mut self.interfaces[at.interface];
        let neighbor = neighbors.get_mut(&at.router).expect("the sender of a Hello was added");
        let before = neighbor.state;
        let read = hello.read(&reader, config, at.router, neighbor)?;
        self.neighbor_event(now, at, NeighborEvent::HelloReceived { accepted: read.accepted });
        if read.hearing != NeighborEvent::OneWayReceived || self.interfaces[at].grace.is_none() {
            self.neighbor_event(now, at, read.hearing);
        }
        self.answer_newcomer(now, at, before, anew);
        let changes = read.changes;
        let two_way = read.hearing == NeighborEvent::TwoWayReceived;
        let interface = &mut self.interfaces[at.interface];
        interface.mdr_neighbor_change |= two_way && changes.election;
        interface.advertised_change |= two_way && changes.concern_selection();
        if changes.suspects && self.forecasts.uses_alternates() {
            self.output.tell(Event::Routes);
        }
        if two_way && changes.adjacency {
            self.adj_ok.insert(at);
        }
        if two_way && read.may_become_routable {
            self.update_routable(now, at.interface);
        }
        if two_way && changes.advertised {
            self.check_router_lsa(now);
        }
        Ok(())
    }
}
