//! A router on a test bench: packets are injected by hand, and its output is recorded with times.

use std::net::Ipv6Addr;

use anabranch_policy::{Duration, Instant};
use anabranch_routing::counters::DropReason;
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::neighborhood::Level;
use anabranch_routing::show::NeighborView;
use anabranch_routing::{
    Config, Destination, InterfaceChange, InterfaceConfig, InterfaceKind, NeighborState, Outgoing, Reception, Router,
};
use anabranch_wire::ospf::lls::MdrHello;
use anabranch_wire::ospf::lsa::{LinkKind, LsaSequence, RouterFlags, RouterLink, RouterLsa};
use anabranch_wire::ospf::{
    AgedLsa, AreaId, Body, DatabaseDescription, Hello, InterfaceId, LinkStateAcknowledgment, LinkStateUpdate, Lls, Lsa,
    LsaBody, LsaHeader, LsaKey, LsaType, Options, Packet, RouterId, Tlv,
};

pub const OPTIONS: Options = Options::V6.with(Options::E).with(Options::R);

pub struct Bench {
    pub now: Instant,
    pub router: Router,
    pub sent: Vec<(Instant, Outgoing)>,
    /// Hello sequence numbers of the neighbours, by router ID.
    sequences: std::collections::BTreeMap<u32, u16>,
}

/// The content of a neighbour's Hello.
#[derive(Clone, Default)]
pub struct Says {
    pub sequence: u16,
    pub differential: bool,
    pub a_bit: bool,
    pub parent: u32,
    pub backup_parent: u32,
    /// Lists 1 to 5.
    pub lists: [Vec<u32>; 5],
}

pub fn source(router: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, router as u16)
}

/// A MANET interface with Hello 1 s, dead 3 s, that forms adjacencies with all neighbours.
pub fn eager(config: &mut InterfaceConfig) {
    set(config, AdjConnectivity::Full, LsaFullness::Full);
}

pub fn set(config: &mut InterfaceConfig, adj_connectivity: AdjConnectivity, fullness: LsaFullness) {
    config.hello_interval = Duration::from_secs(1);
    config.router_dead_interval = Duration::from_secs(3);
    if let InterfaceKind::Manet(manet) = &mut config.kind {
        manet.election.adj_connectivity = adj_connectivity;
        manet.lsa_fullness = fullness;
        // The neighbours of most tests say nothing but Hello.
        manet.acceptance.finishing = false;
        // Hellos have the times of RFC 5614.
        manet.prompt = false;
    }
}

impl Bench {
    pub fn new(own: u32, change: impl FnOnce(&mut Config, &mut InterfaceConfig)) -> Self {
        let mut config = Config::new(RouterId(own));
        let mut interface = InterfaceConfig::manet(InterfaceId(1), source(own));
        set(&mut interface, AdjConnectivity::Uniconnected, LsaFullness::Full);
        change(&mut config, &mut interface);
        let mut router = Router::new(config).unwrap();
        router.add_interface(Instant::ZERO, interface).unwrap();
        router.handle_interface(Instant::ZERO, InterfaceId(1), InterfaceChange::Up).unwrap();
        Self { now: Instant::ZERO, router, sent: Vec::new(), sequences: std::collections::BTreeMap::new() }
    }

    pub fn pass(&mut self, span: f64) {
        self.pass_until(self.now + Duration::from_secs_f64(span));
    }

