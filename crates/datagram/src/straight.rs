//! Chooses the uplink for each flow, and tracks the state of the uplinks.

use crate::config::PathReport;
use crate::datagram::{Datagram, Kind};
use crate::mappings::Mappings;
use anabranch_host::Layout;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{HashMap, VecDeque};

/// A query unanswered for this time is repeated over the other uplinks.
const ASK_OTHERS: Duration = Duration::from_millis(250);
/// Lifetime of a query.
const QUESTION: Duration = Duration::from_secs(10);
/// An uplink is silent when nothing arrived over it for this time although at least `FIRST` datagrams expect an answer.
const SILENCE: Duration = Duration::from_secs(2);
const UNANSWERED: u32 = 3;
/// Interval between probes of a silent uplink.
const PROBE: Duration = Duration::from_secs(5);
/// The first datagrams of a flow without any answer so far that count as expecting one.
const FIRST: u32 = 3;
/// Lifetime of an idle flow, the same as that of its mapping.
const IDLE: Duration = Duration::from_secs(120);
/// Most flows, and most queries. Datagrams beyond use the best uplink, and are not repeated.
const MOST: usize = 8_192;
/// Most unread datagrams.
const MOST_ARRIVED: usize = 4_096;
/// Bytes of the headers of UDP and IPv4.
const OUTER: u64 = 28;

/// The number used for queries to a resolver on this host.
const LOCAL: u64 = u64::MAX;

/// Query for the root's name servers, which every resolver knows: a probe.
const PROBE_QUESTION: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
/// The inside address of probes; no program has it.
pub const PROBE_INSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// An uplink, or the state left of one that is gone.
pub struct Lane {
    name: String,
    /// The kernel's index while the interface exists.
    index: Option<u32>,
    /// Whether it has an IPv4 address and an IPv6 address.
    families: [bool; 2],
    mappings: Mappings,
    /// Used only while no other uplink works.
    reserve: bool,
    /// Never used.
    barred: bool,
    health: Health,
    traffic: Traffic,
}

/// Whether datagrams sent over an uplink are answered.
#[derive(Default)]
struct Health {
    /// Since when answers are missing, and how many.
    missing: Option<(Instant, u32)>,
    /// Another uplink had an answer where this had none.
    outdone: bool,
    round_trip: Option<Duration>,
    probe: Option<Instant>,
    probed: Option<Instant>,
}

/// Counters.
#[derive(Clone, Copy, Default)]
struct Traffic {
    datagrams_sent: u64,
    bytes_sent: u64,
    datagrams_received: u64,
    bytes_received: u64,
}

impl Lane {
    /// A present uplink.
    pub fn new(name: String, index: u32, families: [bool; 2], mappings: Mappings) -> Self {
        let health = Health { probe: Some(Instant::ZERO), ..Health::default() };
        let traffic = Traffic::default();
        Self { name, index: Some(index), families, mappings, reserve: false, barred: false, health, traffic }
    }

    fn is_usable(&self, ipv6: bool) -> bool {
        self.index.is_some() && !self.barred && self.families.get(usize::from(ipv6)) == Some(&true)
    }

    fn is_silent(&self, now: Instant) -> bool {
        let missing = self.health.missing;
        self.health.outdone || missing.is_some_and(|(since, count)| count >= UNANSWERED && now.since(since) >= SILENCE)
    }

    /// The sort key: the lowest is the best uplink.
    fn rank(&self, now: Instant) -> (bool, bool, Duration) {
        (self.is_silent(now), self.reserve, self.health.round_trip.unwrap_or(Duration::from_secs(1)))
    }

    fn state(&self, now: Instant) -> LaneState {
        match (self.index, self.barred, self.is_silent(now)) {
            (None, ..) => LaneState::Gone,
            (_, true, _) => LaneState::Barred,
            (.., true) => LaneState::Silent,
            _ => LaneState::Usable,
        }
    }

    fn sent(&mut self, now: Instant, length: usize, wants_answer: bool) {
        self.traffic.datagrams_sent += 1;
        self.traffic.bytes_sent += length as u64 + OUTER;
        if wants_answer {
            let (since, count) = self.health.missing.unwrap_or((now, 0));
            self.health.missing = Some((since, count.saturating_add(1)));
        }
    }

    fn heard(&mut self, length: usize) {
        self.traffic.datagrams_received += 1;
        self.traffic.bytes_received += length as u64 + OUTER;
        self.health.missing = None;
        self.health.outdone = false;
    }

    fn measured(&mut self, sample: Duration) {
        let before = self.health.round_trip.unwrap_or(sample);
        self.health.round_trip = Some(Duration::from_nanos(before.as_nanos() / 8 * 7 + sample.as_nanos() / 8));
    }
}

