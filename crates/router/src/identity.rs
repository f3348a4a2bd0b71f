//! The Router ID of this host: how it is chosen, and when a router that has the same one makes it change.
//!
//! RFC 5340 says that a Router ID is unique and not what to do if it is not. Two routers with one ID replace each other's
//! LSAs for ever, and neither hears the other. A router whose ID was chosen by its user keeps it and says so. One that
//! chose by itself draws another: at once if it hears the other and its own link-local address is the larger one, so that
//! one of the two changes; otherwise when the conflict has lasted for RouterDeadInterval and a random time. What was drawn is
//! kept on disk, with the ID that it replaces.

use super::RouteError;
use super::config::RouteConfig;
use super::ground::{Device, Ground};
use super::kept::Keeping;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::ospf::RouterId;
use std::net::{IpAddr, Ipv6Addr};

/// Own Router-LSAs that were replaced until another router is assumed to originate them. A router that
/// restarts finds its old ones: one, or a few where parts of the mesh were separate.
const OUTDONE: usize = 4;

/// How long a sighting counts, at least.
const MEMORY: Duration = Duration::from_secs(20);

/// How long an own Router-LSA that was replaced counts, in times of RxmtInterval. Two routers replace each other's in
/// turns, and one between them refuses what comes before MinLSArrival: each turn waits for a retransmission, and each
/// router is outdone once in two of them.
const TURNS: u64 = 12;
/// Instances less than this apart are copies of one, flooded by several neighbours. RxmtInterval is longer.
const COPIES: Duration = Duration::from_millis(500);

/// Least time between two changes; it doubles with each, so that a forger cannot keep a router changing.
const HOLD: Duration = Duration::from_secs(10);

/// Most doublings.
const DOUBLINGS: u32 = 8;

/// The Router ID, and what was seen of others that have it.
#[derive(Debug)]
pub(super) struct Identity {
    pub id: RouterId,
    /// The user chose it.
    fixed: bool,
    /// Packets and LSAs of another router with this ID.
    pub sightings: u64,
    /// Changes of the ID.
    pub changes: u32,
    /// When the present conflict began, and when it was last seen.
    conflict: Option<(Instant, Instant)>,
    /// A larger link-local address than the other's: this router changes at once.
    yields: bool,
    outdone: Vec<Instant>,
    /// The last time, without copies.
    lost: Option<Instant>,
    told: bool,
    keeping: Keeping,
    not_before: Instant,
    /// From 0 to 1, of which routers of one ID have different ones.
    jitter: f64,
}

impl Identity {
    /// Chooses a Router ID for a router with these settings on this host.
    pub(super) fn choose(config: &RouteConfig, ground: &Ground) -> Result<Self, RouteError> {
        let own = of_addresses(config, ground);
        let state = config.state.clone().filter(|_| config.router_id.is_none());
        let mut keeping = Keeping::new(own, state);
        let before = keeping.before();
        let id = match (config.router_id.map(|id| RouterId(id.to_bits())), before.or(own)) {
            (Some(chosen), _) | (None, Some(chosen)) => chosen,
            (None, None) if keeping.works() => random()?,
            (None, None) => of_hardware(config, ground).map_or_else(random, Ok)?,
        };
        let mut identity = Self {
            id,
            keeping,
            fixed: config.router_id.is_some(),
            sightings: 0,
            changes: 0,
            conflict: None,
            yields: false,
            outdone: Vec::new(),
            lost: None,
            told: false,
            not_before: Instant::ZERO,
            jitter: f64::from(random()?.0) / f64::from(u32::MAX),
        };
        if before.or(own).is_none() {
            identity.keeping.keep(id);
        }
        Ok(identity)
    }

    /// A packet with this router's ID came from another router, `other`, on an interface whose address is `own`.
    pub(super) fn hear(&mut self, now: Instant, own: Option<Ipv6Addr>, other: Ipv6Addr) {
        self.yields |= own.is_some_and(|own| own > other);
        self.see(now, MEMORY);
    }

    /// A Router-LSA of this router was replaced by one that it did not originate. `interval` is RxmtInterval.
    pub(super) fn lose(&mut self, now: Instant, interval: Duration) {
        // Copies of one instance come from several neighbours at about the same time.
        if self.lost.is_some_and(|last| now.since(last) < COPIES) {
            return;
        }
        self.lost = Some(now);
        let memory = MEMORY.max(interval * TURNS);
        self.outdone.retain(|at| now.since(*at) < memory);
        if self.outdone.len() < OUTDONE {
            self.outdone.push(now);
        }
        if self.outdone.len() >= OUTDONE {
            self.see(now, memory);
        }
    }

    /// The other router was seen. The conflict is the same if that was less than `memory` ago.
    fn see(&mut self, now: Instant, memory: Duration) {
        self.sightings += 1;
        let began = self.conflict.filter(|(_, last)| now.since(*last) < memory).map_or(now, |(began, _)| began);
        self.conflict = Some((began, now));
    }