    pub fn pass_until(&mut self, end: Instant) {
        self.drain();
        while let Some(at) = self.router.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.router.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    /// Advances time while neighbours repeat their last Hellos.
    pub fn pass_with(&mut self, seconds: u32, hellos: &[(u32, Says)]) {
        for _ in 0..seconds {
            for (router, says) in hellos {
                self.hello(*router, says.clone());
            }
            self.pass(1.0);
        }
    }

    fn drain(&mut self) {
        while let Some(outgoing) = self.router.poll_transmit() {
            self.sent.push((self.now, outgoing));
        }
    }

    pub fn give(&mut self, from: u32, multicast: bool, body: Body, lls: Option<Lls>) {
        self.give_on(1, from, multicast, body, lls);
    }

    pub fn give_on(&mut self, interface: u32, from: u32, multicast: bool, body: Body, lls: Option<Lls>) {
        let instance = self.router.config().instance;
        let packet = Packet { router: RouterId(from), area: AreaId::BACKBONE, instance, body, lls };
        let how = Reception { source: source(from), multicast, signal: None };
        self.router.handle_packet(self.now, InterfaceId(interface), &how, &packet);
        self.drain();
    }

    /// A Hello with the next sequence number.
    pub fn hello(&mut self, from: u32, says: Says) {
        self.hello_on(1, from, says);
    }

    pub fn hello_on(&mut self, interface: u32, from: u32, says: Says) {
        let sequence = self.sequences.entry(from).or_insert(says.sequence);
        *sequence = sequence.wrapping_add(1);
        let sequence = *sequence;
        self.hello_numbered(interface, from, Says { sequence, ..says });
    }

    /// A Hello with the sequence number in it.
    pub fn hello_numbered(&mut self, interface: u32, from: u32, says: Says) {
        self.sequences.insert(from, says.sequence);
        let (hello, lls) = hello(&says);
        self.give_on(interface, from, true, Body::Hello(hello), Some(lls));
    }

    pub fn neighbor(&self, router: u32) -> NeighborView {
        self.router.neighbors(self.now).find(|one| one.router == RouterId(router)).expect("a neighbour")
    }

    pub fn state(&self, router: u32) -> NeighborState {
        self.neighbor(router).state
    }

    pub fn level(&self) -> Level {
        self.router.interfaces().next().unwrap().selection.level
    }

    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.router.counters().dropped(reason)
    }

    /// The packets of one type sent since the last call; clears all types.
    pub fn take<T>(&mut self, pick: impl Fn(&Packet) -> Option<T>) -> Vec<(Instant, Destination, T)> {
        let sent = core::mem::take(&mut self.sent);
        sent.into_iter().filter_map(|(at, out)| Some((at, out.destination, pick(&out.packet)?))).collect()
    }

    pub fn hellos(&mut self) -> Vec<(Instant, Hello, MdrHello)> {
        let picked = self.take(|packet| match &packet.body {
            Body::Hello(hello) => Some((hello.clone(), *packet.lls.as_ref()?.mdr_hello()?)),
            _ => None,
        });
        picked.into_iter().map(|(at, _, (hello, mdr))| (at, hello, mdr)).collect()
    }

    pub fn updates(&mut self) -> Vec<(Instant, Destination, Vec<AgedLsa>)> {
        self.take(|packet| match &packet.body {
            Body::LinkStateUpdate(update) => Some(update.lsas.clone()),
            _ => None,
        })
    }

    pub fn acknowledgments(&mut self) -> Vec<(Instant, Destination, Vec<LsaHeader>)> {
        self.take(|packet| match &packet.body {
            Body::LinkStateAcknowledgment(acknowledgment) => Some(acknowledgment.headers.clone()),
            _ => None,
        })
    }

    pub fn descriptions(&mut self) -> Vec<(DatabaseDescription, Option<Lls>)> {
        let picked = self.take(|packet| match &packet.body {
            Body::DatabaseDescription(description) => Some((description.clone(), packet.lls.clone())),
            _ => None,
        });
        picked.into_iter().map(|(_, _, one)| one).collect()
    }

    pub fn update(&mut self, from: u32, multicast: bool, lsas: &[AgedLsa]) {
        self.give(from, multicast, Body::LinkStateUpdate(LinkStateUpdate { lsas: lsas.to_vec() }), None);
    }

    pub fn acknowledge(&mut self, from: u32, headers: &[LsaHeader]) {
        let acknowledgment = LinkStateAcknowledgment { headers: headers.to_vec() };
        self.give(from, true, Body::LinkStateAcknowledgment(acknowledgment), None);
    }

    /// The database's instance of an LSA.
    pub fn lsa(&self, kind: LsaType, advertising: u32) -> Option<AgedLsa> {
        let key = |aged: &AgedLsa| (aged.lsa.key().kind, aged.lsa.key().advertising) == (kind, RouterId(advertising));
        self.router.lsas(self.now).map(|(_, aged)| aged).find(key)
    }