/// The state of an uplink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneState {
    /// In use.
    Usable,
    /// Its datagrams are not answered: other uplinks are preferred.
    Silent,
    /// Excluded by the configuration.
    Barred,
    /// Its interface is gone, down, or without an address.
    Gone,
}

/// The key of a flow: both ends, and the program's identifier for echo requests.
type Flow = (Kind, SocketAddr, SocketAddr);

/// The uplink of a flow.
struct Pinned {
    lane: usize,
    used: Instant,
    /// Datagrams sent.
    sent: u32,
    answered: bool,
}

/// An unanswered query.
struct Question {
    datagram: Datagram,
    asked: Instant,
    lane: usize,
    /// Whether it was repeated over all uplinks.
    everywhere: bool,
}

/// Uplinks, flows, and unread datagrams.
pub struct Inner {
    nameservers: Vec<SocketAddr>,
    lanes: Vec<Lane>,
    flows: HashMap<Flow, Pinned>,
    questions: HashMap<(SocketAddr, SocketAddr, [u8; 2]), Question>,
    /// When a query of a program was answered last.
    answered: Instant,
    /// A query has waited for long, and none was answered since.
    no_resolver: bool,
    arrived: VecDeque<Datagram>,
    reserve: Vec<String>,
    barred: Vec<String>,
    /// A resolver on this host, and the sockets to it.
    local: Option<(Mappings, SocketAddr)>,
}

impl Inner {
    /// Creates the state without uplinks.
    pub fn new(nameservers: Vec<SocketAddr>) -> Self {
        Self {
            nameservers,
            lanes: Vec::new(),
            flows: HashMap::new(),
            questions: HashMap::new(),
            answered: Instant::ZERO,
            no_resolver: false,
            arrived: VecDeque::new(),
            reserve: Vec::new(),
            barred: Vec::new(),
            local: None,
        }
    }

    /// Sets a resolver on this host, queried when there is no other.
    pub fn set_local(&mut self, mappings: Mappings, resolver: SocketAddr) {
        self.local = Some((mappings, resolver));
    }

    /// Replaces the host's resolvers.
    pub fn set_nameservers(&mut self, nameservers: Vec<SocketAddr>) {
        self.nameservers = nameservers;
    }

    /// Whether this interface is already an uplink with these families.
    pub fn keeps(&self, name: &str, index: u32, families: [bool; 2]) -> bool {
        self.lanes.iter().any(|lane| lane.name == name && lane.index == Some(index) && lane.families == families)
    }

    /// Closes the uplinks whose names and indices are not in `there`.
    pub fn close_others(&mut self, there: &[(&str, u32)]) {
        for (number, lane) in (0..).zip(&mut self.lanes) {
            if lane.index.is_some_and(|index| !there.contains(&(lane.name.as_str(), index))) {
                lane.index = None;
                lane.mappings.forget(number);
            }
        }
    }

    /// Adds an uplink, or replaces the one of the same name.
    pub fn open(&mut self, mut lane: Lane, now: Instant) {
        lane.health.probe = Some(now);
        match self.lanes.iter_mut().find(|known| known.name == lane.name) {
            Some(known) => {
                lane.traffic = known.traffic;
                *known = lane;
            }
            None => self.lanes.push(lane),
        }
        let (reserve, barred) = (self.reserve.clone(), self.barred.clone());
        self.set_uses(&reserve, &barred);
    }

    /// Sets the uplinks used only while no other works, and those never used.
    pub fn set_uses(&mut self, reserve: &[String], barred: &[String]) {
        let all = self.lanes.iter().filter(|lane| lane.index.is_some()).all(|lane| barred.contains(&lane.name));
        for lane in &mut self.lanes {
            lane.reserve = reserve.contains(&lane.name);
            // If all are excluded none is: an excluded uplink is better than none.
            lane.barred = barred.contains(&lane.name) && !all;
        }
        (self.reserve, self.barred) = (reserve.to_vec(), barred.to_vec());
    }

    pub fn reaches(&self, ipv6: bool) -> bool {
        self.lanes.iter().any(|lane| lane.is_usable(ipv6))
    }

    /// The usable uplinks, best first.
    fn ranked(&self, now: Instant, ipv6: bool) -> Vec<usize> {
        let usable = self.lanes.iter().enumerate().filter(|(_, lane)| lane.is_usable(ipv6));
        let mut ranked: Vec<_> = usable.map(|(number, lane)| (lane.rank(now), number)).collect();
        ranked.sort();
        ranked.into_iter().map(|(_, number)| number).collect()
    }

