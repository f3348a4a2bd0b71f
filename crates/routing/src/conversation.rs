//! The database exchange with one neighbour: Database Descriptions and Link State Requests (RFC 2328, 10.6 to 10.9; RFC
//! 5614, 7.4; RFC 5243).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lls::MdrDescription;
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{
    Body, DatabaseDescription, DescriptionFlags, HEADER, LinkStateRequest, LinkStateUpdate, Lls, LsaHeader, RouterId,
    Tlv,
};

use crate::config::{Config, InterfaceConfig, InterfaceKind};
use crate::database::{Database, Place};
use crate::election::Selection;
use crate::handles::NeighborHandle;
use crate::neighbor::exchange::{ExchangeTimer, Role};
use crate::neighbor::{Neighbor, NeighborEvent, NeighborState};
use crate::output::Output;
use crate::verbs::{Destination, IPV6_HEADER};

/// Length of an LLS block with an MDR-DD TLV; always reserved.
const LLS_ROOM: usize = 16;

/// A neighbour, and the parts of the router that the exchange needs.
pub(crate) struct Conversation<'a> {
    pub now: Instant,
    pub with: NeighborHandle,
    pub neighbor: &'a mut Neighbor,
    pub interface: &'a InterfaceConfig,
    pub selection: &'a Selection,
    pub config: &'a Config,
    pub database: &'a Database,
    pub output: &'a mut Output,
}