    /// Makes a neighbour with a larger router ID Full; it has no LSAs that this router lacks.
    pub fn make_full(&mut self, from: u32) {
        self.describe(from);
        assert_eq!(self.state(from), NeighborState::Full);
    }

    /// Gives the two descriptions of such a neighbour.
    pub fn describe(&mut self, from: u32) {
        let description = |flags: [bool; 3], sequence| DatabaseDescription {
            options: OPTIONS,
            interface_mtu: 1500,
            flags: anabranch_wire::ospf::DescriptionFlags {
                init: flags[0],
                more: flags[1],
                master: flags[2],
                ipv6_mtu_differs: false,
            },
            sequence,
            headers: Vec::new(),
        };
        self.give(from, false, Body::DatabaseDescription(description([true, true, true], 500)), None);
        self.give(from, false, Body::DatabaseDescription(description([false, false, true], 501)), None);
    }
}

pub fn hello(says: &Says) -> (Hello, Lls) {
    let count = |list: usize| says.lists[list].len() as u8;
    let mdr = MdrHello {
        sequence: says.sequence,
        full_adjacencies: says.a_bit,
        differential: says.differential,
        down: count(0),
        init: count(1),
        dependent: count(2),
        selected_advertised: count(3),
    };
    let hello = Hello {
        interface: InterfaceId(1),
        priority: 1,
        options: OPTIONS,
        hello_interval: 1,
        router_dead_interval: 3,
        designated_router: RouterId(says.parent),
        backup_designated_router: RouterId(says.backup_parent),
        neighbors: says.lists.iter().flatten().map(|router| RouterId(*router)).collect(),
    };
    (hello, Lls { tlvs: vec![Tlv::MdrHello(mdr)] })
}

/// A full Hello that lists these as unselected bidirectional neighbours.
pub fn hears(routers: &[u32]) -> Says {
    Says { lists: [vec![], vec![], vec![], vec![], routers.to_vec()], ..Says::default() }
}

/// A full Hello of an MDR with these bidirectional neighbours.
pub fn mdr_hears(own: u32, routers: &[u32]) -> Says {
    Says { parent: own, ..hears(routers) }
}

/// An instance of a Router-LSA with links to these.
pub fn router_lsa(router: u32, sequence: i32, links: &[u32]) -> AgedLsa {
    let link = |to: &u32| RouterLink {
        kind: LinkKind::PointToPoint,
        metric: 1,
        interface: InterfaceId(1),
        neighbor_interface: InterfaceId(1),
        neighbor: RouterId(*to),
    };
    let links = links.iter().map(link).collect();
    let body = LsaBody::Router(RouterLsa { flags: RouterFlags::default(), options: OPTIONS, links });
    let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(router), ..LsaKey::default() };
    AgedLsa { age: 1, lsa: Lsa::new(key, LsaSequence(LsaSequence::INITIAL.0 + sequence), body).unwrap() }
}

/// A router that is an MDR: it has the largest ID, and its neighbours are not linked.
pub fn mdr() -> Bench {
    let mut bench = Bench::new(100, |_, _| {});
    bench.pass_with(3, &[(1, hears(&[100])), (2, hears(&[100]))]);
    assert_eq!(bench.level(), Level::Mdr);
    bench.sent.clear();
    bench
}

/// A router that is a Backup MDR: 9 reaches 1 only through 8.
pub fn backup_mdr() -> (Bench, [(u32, Says); 3]) {
    let mut bench = Bench::new(5, |_, _| {});
    let hellos = [(9, mdr_hears(9, &[5, 8])), (8, mdr_hears(8, &[1, 5, 9])), (1, hears(&[5, 8]))];
    bench.pass_with(3, &hellos);
    assert_eq!(bench.level(), Level::BackupMdr);
    bench.sent.clear();
    (bench, hellos)
}

/// A router that is an MDR Other: all three larger neighbours are linked.
pub fn other() -> (Bench, [(u32, Says); 3]) {
    let mut bench = Bench::new(1, |_, _| {});
    let hellos = [(9, mdr_hears(9, &[1, 7, 8])), (8, hears(&[1, 7, 9])), (7, hears(&[1, 8, 9]))];
    bench.pass_with(3, &hellos);
    assert_eq!(bench.level(), Level::Other);
    bench.sent.clear();
    (bench, hellos)
}