    /// Forwards a datagram. Returns whether an uplink accepted it.
    pub fn send(&mut self, now: Instant, datagram: &Datagram) -> bool {
        if matches!(datagram.kind, Kind::Dns | Kind::DnsOverTcp) {
            return self.ask(now, datagram);
        }
        let ipv6 = datagram.outside.ip().to_canonical().is_ipv6();
        let flow = (datagram.kind, datagram.inside, datagram.outside);
        let ranked = self.ranked(now, ipv6);
        let pinned = self.flows.get(&flow);
        // A flow keeps its uplink, unless nothing returns over it and another uplink is better.
        let stays = pinned.map(|pinned| pinned.lane).filter(|lane| {
            let silent = self.lanes.get(*lane).is_some_and(|lane| lane.is_silent(now));
            ranked.contains(lane) && (!silent || ranked.first() == Some(lane))
        });
        let wants_answer = pinned.is_none_or(|pinned| pinned.answered || pinned.sent < FIRST);
        let wants_answer = wants_answer || datagram.kind == Kind::Echo;
        let order = stays.into_iter().chain(ranked.into_iter().filter(|lane| Some(*lane) != stays));
        for number in order {
            let Some(lane) = self.lanes.get_mut(number) else { continue };
            if !lane.mappings.pass(now, number as u64, datagram, None) {
                continue;
            }
            lane.sent(now, datagram.payload.len(), wants_answer);
            let room = self.flows.len() < MOST;
            match self.flows.get_mut(&flow) {
                Some(pinned) => (pinned.lane, pinned.used, pinned.sent) = (number, now, pinned.sent.saturating_add(1)),
                None if room => {
                    self.flows.insert(flow, Pinned { lane: number, used: now, sent: 1, answered: false });
                }
                None => {}
            }
            return true;
        }
        false
    }

    /// Sends a query to the resolver that the program named, over the best uplink. A repeated query goes to all
    /// resolvers over all uplinks.
    fn ask(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let Some(identifier) = datagram.payload.first_chunk().copied() else { return false };
        let id = (datagram.inside, datagram.outside, identifier);
        let again = self.questions.contains_key(&id);
        if again {
            return self.ask_everywhere(now, datagram);
        }
        let targets = self.targets(datagram);
        let Some(target) = targets.first() else {
            let Some((mappings, resolver)) = &mut self.local else { return false };
            return mappings.pass(now, LOCAL, datagram, Some(*resolver));
        };
        for number in self.ranked(now, target.is_ipv6()) {
            let Some(lane) = self.lanes.get_mut(number) else { continue };
            if lane.mappings.pass(now, number as u64, datagram, Some(*target)) {
                lane.sent(now, datagram.payload.len(), true);
                if self.questions.len() < MOST {
                    let question = Question { datagram: datagram.clone(), asked: now, lane: number, everywhere: false };
                    self.questions.insert(id, question);
                }
                return true;
            }
        }
        false
    }

    /// The resolvers for a query: the one that the program named, unless that is our own address, then the host's.
    fn targets(&self, datagram: &Datagram) -> Vec<SocketAddr> {
        let named = SocketAddr::new(datagram.outside.ip().to_canonical(), datagram.outside.port());
        let mut targets: Vec<SocketAddr> = Vec::new();
        let known = self.nameservers.iter().copied();
        for target in Some(named).filter(|named| Layout::of_address(named.ip()).is_none()).into_iter().chain(known) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }

    fn ask_everywhere(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let mut taken = false;
        for target in self.targets(datagram) {
            let ranked = self.ranked(now, target.is_ipv6());
            // Reserve uplinks are not queried while others seem alive.
            let reserve = ranked.iter().all(|number| self.lanes.get(*number).is_none_or(|lane| lane.reserve));
            let lively = ranked
                .iter()
                .any(|number| self.lanes.get(*number).is_some_and(|lane| !lane.rank(now).0 && !lane.reserve));
            for number in ranked {
                let Some(lane) = self.lanes.get_mut(number).filter(|lane| reserve || !lively || !lane.reserve) else {
                    continue;
                };
                if lane.mappings.pass(now, number as u64, datagram, Some(target)) {
                    lane.sent(now, datagram.payload.len(), false);
                    taken = true;
                }
            }
        }
        taken
    }