impl Conversation<'_> {
    fn destination(&self) -> Destination {
        Destination::Neighbor(self.with.router, self.neighbor.address)
    }

    /// How many items of `size` bytes fit into a packet after `fixed` bytes.
    fn room(&self, fixed: usize, size: usize) -> usize {
        usize::from(self.interface.mtu).saturating_sub(IPV6_HEADER + HEADER + fixed) / size
    }

    /// How long an answer is waited for: HelloInterval, and twice as long after each repetition, up to RxmtInterval. That of
    /// a MANET leaves room for delayed acknowledgments, which descriptions and requests do not have.
    fn patience(&self) -> Duration {
        let repeated = self.neighbor.exchange.repeated.min(8);
        (self.interface.hello_interval * (1 << repeated)).min(self.interface.rxmt_interval)
    }

    /// Enters ExStart: this router claims to be the master. `first` is the sequence number of the first attempt.
    pub fn negotiate(&mut self, first: u32) {
        self.neighbor.clear_lists();
        self.neighbor.exchange.begin(first);
        self.send_description(true);
    }

    /// Enters Exchange: lists the database for the descriptions. LSAs of age MaxAge are not described but sent (RFC 2328, 10.3):
    /// after RxmtInterval, but those of the neighbour itself at once. It began anew, and nobody takes its LSAs that are older.
    pub fn summarize(&mut self) {
        for (place, entry) in self.database.described(self.with.interface) {
            if entry.is_aged_out(self.now) {
                let own = place.key.advertising == self.with.router;
                let wait = if own { Duration::ZERO } else { self.interface.rxmt_interval };
                self.neighbor.retransmissions.add(place.key, self.now, wait);
            } else {
                self.neighbor.exchange.summary.insert(place.key);
            }
        }
    }

    /// Sends the next Database Description; `initial` in ExStart.
    pub fn send_description(&mut self, initial: bool) {
        let most = self.room(DatabaseDescription::FIXED + LLS_ROOM, LsaHeader::LENGTH);
        let again = self.now + self.patience();
        let exchange = &mut self.neighbor.exchange;
        let mut headers = Vec::new();
        while !initial && headers.len() < most {
            let Some(key) = exchange.summary.pop_first() else { break };
            let entry = Place::on(self.with.interface, key).and_then(|place| self.database.get(place));
            headers.extend(entry.map(|entry| entry.header(self.now)).filter(|header| header.age < MAX_AGE));
        }
        let more = initial || !exchange.summary.is_empty();
        let master = exchange.role == Role::Master;
        match exchange.role {
            Role::Master => exchange.timers.set(ExchangeTimer::Description, again),
            Role::Slave => exchange.timers.stop(ExchangeTimer::Description),
        }
        let description = DatabaseDescription {
            options: self.config.options(),
            interface_mtu: self.interface.mtu,
            flags: DescriptionFlags { init: initial, more, master, ipv6_mtu_differs: false },
            sequence: exchange.sequence.unwrap_or(0),
            headers,
        };
        // RFC 5614, 7.4.
        let is_manet = matches!(self.interface.kind, InterfaceKind::Manet(_));
        let lls = (initial && is_manet).then(|| {
            let designated_router = self.selection.parent.unwrap_or(RouterId::NONE);
            let backup_designated_router = self.selection.backup_parent.unwrap_or(RouterId::NONE);
            let roles = MdrDescription { designated_router, backup_designated_router };
            Lls { tlvs: vec![Tlv::MdrDescription(roles)] }
        });
        let destination = self.destination();
        let packet = self.output.send(self.interface.id, destination, Body::DatabaseDescription(description), lls);
        self.neighbor.exchange.sent = Some(packet);
    }

    /// Sends the last Database Description again, if it is still stored.
    pub fn repeat_description(&mut self) {
        if let Some(packet) = &self.neighbor.exchange.sent {
            let destination = Destination::Neighbor(self.with.router, self.neighbor.address);
            self.output.send_again(self.interface.id, destination, packet);
        }
    }

    /// The master got no answer, or the slave may discard its last description.
    pub fn description_timeout(&mut self) {
        self.neighbor.exchange.repeated += 1;
        match self.neighbor.state {
            // Created anew: the roles in it may have changed, and old ones would undo the adjacency.
            NeighborState::ExStart => self.send_description(true),
            NeighborState::Exchange if self.neighbor.exchange.role == Role::Master => {
                let again = self.now + self.patience();
                self.neighbor.exchange.timers.set(ExchangeTimer::Description, again);
                self.repeat_description();
            }
            NeighborState::Down
            | NeighborState::Init
            | NeighborState::TwoWay
            | NeighborState::Exchange
            | NeighborState::Loading
            | NeighborState::Full => {
                self.neighbor.exchange.timers.stop(ExchangeTimer::Description);
                self.neighbor.exchange.sent = None;
            }
        }
    }

    /// Accepts the description next in sequence, and answers it. Returns the resulting event.
    pub fn accept_description(&mut self, description: &DatabaseDescription) -> Option<NeighborEvent> {
        self.neighbor.exchange.received = Some((description.flags, description.options, description.sequence));
        self.neighbor.exchange.repeated = 0;
        if !self.list_requests(&description.headers) {
            return Some(NeighborEvent::SeqNumberMismatch);
        }
        let exchange = &mut self.neighbor.exchange;
        let done = match exchange.role {
            Role::Master => {
                exchange.sequence = exchange.sequence.map(|sequence| sequence.wrapping_add(1));
                let done = exchange.described_all() && !description.flags.more;
                if !done {
                    self.send_description(false);
                }
                done
            }
            Role::Slave => {
                exchange.sequence = Some(description.sequence);
                self.send_description(false);
                !description.flags.more && self.neighbor.exchange.summary.is_empty()
            }
        };
        if !done {
            self.request_more();
            return None;
        }
        // The slave keeps its last description for a master that did not get it (RFC 2328, 10.8).
        let forget = self.now + self.interface.router_dead_interval;
        self.neighbor.exchange.timers.set(ExchangeTimer::Description, forget);
        Some(NeighborEvent::ExchangeDone { requests_left: !self.neighbor.exchange.requests.is_empty() })
    }

    /// Lists what the neighbour has and this router lacks. False if a header is invalid.
    fn list_requests(&mut self, headers: &[LsaHeader]) -> bool {
        let exchange = &mut self.neighbor.exchange;
        for header in headers {
            let Some(place) = Place::on(self.with.interface, header.key) else { return false };
            let own = self.database.get(place).map(|entry| entry.header(self.now));
            let newer = own.is_none_or(|own| header.compare_instance(&own).is_gt());
            if newer && exchange.requests.len() < self.config.limits.lsas {
                exchange.requests.insert(header.key, *header);
            }
            // RFC 5243: LSAs that the neighbour has in the same or a newer instance need no description.
            if own.is_none_or(|own| header.compare_instance(&own).is_ge()) {
                exchange.summary.remove(&header.key);
            }
        }
        true
    }

    /// Sends a Link State Request if one is needed and none is outstanding (RFC 2328, 10.9).
    pub fn request_more(&mut self) {
        if self.neighbor.exchange.may_request() {
            self.neighbor.exchange.repeated = 0;
            self.request_again();
        }
    }

    /// The Link State Request was not answered.
    pub fn request_timeout(&mut self) {
        self.neighbor.exchange.repeated += 1;
        self.request_again();
    }

    /// Sends a Link State Request for the first missing LSAs, as many as one update has room for: the next one is sent when
    /// these have arrived, so that an exchange has one packet in the queues at a time.
    fn request_again(&mut self) {
        let fits = self.room(0, LinkStateRequest::ENTRY);
        let mut left = self.room(LinkStateUpdate::FIXED, 1);
        let lengths = self.neighbor.exchange.requests.values().map(|header| usize::from(header.length));
        let one_update = lengths.take_while(|length| {
            let room = left >= *length;
            left = left.saturating_sub(*length);
            room
        });
        let most = one_update.count().clamp(1, fits.max(1));
        let is_exchanging = self.neighbor.is_exchanging();
        let again = self.now + self.patience();
        let exchange = &mut self.neighbor.exchange;
        if exchange.requests.is_empty() || !is_exchanging {
            exchange.timers.stop(ExchangeTimer::Request);
            return;
        }
        exchange.requested = exchange.requests.keys().take(most).copied().collect();
        exchange.timers.set(ExchangeTimer::Request, again);
        let keys = exchange.requested.iter().copied().collect();
        let destination = self.destination();
        self.output.send(self.interface.id, destination, Body::LinkStateRequest(LinkStateRequest { keys }), None);
    }

    /// Requested LSAs may have arrived, or are no longer needed. Returns the resulting event.
    pub fn requests_answered(&mut self) -> Option<NeighborEvent> {
        if self.neighbor.exchange.requests.is_empty() {
            self.neighbor.exchange.end_requests();
            return Some(NeighborEvent::LoadingDone);
        }
        self.request_more();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Source;
    use crate::handles::InterfaceHandle;
    use anabranch_wire::ospf::lsa::{LsaSequence, RouterFlags, RouterLsa};
    use anabranch_wire::ospf::{AgedLsa, InterfaceId, LinkStateId, Lsa, LsaBody, LsaKey, LsaType, Options, Packet};
    use std::net::Ipv6Addr;

    const WITH: NeighborHandle = NeighborHandle { interface: InterfaceHandle::FIRST, router: RouterId(2) };

    /// A router with one LSA in its database, and its neighbour.
    struct Scene {
        config: Config,
        interface: InterfaceConfig,
        database: Database,
        output: Output,
        neighbor: Neighbor,
        header: LsaHeader,
    }

    impl Scene {
        fn new(state: NeighborState) -> Self {
            let config = Config::new(RouterId(1));
            let mut neighbor = Neighbor::new(Ipv6Addr::LOCALHOST, Instant::ZERO, None);
            neighbor.state = state;
            let options = Options::V6 | Options::E | Options::R;
            let body = LsaBody::Router(RouterLsa { flags: RouterFlags::default(), options, links: Vec::new() });
            let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(9), id: LinkStateId(0) };
            let lsa = Lsa::new(key, LsaSequence::INITIAL, body).unwrap();
            let header = lsa.header(0);
            let mut database = Database::default();
            database.install(Place { link: None, key }, AgedLsa { age: 0, lsa }, Instant::ZERO, Source::Flooded);
            let output = Output::new(&config);
            let interface = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::LOCALHOST);
            Self { config, interface, database, output, neighbor, header }
        }

        fn talk<R>(&mut self, act: impl FnOnce(&mut Conversation<'_>) -> R) -> R {
            let Self { config, interface, database, output, neighbor, .. } = self;
            let selection = Selection::default();
            let now = Instant::ZERO;
            let (selection, with) = (&selection, WITH);
            act(&mut Conversation { now, with, neighbor, interface, selection, config, database, output })
        }

        fn sent(&mut self) -> Vec<Body> {
            let packets = core::iter::from_fn(|| self.output.next_packet());
            packets.map(|outgoing| Packet::clone(&outgoing.packet).body).collect()
        }

        /// A description of the neighbour as the master, its last one.
        fn description(&self, sequence: u32, headers: Vec<LsaHeader>) -> DatabaseDescription {
            let flags = DescriptionFlags { init: false, more: false, master: true, ipv6_mtu_differs: false };
            DatabaseDescription { options: self.config.options(), interface_mtu: 1500, flags, sequence, headers }
        }
    }

    #[test]
    fn rfc5243_what_the_neighbour_described_is_not_described_to_it() {
        for (theirs, expected) in [(false, 1), (true, 0)] {
            let mut scene = Scene::new(NeighborState::Exchange);
            scene.talk(|conversation| conversation.summarize());
            let description = scene.description(5, vec![scene.header].into_iter().filter(|_| theirs).collect());
            let event = scene.talk(|conversation| conversation.accept_description(&description));
            assert_eq!(event, Some(NeighborEvent::ExchangeDone { requests_left: false }));
            let [Body::DatabaseDescription(answer)] = &scene.sent()[..] else { panic!("an answer") };
            assert_eq!((answer.sequence, answer.headers.len(), answer.flags.more), (5, expected, false));
        }
    }

    #[test]
    fn rfc2328_10_9_what_is_newer_is_requested_until_it_came() {
        let mut scene = Scene::new(NeighborState::Exchange);
        let newer = LsaHeader { sequence: scene.header.sequence.next().unwrap(), ..scene.header };
        let description = scene.description(5, vec![newer]);
        let event = scene.talk(|conversation| conversation.accept_description(&description));
        assert_eq!(event, Some(NeighborEvent::ExchangeDone { requests_left: true }));
        scene.neighbor.state = NeighborState::Loading;
        scene.sent();
        scene.talk(|conversation| conversation.request_more());
        // One request is outstanding.
        assert_eq!(scene.talk(|conversation| conversation.requests_answered()), None);
        let [Body::LinkStateRequest(request)] = &scene.sent()[..] else { panic!("one request") };
        assert_eq!(request.keys, [newer.key]);
        let again = Instant::ZERO + scene.interface.hello_interval;
        assert_eq!(scene.neighbor.exchange.timers.expiry(ExchangeTimer::Request), Some(again));
        scene.neighbor.exchange.requests.clear();
        assert_eq!(scene.talk(|conversation| conversation.requests_answered()), Some(NeighborEvent::LoadingDone));
        assert_eq!(scene.neighbor.exchange.timers.expiry(ExchangeTimer::Request), None);
    }

    #[test]
    fn a_header_of_a_reserved_scope_is_a_mismatch() {
        let mut scene = Scene::new(NeighborState::Exchange);
        let key = LsaKey { kind: LsaType(0x6001), ..scene.header.key };
        let description = scene.description(5, vec![LsaHeader { key, ..scene.header }]);
        let event = scene.talk(|conversation| conversation.accept_description(&description));
        assert_eq!((event, scene.sent().len()), (Some(NeighborEvent::SeqNumberMismatch), 0));
    }

    #[test]
    fn the_slave_keeps_its_last_description_for_router_dead_interval() {
        let mut scene = Scene::new(NeighborState::Exchange);
        let description = scene.description(5, Vec::new());
        scene.talk(|conversation| conversation.accept_description(&description));
        let forget = Instant::ZERO + Duration::from_secs(6);
        assert_eq!(scene.neighbor.exchange.timers.expiry(ExchangeTimer::Description), Some(forget));
        scene.neighbor.state = NeighborState::Full;
        scene.talk(|conversation| conversation.repeat_description());
        assert_eq!(scene.sent().len(), 2);
        scene.talk(|conversation| conversation.description_timeout());
        scene.talk(|conversation| conversation.repeat_description());
        assert_eq!(scene.sent().len(), 0);
    }
}
