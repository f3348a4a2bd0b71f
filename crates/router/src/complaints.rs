//! Reports of rejected packets, beside the counters: each reason once per sender, and a limited number in total.
//!
//! Any station can send anything from any address. The limits keep a flood of bad packets, or of valid ones that do not
//! match the configuration, from filling the log or the memory.

use super::transport::Refusal;
use anabranch_routing::counters::{Counters, DropReason};
use anabranch_wire::ospf::RouterId;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// Most reports during a router's lifetime.
pub(super) const MOST: usize = 64;

/// Reasons for drops that point to an attacker or a wrong configuration, with their text.
const SUSPICIOUS: [(DropReason, &str); 18] = [
    (DropReason::Area, "belongs to another area"),
    (DropReason::RouterId, "has no router ID"),
    (DropReason::DuplicateRouterId, "has the router ID of this router"),
    (DropReason::DuplicateNeighbor, "has the router ID of another neighbour"),
    (DropReason::Source, "does not come from a link-local address"),
    (DropReason::HelloInterval, "has another HelloInterval"),
    (DropReason::DeadInterval, "has another RouterDeadInterval"),
    (DropReason::Options, "has other options E and N"),
    (DropReason::AddressFamily, "lacks the AF bit of RFC 5838"),
    (DropReason::NoMdrHello, "is a Hello without what RFC 5614 adds"),
    (DropReason::DesignatedRouter, "tells of a Designated Router, and this end is point-to-point"),
    (DropReason::HelloLists, "has lists that are longer than the Hello, or lost neighbours in a full Hello"),
    (DropReason::NeighborLimit, "comes from one neighbour too many"),
    (DropReason::Mtu, "has a larger MTU"),
    (DropReason::LsaChecksum, "holds an advertisement with a wrong checksum"),
    (DropReason::LsaHeader, "holds an advertisement whose header cannot be"),
    (DropReason::LsaType, "holds an advertisement of an unknown type or scope that may not be kept"),
    (DropReason::LsaLimit, "holds an advertisement for which the database has no room"),
];

/// Counts of [`SUSPICIOUS`].
pub(super) type Drops = [u64; SUSPICIOUS.len()];

/// The number of drops so far, by reason.
pub(super) fn drops(counters: &Counters) -> Drops {
    SUSPICIOUS.map(|(reason, _)| counters.dropped(reason))
}

const fn sentence(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Malformed => "is no OSPFv3 packet",
        Refusal::Checksum => "has a wrong checksum",
        Refusal::NoKey => "is authenticated, and this router has no key: start it with --key",
        Refusal::NotAuthentic => "is not authentic: another key, another key number, or none",
        Refusal::Replayed => "has been received before",
        Refusal::Signalling => "has damaged link-local signalling, which is left out",
        Refusal::Advertisement => "holds a damaged advertisement, which is left out",
    }
}

/// The reports made so far.
#[derive(Default)]
pub(super) struct Complaints {
    told: BTreeSet<(&'static str, String, Ipv6Addr)>,
    ended: bool,
    /// Neighbours, and interfaces, whose first loss was told.
    losses: BTreeSet<(Option<std::net::Ipv4Addr>, String)>,
    /// Reports of neighbours that restart.
    restarts: usize,
}

impl Complaints {
    /// Records a packet refused on input. Returns the report, if it is new.
    pub(super) fn refused(&mut self, refusal: Refusal, interface: &str, source: Ipv6Addr) -> Option<String> {
        self.news(sentence(refusal), interface, source)
    }

    /// Records the router's drops from a packet. Returns the report, if it is new.
    pub(super) fn dropped(
        &mut self,
        before: &Drops,
        after: &Drops,
        interface: &str,
        source: Ipv6Addr,
    ) -> Option<String> {
        let mut all = SUSPICIOUS.iter().zip(before.iter().zip(after));
        let (_, what) = all.find(|(_, (before, after))| before < after)?.0;
        self.news(what, interface, source)
    }

    /// Records a packet that this router sent on another of its interfaces. Returns the report, if it is new.
    pub(super) fn own(&mut self, interface: &str, other: &str) -> Option<String> {
        let key = ("its own packets", interface.to_owned(), Ipv6Addr::UNSPECIFIED);
        (self.told.len() < MOST && self.told.insert(key))
            .then(|| format!("{interface} hears what this router sends on {other}: both are in one network"))
    }

    /// Records a packet of another instance. Of all senders one is reported: several meshes may share a link, and a router of one
    /// family hears both instances of the others.
    pub(super) fn of_another_instance(&mut self, number: u8, interface: &str, source: Ipv6Addr) -> Option<String> {
        let key = ("another instance", interface.to_owned(), Ipv6Addr::UNSPECIFIED);
        (self.told.len() < MOST && self.told.insert(key)).then(|| {
            format!(
                "a packet of {source} on {interface} is of instance {number}, which this router does not run (--instance, --family); \
                 those of other instances are only counted"
            )
        })
    }

    /// Records a neighbour whose exchange of databases does not end. Returns the report, if it is new.
    pub(super) fn unfinished(
        &mut self,
        router: RouterId,
        interface: &str,
        source: Ipv6Addr,
        other_mtu: Option<u16>,
    ) -> Option<String> {
        let told = self.news("does not finish the exchange of databases", interface, source)?;
        if !told.contains("exchange") {
            return Some(told);
        }
        let router = std::net::Ipv4Addr::from_bits(router.0);
        let why = other_mtu.map_or(String::new(), |mtu| format!(", since its MTU is {mtu}"));
        Some(format!(
            "{router} ({source} on {interface}) does not finish the exchange of databases{why}: it is no neighbour for a \
             while, and the next times are only counted"
        ))
    }