    /// Handles an arrival over an uplink.
    pub fn hear(&mut self, now: Instant, number: u64, datagram: Datagram) {
        if number == LOCAL {
            return self.arrive(datagram);
        }
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(lane) = self.lanes.get_mut(number) else { return };
        lane.heard(datagram.payload.len());
        if datagram.inside == PROBE_INSIDE {
            if let Some(sample) = lane.health.probed.take().map(|probed| now.since(probed)) {
                lane.measured(sample);
            }
            return;
        }
        if matches!(datagram.kind, Kind::Dns | Kind::DnsOverTcp) {
            let Some(identifier) = datagram.payload.first_chunk().copied() else { return };
            let Some(question) = self.questions.remove(&(datagram.inside, datagram.outside, identifier)) else {
                return;
            };
            (self.answered, self.no_resolver) = (now, false);
            if question.lane == number {
                lane.measured(now.since(question.asked));
            } else if let Some(first) = self.lanes.get_mut(question.lane) {
                first.health.outdone = first.health.missing.is_some();
                first.health.probe = Some(now + PROBE);
            }
        } else if let Some(pinned) = self.flows.get_mut(&(datagram.kind, datagram.inside, datagram.outside)) {
            pinned.answered = true;
        }
        self.arrive(datagram);
    }

    fn arrive(&mut self, datagram: Datagram) {
        if self.arrived.len() < MOST_ARRIVED {
            self.arrived.push_back(datagram);
        }
    }

    /// The next datagram for a program.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.arrived.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Instant {
        let questions = self.questions.values().filter(|question| !question.everywhere);
        let questions = questions.map(|question| question.asked + ASK_OTHERS);
        let probes = self.lanes.iter().filter_map(|lane| lane.health.probe);
        questions.chain(probes).min().unwrap_or(Instant::NEVER)
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut late = Vec::new();
        for question in self.questions.values_mut() {
            if !question.everywhere && question.asked + ASK_OTHERS <= now {
                question.everywhere = true;
                late.push(question.datagram.clone());
            }
        }
        for datagram in late {
            self.ask_everywhere(now, &datagram);
        }
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if lane.health.probe.is_none_or(|due| due > now) {
                continue;
            }
            lane.health.probe = None;
            if lane.index.is_some() && !lane.barred {
                lane.health.probed = Some(now);
                probe(lane, number, &self.nameservers, now);
            }
        }
    }

    /// Removes expired flows and queries, and probes silent uplinks.
    pub fn sweep(&mut self, now: Instant) {
        self.questions.retain(|_, question| now.since(question.asked) < QUESTION);
        self.flows.retain(|_, pinned| now.since(pinned.used) < IDLE);
        self.local.iter_mut().for_each(|(mappings, _)| mappings.sweep(now));
        for lane in &mut self.lanes {
            lane.mappings.sweep(now);
            if lane.is_silent(now) && lane.health.probe.is_none() {
                lane.health.probe = Some(now + PROBE);
            }
        }
    }

    /// Whether a query of a program has waited for long, and none was answered since it was asked.
    pub fn hears_no_resolver(&mut self, now: Instant) -> bool {
        let asked = self.questions.values().map(|question| question.asked).min();
        self.no_resolver |= asked.is_some_and(|asked| asked > self.answered && now.since(asked) >= SILENCE);
        self.no_resolver
    }

    /// The state of each uplink.
    pub fn states(&self, now: Instant) -> Vec<(String, LaneState)> {
        self.lanes.iter().map(|lane| (lane.name.clone(), lane.state(now))).collect()
    }

    /// The names of the usable uplinks of either family, best first.
    pub fn preferred(&self, now: Instant) -> Vec<String> {
        let mut numbers = self.ranked(now, false);
        numbers.extend(self.ranked(now, true));
        let mut names: Vec<String> = Vec::new();
        for lane in numbers.into_iter().filter_map(|number| self.lanes.get(number)) {
            if !names.contains(&lane.name) {
                names.push(lane.name.clone());
            }
        }
        names
    }

    /// A report on each uplink.
    pub fn report(&self, now: Instant) -> Vec<PathReport> {
        let report = |lane: &Lane| PathReport {
            name: lane.name.clone(),
            usable: lane.state(now) == LaneState::Usable,
            round_trip: lane.health.round_trip,
            loss: 0.0,
            jitter: Duration::ZERO,
            datagrams_sent: lane.traffic.datagrams_sent,
            bytes_sent: lane.traffic.bytes_sent,
            datagrams_received: lane.traffic.datagrams_received,
            bytes_received: lane.traffic.bytes_received,
        };
        self.lanes.iter().map(report).collect()
    }
}

/// Queries the resolvers over an uplink only to see whether it works.
fn probe(lane: &mut Lane, number: usize, nameservers: &[SocketAddr], now: Instant) {
    for target in nameservers.iter().filter(|target| lane.families.get(usize::from(target.is_ipv6())) == Some(&true)) {
        let payload = Bytes::from_static(PROBE_QUESTION);
        let question = Datagram { kind: Kind::Dns, inside: PROBE_INSIDE, outside: *target, payload };
        lane.mappings.pass(now, number as u64, &question, Some(*target));
        lane.traffic.datagrams_sent += 1;
        lane.traffic.bytes_sent += PROBE_QUESTION.len() as u64 + OUTER;
    }
}