    /// A sentence about an ID that cannot be kept, or a new conflict that this router does not end.
    pub(super) fn complaint(&mut self) -> Option<String> {
        if let Some(unkept) = self.keeping.failure.take() {
            return Some(unkept);
        }
        if !self.fixed || self.conflict.is_none() || core::mem::replace(&mut self.told, true) {
            return None;
        }
        let id = std::net::Ipv4Addr::from_bits(self.id.0);
        Some(format!("another router has the Router ID {id} too, which was given with --router-id: change one of them"))
    }

    /// Whether it is time for another ID. `patience` is RouterDeadInterval.
    pub(super) fn must_change(&self, now: Instant, patience: Duration) -> bool {
        let Some((began, last)) = self.conflict else { return false };
        let lasting = last.since(began) >= patience + patience.mul_f64(self.jitter);
        !self.fixed && now >= self.not_before && (self.yields || lasting)
    }

    /// Takes another ID. Returns a sentence about it.
    pub(super) fn change(&mut self, now: Instant) -> Result<String, RouteError> {
        let before = std::net::Ipv4Addr::from_bits(self.id.0);
        let id = random()?;
        self.not_before = now + HOLD * (1 << self.changes.min(DOUBLINGS));
        self.changes += 1;
        (self.id, self.conflict, self.yields) = (id, None, false);
        self.outdone.clear();
        self.keeping.keep(id);
        let id = std::net::Ipv4Addr::from_bits(id.0);
        Ok(format!("another router has the Router ID {before} too: this one is {id} from now on"))
    }
}

/// The interfaces that were named.
fn named<'a>(config: &'a RouteConfig, ground: &'a Ground) -> impl Iterator<Item = &'a Device> {
    let names = config.interfaces.iter().map(|interface| &interface.name).chain(&config.lanes);
    names.filter_map(|name| ground.devices.get(name))
}

/// An ID from the addresses of the loopback interface and of the interfaces that were named, in this order. Other
/// interfaces do not count: bridges of containers and virtual machines have the same address on every host.
fn of_addresses(config: &RouteConfig, ground: &Ground) -> Option<RouterId> {
    let loopback = ground.devices.values().filter(|device| device.loopback);
    highest_ipv4(loopback).or_else(|| highest_ipv4(named(config, ground))).map(RouterId)
}

/// An ID from a hardware address: neighbours' differ in the last bytes.
fn of_hardware(config: &RouteConfig, ground: &Ground) -> Option<RouterId> {
    let last = |device: &Device| device.hardware.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    named(config, ground).filter_map(last).find(|number| *number != 0).map(RouterId)
}

fn highest_ipv4<'a>(devices: impl Iterator<Item = &'a Device>) -> Option<u32> {
    let addresses = devices.flat_map(|device| &device.networks).filter_map(|network| match network.address {
        IpAddr::V4(address) if !address.is_loopback() => Some(address.to_bits()),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    });
    addresses.max()
}

