//! The exchange of databases with a neighbour: Database Descriptions and Link State Requests (RFC 2328, 10.6 to 10.9;
//! RFC 5614, 7.4 and 7.5; RFC 5243).

use std::collections::BTreeSet;

use anabranch_policy::Instant;
use anabranch_wire::ospf::lls::MdrDescription;
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{
    Body, DatabaseDescription, DescriptionFlags, HEADER, LinkStateRequest, Lls, LsaHeader, LsaKey, RouterId, Tlv,
};

use crate::counters::DropReason;
use crate::database::Place;
use crate::interface::Interface;
use crate::neighbor::{NeighborEvent, NeighborState};
use crate::neighborhood::Level;
use crate::router::Router;
use crate::verbs::{At, Destination, IPV6_HEADER};

/// Header of the LLS block with an MDR-DD TLV in it: no room is lost if it is always kept free.
const LLS_ROOM: usize = 16;

/// How many of `size` bytes each fit into a packet of an interface, behind `fixed` bytes.
fn room(interface: &Interface, fixed: usize, size: usize) -> usize {
    usize::from(interface.config.mtu).saturating_sub(IPV6_HEADER + HEADER + fixed) / size
}

impl Router {
    fn destination(&self, at: At) -> Option<Destination> {
        Some(Destination::Neighbor(at.router, self.neighbor(at)?.address))
    }

    /// Enters ExStart: this router claims to be the master.
    pub(crate) fn negotiate(&mut self, now: Instant, at: At) {
        let first = self.random.number();
        let Some(neighbor) = self.neighbor_mut(at) else { return };
        neighbor.clear_lists();
        let exchange = &mut neighbor.exchange;
        exchange.sequence = Some(exchange.sequence.map_or(first, |sequence| sequence.wrapping_add(1)));
        exchange.master = true;
        self.send_description(now, at, true);
    }

    /// Enters Exchange: lists the database for its description.
    pub(crate) fn summarize(&mut self, now: Instant, at: At) {
        let Self { interfaces, database, .. } = self;
        let Some(interface) = interfaces.get_mut(at.interface) else { return };
        let rxmt = interface.config.rxmt_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        for (place, entry) in database.described(at.interface) {
            if entry.is_aged_out(now) {
                neighbor.retransmissions.insert(place.key, now + rxmt);
                neighbor.retransmit_at = neighbor.retransmit_at.min(now + rxmt);
            } else {
                neighbor.exchange.summary.insert(place.key);
            }
        }
    }

    /// Sends the next Database Description to a neighbour; `initial` in ExStart.
    fn send_description(&mut self, now: Instant, at: At, initial: bool) {
        let options = self.config.options();
        let Some(destination) = self.destination(at) else { return };
        let Self { interfaces, database, .. } = self;
        let Some(interface) = interfaces.get_mut(at.interface) else { return };
        let most = room(interface, DatabaseDescription::FIXED + LLS_ROOM, LsaHeader::LENGTH);
        let (rxmt, mtu, selection) = (interface.config.rxmt_interval, interface.config.mtu, interface.selection);
        let (id, is_manet) = (interface.config.id, interface.manet().is_some());
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let exchange = &mut neighbor.exchange;
        let mut headers = Vec::new();
        while !initial && headers.len() < most {
            let Some(key) = exchange.summary.pop_first() else { break };
            let entry = Place::on(at.interface, key).and_then(|place| database.get(place));
            headers.extend(entry.map(|entry| entry.header(now)).filter(|header| header.age < MAX_AGE));
        }
        let more = initial || !exchange.summary.is_empty();
        let flags = DescriptionFlags { init: initial, more, master: exchange.master, ipv6_mtu_differs: false };
        let sequence = exchange.sequence.unwrap_or(0);
        exchange.description_at = exchange.master.then(|| now + rxmt);
        // RFC 5614, 7.4.
        let lls = (initial && is_manet).then(|| {
            let designated_router = selection.parent.unwrap_or(RouterId::NONE);
            let backup_designated_router = selection.backup_parent.unwrap_or(RouterId::NONE);
            let roles = MdrDescription { designated_router, backup_designated_router };
            Lls { tlvs: vec![Tlv::MdrDescription(roles)] }
        });
        let description = DatabaseDescription { options, interface_mtu: mtu, flags, sequence, headers };
        let packet = self.output.send(id, destination, Body::DatabaseDescription(description), lls);
        if let Some(neighbor) = self.neighbor_mut(at) {
            neighbor.exchange.sent = Some(packet);
        }
    }