    /// Records a neighbour with a bidirectional link that is lost. Returns the report, if it is new.
    pub(super) fn lost(&mut self, router: RouterId, interface: &str) -> Option<String> {
        let router = std::net::Ipv4Addr::from_bits(router.0);
        let is_new = self.is_first(Some(router), interface);
        is_new.then(|| format!("the neighbour {router} on {interface} is lost; the next times are only counted"))
    }

    /// Records an interface of the mesh that can no longer send. Returns the report, if it is new.
    pub(super) fn down(&mut self, interface: &str) -> Option<String> {
        self.is_first(None, interface).then(|| {
            format!("{interface} is down or has no link-local address, and is used when that is over; the next times are only counted")
        })
    }

    /// Takes a report of a neighbour that restarts, which any station can say each second. Returns what to report.
    pub(super) fn restart(&mut self, news: String) -> Option<String> {
        self.restarts += 1;
        match self.restarts {
            ..=MOST => Some(news),
            number if number == MOST + 1 => {
                Some("of further neighbours that restart only their number is kept (--show status)".to_owned())
            }
            _ => None,
        }
    }

    /// Whether a neighbour or an interface is lost for the first time. There are as many of these reports as of the others.
    fn is_first(&mut self, router: Option<std::net::Ipv4Addr>, interface: &str) -> bool {
        self.losses.len() < MOST && self.losses.insert((router, interface.to_owned()))
    }

    fn news(&mut self, what: &'static str, interface: &str, source: Ipv6Addr) -> Option<String> {
        if self.told.len() >= MOST {
            let last = "of further packets that are not used only their number is kept (--show status)";
            return (!core::mem::replace(&mut self.ended, true)).then(|| last.to_owned());
        }
        let is_new = self.told.insert((what, interface.to_owned(), source));
        is_new.then(|| format!("a packet of {source} on {interface} {what}; the next ones are only counted"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
    }

    #[test]
    fn each_reason_is_told_once_for_each_sender() {
        let mut complaints = Complaints::default();
        let first = complaints.refused(Refusal::Checksum, "e0", source(1));
        assert_eq!(
            first.as_deref(),
            Some("a packet of fe80::1 on e0 has a wrong checksum; the next ones are only counted")
        );
        assert_eq!(complaints.refused(Refusal::Checksum, "e0", source(1)), None);
        assert!(complaints.refused(Refusal::Replayed, "e0", source(1)).is_some());
        assert!(complaints.refused(Refusal::Checksum, "e0", source(2)).is_some());
        assert!(complaints.refused(Refusal::Checksum, "e1", source(1)).is_some());
    }

    #[test]
    fn another_instance_is_told_once_for_each_interface() {
        let mut complaints = Complaints::default();
        let told = complaints.of_another_instance(3, "e0", source(1)).expect("it is news");
        assert!(
            told.starts_with("a packet of fe80::1 on e0 is of instance 3, which this router does not run"),
            "{told}"
        );
        assert_eq!(complaints.of_another_instance(64, "e0", source(2)), None);
        assert!(complaints.of_another_instance(3, "e1", source(1)).is_some());
    }

    #[test]
    fn a_forger_with_ever_new_addresses_fills_neither_log_nor_memory() {
        let mut complaints = Complaints::default();
        let told = (0..10_000).filter_map(|number| complaints.refused(Refusal::Malformed, "e0", source(number)));
        // The last report says that no more follow.
        assert_eq!(told.count(), MOST + 1);
        assert_eq!(complaints.told.len(), MOST);
    }

    #[test]
    fn a_neighbour_that_restarts_for_ever_does_not_fill_the_log() {
        let mut complaints = Complaints::default();
        let told: Vec<String> = (0..1_000).filter_map(|number| complaints.restart(number.to_string())).collect();
        assert_eq!(told.len(), MOST + 1);
        assert_eq!((told[0].as_str(), told[63].as_str()), ("0", "63"));
        assert!(told[64].contains("--show status"), "{}", told[64]);
    }

    #[test]
    fn a_neighbour_and_an_interface_that_come_and_go_are_told_once() {
        let mut complaints = Complaints::default();
        let lost = complaints.lost(RouterId(0x0a00_0001), "e0");
        assert_eq!(lost.as_deref(), Some("the neighbour 10.0.0.1 on e0 is lost; the next times are only counted"));
        assert!(complaints.lost(RouterId(0x0a00_0001), "e0").is_none());
        assert!(complaints.lost(RouterId(0x0a00_0001), "e1").is_some());
        assert!(complaints.down("e0").is_some_and(|text| text.starts_with("e0 is down")));
        assert!(complaints.down("e0").is_none());
    }

    #[test]
    fn what_the_router_drops_is_told_by_its_reason() {
        let (mut complaints, before) = (Complaints::default(), Drops::default());
        let mut after = before;
        assert_eq!(complaints.dropped(&before, &after, "e0", source(1)), None);
        after[5] += 1;
        let told = complaints.dropped(&before, &after, "e0", source(1)).expect("it is news");
        assert!(told.contains("another HelloInterval"), "{told}");
        assert_eq!(complaints.dropped(&before, &after, "e0", source(1)), None);
    }
}
