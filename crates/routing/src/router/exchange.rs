//! Handles Database Descriptions and Link State Requests (RFC 2328, 10.6 and 10.7; RFC 5614, 7.5).

use std::collections::BTreeSet;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lls::MdrDescription;
use anabranch_wire::ospf::{DatabaseDescription, LinkStateRequest, Lls, LsaKey};

use crate::counters::DropReason;
use crate::database::Place;
use crate::handles::{InterfaceHandle, NeighborHandle};
use crate::neighbor::exchange::{Negotiation, Role};
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::neighborhood::Level;
use crate::router::Router;
use crate::verbs::Destination;

impl Router {
    /// Handles an MDR-DD TLV (RFC 5614, 7.5).
    fn read_roles(&mut self, at: NeighborHandle, roles: &MdrDescription) {
        if self.interfaces[at.interface].manet().is_none() {
            return;
        }
        let manet = &mut self.interfaces[at].manet;
        let said = &mut manet.said;
        let (level, was_child, was_selector) = (said.level, said.child, said.dependent_selector);
        said.set_parents(self.config.router_id, at.router, roles.designated_router, roles.backup_designated_router);
        if said.level == Level::Other {
            manet.chosen.dependent = false;
        } else {
            said.dependent_selector = true;
        }
        if level != said.level {
            self.interfaces[at.interface].mdr_neighbor_change = true;
            self.adj_ok.insert(at);
        } else if said.child && !was_child || said.dependent_selector && !was_selector {
            // The RFC mentions the selector for Hellos only (4.2.3). Without it here, a Backup MDR that asks another
            // for an adjacency which that does not want would ask for ever.
            self.adj_ok.insert(at);
        }
    }

    pub(super) fn receive_description(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        description: &DatabaseDescription,
        lls: Option<&Lls>,
    ) -> Result<(), DropReason> {
        let config = &self.interfaces[at.interface].config;
        let other_mtu = Some(description.interface_mtu).filter(|mtu| *mtu != config.mtu && !config.ignore_mtu);
        let larger =
            !config.ignore_mtu && !description.flags.ipv6_mtu_differs && description.interface_mtu > config.mtu;
        self.interfaces[at].attempt.hear_description(other_mtu);
        if larger {
            return Err(DropReason::Mtu);
        }
        if self.interfaces[at].state == NeighborState::Down {
            return Err(DropReason::NeighborState);
        }
        if let Some(roles) = lls.and_then(Lls::mdr_description) {
            self.read_roles(at, roles);
        }
        // In state Init, a neighbour that describes its database hears this router. The adjacency is decided at once,
        // so that this packet can already be used (RFC 5614, 7.1 and 7.5).
        self.neighbor_event(now, at, NeighborEvent::TwoWayReceived);
        self.decide_adjacencies(now);
        let neighbor = &self.interfaces[at];
        let duplicate = neighbor.exchange.is_duplicate(description);
        match neighbor.state {
            NeighborState::Down | NeighborState::Init | NeighborState::TwoWay => Err(DropReason::NeighborState),
            NeighborState::ExStart => self.negotiate(now, at, description),
            NeighborState::Exchange if !duplicate => {
                if neighbor.exchange.is_next(description) {
                    self.accept_description(now, at, description);
                } else {
                    self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
                }
                Ok(())
            }
            NeighborState::Exchange | NeighborState::Loading | NeighborState::Full if duplicate => {
                if neighbor.exchange.role == Role::Slave {
                    if neighbor.exchange.sent.is_none() {
                        self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
                    }
                    self.conversation(now, at).repeat_description();
                }
                Err(DropReason::DuplicateDescription)
            }
            NeighborState::Exchange | NeighborState::Loading | NeighborState::Full => {
                self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
                Ok(())
            }
        }
    }

    /// An exchange has ended: the neighbour that has waited longest is told that it may begin.
    pub(super) fn begin_next_exchange(&mut self, now: Instant, handle: InterfaceHandle) {
        let interface = &self.interfaces[handle];
        let Some(router) = interface.next_held().filter(|_| !interface.is_busy()) else { return };
        let at = NeighborHandle { interface: handle, router };
        self.interfaces[at].exchange.held = None;
        self.conversation(now, at).send_description(true);
    }

    /// A description in state ExStart: decides who is the master.
    fn negotiate(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        description: &DatabaseDescription,
    ) -> Result<(), DropReason> {
        let own = self.config.router_id;
        if self.interfaces[at.interface].is_busy() {
            // Its turn comes: it is not one that never finishes.
            let neighbor = &mut self.interfaces[at];
            neighbor.exchange.held.get_or_insert(now);
            neighbor.attempt.advance(now);
            return Err(DropReason::NeighborState);
        }
        match self.interfaces[at].exchange.negotiate(own, at.router, description) {
            Negotiation::Done => {
                self.neighbor_event(now, at, NeighborEvent::NegotiationDone);
                self.accept_description(now, at, description);
                Ok(())
            }
            Negotiation::Unheard => {
                // It is ignored, as RFC 2328 says, but our first description is repeated now instead of after
                // RxmtInterval.
                self.conversation(now, at).send_description(true);
                Err(DropReason::NeighborState)
            }
            Negotiation::Ignored => Err(DropReason::NeighborState),
        }
    }

    fn accept_description(&mut self, now: Instant, at: NeighborHandle, description: &DatabaseDescription) {
        self.interfaces[at].attempt.advance(now);
        if let Some(event) = self.conversation(now, at).accept_description(description) {
            self.neighbor_event(now, at, event);
        }
    }

    /// A Link State Request (RFC 2328, 10.7).
    pub(super) fn receive_request(
        &mut self,
        now: Instant,
        at: NeighborHandle,
        request: &LinkStateRequest,
    ) -> Result<(), DropReason> {
        let neighbor = &self.interfaces[at];
        if !neighbor.is_exchanging() {
            return Err(DropReason::NeighborState);
        }
        let destination = Destination::Neighbor(at.router, neighbor.address);
        // Repeated keys are answered once.
        let keys: BTreeSet<LsaKey> = request.keys.iter().copied().collect();
        let places: Vec<Place> = keys.iter().filter_map(|key| Place::on(at.interface, *key)).collect();
        if places.len() < keys.len() || places.iter().any(|place| self.database.get(*place).is_none()) {
            self.neighbor_event(now, at, NeighborEvent::BadLsReq);
        } else {
            self.send_update(now, at.interface, destination, &places);
        }
        Ok(())
    }

    /// LSAs requested from any neighbour may have arrived.
    pub(super) fn requests_answered(&mut self, now: Instant) {
        let exchanging: Vec<NeighborHandle> = self.interfaces.exchanging().collect();
        for at in exchanging {
            if let Some(event) = self.conversation(now, at).requests_answered() {
                self.neighbor_event(now, at, event);
            }
        }
    }
}