    /// Sends the last Database Description again.
    fn repeat_description(&mut self, at: At) {
        let Some(destination) = self.destination(at) else { return };
        let Some(packet) = self.neighbor(at).and_then(|neighbor| neighbor.exchange.sent.clone()) else { return };
        let Some(id) = self.interfaces.get(at.interface).map(|interface| interface.config.id) else { return };
        self.output.send_again(id, destination, &packet);
    }

    /// The master got no answer, or the slave may forget its last description.
    pub(crate) fn description_timeout(&mut self, now: Instant, at: At) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let rxmt = interface.config.rxmt_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let exchange = &mut neighbor.exchange;
        match neighbor.state {
            // Made anew: the roles it tells may have changed, and old ones would undo the adjacency.
            NeighborState::ExStart => self.send_description(now, at, true),
            NeighborState::Exchange if exchange.master => {
                exchange.description_at = Some(now + rxmt);
                self.repeat_description(at);
            }
            NeighborState::Down
            | NeighborState::Init
            | NeighborState::TwoWay
            | NeighborState::Exchange
            | NeighborState::Loading
            | NeighborState::Full => {
                exchange.description_at = None;
                exchange.sent = None;
            }
        }
    }

    /// What an MDR-DD TLV says (RFC 5614, 7.5).
    fn read_roles(&mut self, at: At, roles: &MdrDescription) {
        let own = self.config.router_id;
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        if interface.manet().is_none() {
            return;
        }
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let manet = &mut neighbor.manet;
        let (level, was_child, was_selector) = (manet.level, manet.child, manet.dependent_selector);
        manet.parent = roles.designated_router;
        manet.backup_parent = roles.backup_designated_router;
        (manet.level, manet.dependent_selector) = if roles.designated_router == at.router {
            (Level::Mdr, true)
        } else if roles.backup_designated_router == at.router {
            (Level::BackupMdr, true)
        } else {
            manet.dependent = false;
            (Level::Other, manet.dependent_selector)
        };
        manet.child = roles.designated_router == own || roles.backup_designated_router == own;
        if level != manet.level {
            interface.mdr_neighbor_change = true;
            self.adj_ok.insert(at);
        } else if manet.child && !was_child || manet.dependent_selector && !was_selector {
            // The RFC names the selector for Hellos only (4.2.3). Without it here, a Backup MDR that asks another one for an
            // adjacency which that one does not want asks for ever.
            self.adj_ok.insert(at);
        }
    }

    pub(crate) fn receive_description(
        &mut self,
        now: Instant,
        at: At,
        description: &DatabaseDescription,
        lls: Option<&Lls>,
    ) -> Result<(), DropReason> {
        let Some(interface) = self.interfaces.get(at.interface) else { return Err(DropReason::Interface) };
        let config = &interface.config;
        if !config.ignore_mtu && !description.flags.ipv6_mtu_differs && description.interface_mtu > config.mtu {
            return Err(DropReason::Mtu);
        }
        if self.neighbor(at).is_none_or(|neighbor| neighbor.state == NeighborState::Down) {
            return Err(DropReason::NeighborState);
        }
        if let Some(roles) = lls.and_then(Lls::mdr_description) {
            self.read_roles(at, roles);
        }
        // In state Init, a neighbour that describes its database hears this router. Then the adjacency is decided at once,
        // so that this packet can already be used (RFC 5614, 7.1 and 7.5).
        self.neighbor_event(now, at, NeighborEvent::TwoWayReceived);
        while let Some(scheduled) = self.adj_ok.pop_first() {
            self.decide_adjacency(now, scheduled);
        }
        let Some(neighbor) = self.neighbor(at) else { return Err(DropReason::UnknownNeighbor) };
        let summary = (description.flags, description.options, description.sequence);
        let duplicate = neighbor.exchange.received == Some(summary);
        match neighbor.state {
            NeighborState::Down | NeighborState::Init | NeighborState::TwoWay => Err(DropReason::NeighborState),
            NeighborState::ExStart => self.negotiated(now, at, description),
            NeighborState::Exchange if !duplicate => self.next_description(now, at, description),
            NeighborState::Exchange | NeighborState::Loading | NeighborState::Full if duplicate => {
                if !neighbor.exchange.master {
                    if neighbor.exchange.sent.is_none() {
                        self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
                    }
                    self.repeat_description(at);
                }
                Err(DropReason::DuplicateDescription)
            }
            NeighborState::Exchange | NeighborState::Loading | NeighborState::Full => {
                self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
                Ok(())
            }
        }
    }

    /// A description in state ExStart: who is the master?
    fn negotiated(&mut self, now: Instant, at: At, description: &DatabaseDescription) -> Result<(), DropReason> {
        let own = self.config.router_id;
        let flags = description.flags;
        let Some(neighbor) = self.neighbor_mut(at) else { return Err(DropReason::UnknownNeighbor) };
        let exchange = &mut neighbor.exchange;
        if flags.init && flags.more && flags.master && description.headers.is_empty() && at.router > own {
            exchange.master = false;
            exchange.description_at = None;
        } else if !flags.init && !flags.master && exchange.sequence == Some(description.sequence) && at.router < own {
            exchange.master = true;
        } else {
            // It is ignored, as RFC 2328 says. But one that begins, and will be the slave, has not heard our beginning: it is
            // repeated now rather than after RxmtInterval.
            if flags.init && flags.master && at.router < own {
                self.send_description(now, at, true);
            }
            return Err(DropReason::NeighborState);
        }
        self.neighbor_event(now, at, NeighborEvent::NegotiationDone);
        self.accept_description(now, at, description);
        Ok(())
    }

    /// A description in state Exchange that is no duplicate.
    fn next_description(&mut self, now: Instant, at: At, description: &DatabaseDescription) -> Result<(), DropReason> {
        let Some(neighbor) = self.neighbor(at) else { return Err(DropReason::UnknownNeighbor) };
        let exchange = &neighbor.exchange;
        let options_changed = exchange.received.is_some_and(|(_, options, _)| options != description.options);
        let expected =
            if exchange.master { exchange.sequence } else { exchange.sequence.map(|last| last.wrapping_add(1)) };
        let next = description.flags.master != exchange.master
            && !description.flags.init
            && !options_changed
            && expected == Some(description.sequence);
        if next {
            self.accept_description(now, at, description);
        } else {
            self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
        }
        Ok(())
    }

    /// Takes in a description that is next in sequence, and answers it.
    fn accept_description(&mut self, now: Instant, at: At, description: &DatabaseDescription) {
        let limit = self.config.limits.lsas;
        let Self { interfaces, database, .. } = self;
        let Some(neighbor) = interfaces.get_mut(at.interface).and_then(|one| one.neighbors.get_mut(&at.router)) else {
            return;
        };
        neighbor.exchange.received = Some((description.flags, description.options, description.sequence));
        let mut refused = false;
        for header in &description.headers {
            let Some(place) = Place::on(at.interface, header.key) else {
                refused = true;
                break;
            };
            let own = database.get(place).map(|entry| entry.header(now));
            let newer = own.is_none_or(|own| header.compare_instance(&own).is_gt());
            if newer && neighbor.requests.len() < limit {
                neighbor.requests.insert(header.key, *header);
            }
            // RFC 5243: what the neighbour has in the same or a newer instance needs no description.
            if own.is_none_or(|own| header.compare_instance(&own).is_ge()) {
                neighbor.exchange.summary.remove(&header.key);
            }
        }
        if refused {
            self.neighbor_event(now, at, NeighborEvent::SeqNumberMismatch);
            return;
        }
        let exchange = &mut neighbor.exchange;
        let said_all = exchange.sent.as_ref().is_some_and(|sent| match &sent.body {
            Body::DatabaseDescription(sent) => !sent.flags.more,
            _ => false,
        });
        let done = if exchange.master {
            exchange.sequence = exchange.sequence.map(|sequence| sequence.wrapping_add(1));
            let done = said_all && !description.flags.more;
            if !done {
                self.send_description(now, at, false);
            }
            done
        } else {
            exchange.sequence = Some(description.sequence);
            self.send_description(now, at, false);
            let rest = self.neighbor(at).is_some_and(|neighbor| !neighbor.exchange.summary.is_empty());
            !description.flags.more && !rest
        };
        if done {
            self.exchange_done(now, at);
        } else {
            self.request_more(now, at);
        }
    }

    fn exchange_done(&mut self, now: Instant, at: At) {
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let dead_interval = interface.config.router_dead_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        let requests_left = !neighbor.requests.is_empty();
        // The slave keeps its last description for a master that did not get it (RFC 2328, 10.8).
        neighbor.exchange.description_at = Some(now + dead_interval);
        self.neighbor_event(now, at, NeighborEvent::ExchangeDone { requests_left });
    }

    /// Sends a Link State Request if one is needed and none is outstanding (RFC 2328, 10.9).
    pub(crate) fn request_more(&mut self, now: Instant, at: At) {
        let Some(neighbor) = self.neighbor_mut(at) else { return };
        let exchange = &mut neighbor.exchange;
        exchange.requested.retain(|key| neighbor.requests.contains_key(key));
        if exchange.requested.is_empty() {
            exchange.request_at = None;
            self.send_request(now, at);
        }
    }

    /// Sends the Link State Request again.
    pub(crate) fn request_again(&mut self, now: Instant, at: At) {
        if let Some(neighbor) = self.neighbor_mut(at) {
            neighbor.exchange.request_at = None;
        }
        self.send_request(now, at);
    }

    fn send_request(&mut self, now: Instant, at: At) {
        let Some(destination) = self.destination(at) else { return };
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return };
        let most = room(interface, 0, LinkStateRequest::ENTRY);
        let (id, rxmt) = (interface.config.id, interface.config.rxmt_interval);
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return };
        if neighbor.requests.is_empty() || !neighbor.is_exchanging() {
            return;
        }
        neighbor.exchange.requested = neighbor.requests.keys().take(most).copied().collect();
        neighbor.exchange.request_at = Some(now + rxmt);
        let keys = neighbor.exchange.requested.iter().copied().collect();
        self.output.send(id, destination, Body::LinkStateRequest(LinkStateRequest { keys }), None);
    }

    /// A requested LSA came in, or is not needed any more.
    pub(crate) fn request_answered(&mut self, now: Instant, at: At) {
        let Some(neighbor) = self.neighbor(at) else { return };
        if !neighbor.requests.is_empty() {
            self.request_more(now, at);
        } else if let Some(neighbor) = self.neighbor_mut(at) {
            neighbor.exchange.request_at = None;
            neighbor.exchange.requested.clear();
            self.neighbor_event(now, at, NeighborEvent::LoadingDone);
        }
    }

    /// A Link State Request (RFC 2328, 10.7).
    pub(crate) fn receive_request(
        &mut self,
        now: Instant,
        at: At,
        request: &LinkStateRequest,
    ) -> Result<(), DropReason> {
        if self.neighbor(at).is_none_or(|neighbor| !neighbor.is_exchanging()) {
            return Err(DropReason::NeighborState);
        }
        // What is asked for twice is sent once.
        let keys: BTreeSet<LsaKey> = request.keys.iter().copied().collect();
        let places: Vec<Place> = keys.iter().filter_map(|key| Place::on(at.interface, *key)).collect();
        if places.len() < keys.len() || places.iter().any(|place| self.database.get(*place).is_none()) {
            self.neighbor_event(now, at, NeighborEvent::BadLsReq);
            return Ok(());
        }
        if let Some(destination) = self.destination(at) {
            self.send_update(now, at.interface, destination, &places);
        }
        Ok(())
    }
}