fn random() -> Result<RouterId, RouteError> {
    let mut bytes = [0; 4];
    let failed = |error| RouteError::system("draw a random number")(std::io::Error::other(error));
    getrandom::fill(&mut bytes).map_err(failed)?;
    // Zero is no Router ID.
    Ok(RouterId(u32::from_be_bytes(bytes).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MeshInterface;
    use crate::ground::Network;

    fn device(name: &str, addresses: &[&str]) -> Device {
        let networks = addresses.iter().map(|text| Network { address: text.parse().expect("an address"), length: 24 });
        Device {
            index: 1,
            name: name.to_owned(),
            mtu: 1_500,
            loopback: name == "lo",
            hardware: vec![2, 0, 0, 0, 0, 9],
            multicast: true,
            running: true,
            link_local: None,
            networks: networks.collect(),
        }
    }

    fn chosen(devices: &[Device]) -> Identity {
        let named = MeshInterface { name: "e0".to_owned(), point_to_point: false, cost: None };
        let config = RouteConfig { interfaces: vec![named], ..RouteConfig::default() };
        let devices = devices.iter().map(|device| (device.name.clone(), device.clone())).collect();
        let identity = Identity::choose(&config, &Ground { devices }).expect("there are random numbers");
        Identity { jitter: 0.0, ..identity }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn interfaces_that_were_not_named_do_not_count() {
        let docker = device("docker0", &["172.17.0.1"]);
        let id = |lo: &[&str], e0: &[&str]| {
            let devices = [device("lo", lo), device("e0", e0), docker.clone()];
            std::net::Ipv4Addr::from_bits(chosen(&devices).id.0).to_string()
        };
        assert_eq!(id(&["127.0.0.1", "10.0.0.1"], &["192.168.0.1"]), "10.0.0.1");
        assert_eq!(id(&["127.0.0.1"], &["10.0.0.3", "10.0.0.4"]), "10.0.0.4");
        assert_eq!(id(&["127.0.0.1"], &["fe80::1"]), "0.0.0.9");
    }

    #[test]
    fn a_router_without_ipv4_or_one_that_had_to_change_has_the_same_id_after_a_restart() {
        let directory = std::env::temp_dir().join(format!("anabranch-identity-{}", std::process::id()));
        let start = |address: &[&str]| {
            let e0 = device("e0", address);
            let named = MeshInterface { name: "e0".to_owned(), point_to_point: false, cost: None };
            let (interfaces, state) = (vec![named], Some(directory.clone()));
            let config = RouteConfig { interfaces, state, ..RouteConfig::default() };
            let ground = Ground { devices: [(e0.name.clone(), e0)].into() };
            Identity::choose(&config, &ground).expect("there are random numbers")
        };
        let first = start(&[]).id;
        assert!(first != RouterId(9), "not from the hardware address, which may change");
        assert_eq!(start(&[]).id, first);
        // It is given an address, and then another has the same one.
        let mut changed = start(&["10.9.9.9"]);
        assert_eq!(changed.id, RouterId(0x0a09_0909));
        changed.change(at(1)).expect("there are random numbers");
        let second = changed.id;
        drop(changed);
        assert_eq!(start(&["10.9.9.9"]).id, second);
        assert_eq!(start(&["10.9.9.8"]).id, RouterId(0x0a09_0908));
        // A second router of this host has another one, and says why.
        let running = start(&["10.9.9.9"]);
        let mut beside = start(&[]);
        assert!(beside.complaint().is_some_and(|text| text.ends_with("another router uses it")));
        assert_eq!((running.id, beside.id), (second, RouterId(9)));
        std::fs::remove_dir_all(directory).expect("it is there");
    }

    #[test]
    fn of_two_that_hear_each_other_the_one_with_the_larger_address_changes_at_once() {
        let (low, high) = (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2));
        let (mut one, mut other) = (chosen(&[device("e0", &[])]), chosen(&[device("e0", &[])]));
        one.hear(at(1), Some(low), high);
        other.hear(at(1), Some(high), low);
        let patience = Duration::from_secs(3);
        assert!(!one.must_change(at(1), patience) && other.must_change(at(1), patience));
        // The other one does not change, for example because its user chose its ID.
        one.hear(at(4), Some(low), high);
        one.jitter = 0.5;
        assert!(!one.must_change(at(4), patience));
        one.jitter = 0.0;
        assert!(one.must_change(at(4), patience));
        let before = one.id;
        one.change(at(4)).expect("there are random numbers");
        assert!(one.id != before && !one.must_change(at(9), patience));
        // Not again before the hold time.
        one.hear(at(10), Some(high), low);
        assert!(!one.must_change(at(13), patience) && one.must_change(at(14), patience));
    }

    #[test]
    fn lsas_of_before_a_restart_are_no_conflict_and_lsas_without_end_are() {
        let mut identity = chosen(&[device("e0", &[])]);
        let lose = |seconds: core::ops::Range<u64>, identity: &mut Identity| {
            seconds.for_each(|second| identity.lose(at(second), Duration::from_secs(1)));
        };
        lose(0..3, &mut identity);
        lose(30..33, &mut identity);
        assert_eq!(identity.sightings, 0);
        lose(33..37, &mut identity);
        assert_eq!(identity.sightings, 4);
        assert!(identity.must_change(at(37), Duration::from_secs(3)));
    }

    #[test]
    fn copies_of_one_instance_from_many_neighbours_count_once() {
        let mut identity = chosen(&[device("e0", &[])]);
        let burst = |from: u64, identity: &mut Identity| {
            (0..20).for_each(|copy| identity.lose(at(from) + Duration::from_millis(20 * copy), Duration::from_secs(1)));
        };
        [0, 1, 2].into_iter().for_each(|second| burst(second, &mut identity));
        assert_eq!(identity.sightings, 0);
        burst(3, &mut identity);
        assert_eq!(identity.sightings, 1);
    }

    #[test]
    fn routers_that_outdo_each_other_once_in_two_retransmissions_are_in_conflict() {
        let mut identity = chosen(&[device("e0", &[])]);
        let interval = Duration::from_secs(7);
        let mut turns = (0..).step_by(14).map(at);
        turns.by_ref().take(3).for_each(|now| identity.lose(now, interval));
        assert_eq!(identity.sightings, 0);
        let patience = Duration::from_secs(6);
        turns.by_ref().take(2).for_each(|now| identity.lose(now, interval));
        assert!(identity.must_change(at(56), patience), "56 s after the first");
        assert_eq!(identity.sightings, 2);
    }

    #[test]
    fn an_id_that_the_user_chose_stays_and_the_conflict_is_told_once() {
        let config = RouteConfig { router_id: Some([10, 0, 0, 1].into()), ..RouteConfig::default() };
        let mut identity = Identity::choose(&config, &Ground::default()).expect("it was chosen");
        assert_eq!(identity.complaint(), None);
        (0..9).for_each(|second| identity.hear(at(second), Some(Ipv6Addr::LOCALHOST), Ipv6Addr::UNSPECIFIED));
        assert!(!identity.must_change(at(9), Duration::from_secs(3)));
        assert!(identity.complaint().is_some_and(|text| text.contains("10.0.0.1")));
        assert_eq!(identity.complaint(), None);
    }
}
