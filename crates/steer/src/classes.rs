//! Connections by rule: which path manager steers them over which uplinks, or that they are left alone.

use crate::addresses::interface_name;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::time::Instant;
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Event;
use anabranch_steering::sample::{ConnectionSample, HostSample, Owner, Token};
use anabranch_steering::settings::Settings;
use anabranch_steering::status::{ConnectionStatus, Counters, Decision};
use anabranch_steering::steering::Steering;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// What a rule asks of a connection; what is not said fits all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Condition {
    /// The peer's address at the beginning, and how many of its first bits count.
    pub remote: Option<(IpAddr, u8)>,
    /// The peer's port at the beginning.
    pub port: Option<u16>,
    /// The user whose socket it is.
    pub user: Option<u32>,
    /// The control group of its socket, by its identifier: the inode of its directory.
    pub cgroup: Option<u64>,
}

impl Condition {
    fn needs_owner(&self) -> bool {
        self.user.is_some() || self.cgroup.is_some()
    }

    fn fits(&self, remote: SocketAddr, owner: Option<Owner>) -> bool {
        self.remote.is_none_or(|prefix| is_within(remote.ip(), prefix))
            && self.port.is_none_or(|port| port == remote.port())
            && self.user.is_none_or(|user| owner.is_some_and(|owner| owner.uid == user))
            && self.cgroup.is_none_or(|cgroup| owner.is_some_and(|owner| owner.cgroup == Some(cgroup)))
    }
}

fn is_within(address: IpAddr, (prefix, length): (IpAddr, u8)) -> bool {
    let same = |bits: u128, width: u8| length == 0 || (bits << (128 - width)).leading_zeros() >= u32::from(length);
    match (address.to_canonical(), prefix) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(u128::from(u32::from(a) ^ u32::from(b)), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(u128::from(a) ^ u128::from(b), 128),
        _ => false,
    }
}

/// What steers a class of connections.
pub struct Class {
    pub manager: Box<dyn PathManager>,
    /// Names of interfaces; none: all uplinks.
    pub uplinks: Vec<String>,
}

/// A rule.
pub struct Rule {
    pub condition: Condition,
    /// None: connections are left alone.
    pub class: Option<Class>,
}

struct Machine {
    steering: Steering,
    uplinks: Vec<String>,
}

impl Machine {
    fn new(class: Class, settings: Settings) -> Self {
        Self { steering: Steering::new(class.manager, settings), uplinks: class.uplinks }
    }

    fn uses(&self, interface: &str) -> bool {
        self.uplinks.is_empty() || self.uplinks.iter().any(|uplink| uplink == interface)
    }
}

/// The machines of all classes, driven as one.
pub struct Classes {
    /// The first that fits counts; with its machine, if it has one.
    rules: Vec<(Condition, Option<usize>)>,
    /// The first is for connections that no rule fits.
    machines: Vec<Machine>,
    /// Connections that were judged by rules: the peer at their beginning, and the machine; none: left alone.
    judged: BTreeMap<Token, (SocketAddr, Option<usize>)>,
    /// The peer at the beginning of connections that the classes before knew: their first subflows may have ended since.
    beginnings: BTreeMap<Token, SocketAddr>,
    /// Our addresses with the names of their interfaces.
    interfaces: BTreeMap<IpAddr, String>,
    /// Names of interfaces that are for the time when no other works.
    reserve: Vec<String>,
    left_alone: u64,
}

impl From<Steering> for Classes {
    fn from(steering: Steering) -> Self {
        let machines = vec![Machine { steering, uplinks: Vec::new() }];
        Self {
            rules: Vec::new(),
            machines,
            judged: BTreeMap::new(),
            beginnings: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            reserve: Vec::new(),
            left_alone: 0,
        }
    }
}

impl Classes {
    /// Rules in their order, and what steers connections that none fits.
    pub fn new(rules: Vec<Rule>, manager: Box<dyn PathManager>, settings: Settings) -> Self {
        let mut classes = Self::from(Steering::new(manager, settings));
        for rule in rules {
            let machine = rule.class.map(|class| {
                classes.machines.push(Machine::new(class, settings));
                classes.machines.len() - 1
            });
            classes.rules.push((rule.condition, machine));
        }
        classes
    }

    /// Takes over from others, before the first sample: what they held back is used again, unless it is to wait here too.
    pub fn succeed(&mut self, before: &Self) {
        let judged = before.judged.iter().map(|(token, (remote, _))| (*token, *remote));
        self.beginnings = before.beginnings.iter().map(|(token, remote)| (*token, *remote)).chain(judged).collect();
        self.beginnings.extend(before.connections().map(|known| (known.token, known.initial.remote)));
        let held_back: BTreeSet<_> = before.machines().flat_map(Steering::held_back).collect();
        self.machines.iter_mut().for_each(|machine| machine.steering.inherit(held_back.clone()));
    }

    /// Judges a connection; without an owner only by rules that need none.
    fn judge(&self, remote: SocketAddr, owner: Option<Owner>) -> Option<usize> {
        let found = self.rules.iter().find(|(condition, _)| condition.fits(remote, owner));
        found.map_or(Some(0), |(_, machine)| *machine)
    }

    fn machine(&mut self, index: usize) -> Option<&mut Steering> {
        self.machines.get_mut(index).map(|machine| &mut machine.steering)
    }

    fn machines(&self) -> impl Iterator<Item = &Steering> {
        self.machines.iter().map(|machine| &machine.steering)
    }

    pub fn handle_event(&mut self, now: Instant, event: &Event) {
        match *event {
            Event::AddressUp { address, interface } => {
                let name = interface_name(interface);
                for machine in self.machines.iter_mut().filter(|machine| machine.uses(&name)) {
                    machine.steering.handle_event(now, event);
                }
                // An interface that was renamed is another one to rules.
                let before = self.interfaces.insert(address, name.clone()).unwrap_or_default();
                for machine in self.machines.iter_mut().filter(|it| it.uses(&before) && !it.uses(&name)) {
                    machine.steering.handle_event(now, &Event::AddressDown { address });
                }
                self.apply_reserve(now);
            }
            Event::AddressDown { address } => {
                self.interfaces.remove(&address);
                self.machines.iter_mut().for_each(|machine| machine.steering.handle_event(now, event));
            }
            Event::AddressDeprecated { .. } | Event::Overrun => {
                self.machines.iter_mut().for_each(|machine| machine.steering.handle_event(now, event))
            }
            _ if self.rules.is_empty() => self.machines[0].steering.handle_event(now, event),
            _ => self.handle_event_of_a_connection(now, event),
        }
    }

    /// Whose socket it is, samples tell: a connection that a rule may fit by that begins with its first sample.
    fn handle_event_of_a_connection(&mut self, now: Instant, event: &Event) {
        let token = match *event {
            Event::Created { token, endpoints, .. } | Event::Established { token, endpoints, .. } => {
                if self.rules.iter().any(|(condition, _)| condition.needs_owner()) {
                    return;
                }
                let machine = self.judge(endpoints.remote, None);
                self.left_alone += u64::from(machine.is_none() && !self.judged.contains_key(&token));
                self.judged.insert(token, (endpoints.remote, machine));
                token
            }
            Event::Closed { token }
            | Event::Announced { token, .. }
            | Event::Removed { token, .. }
            | Event::SubflowEstablished { token, .. }
            | Event::SubflowClosed { token, .. }
            | Event::SubflowPriority { token, .. } => token,
            Event::AddressUp { .. } | Event::AddressDeprecated { .. } | Event::AddressDown { .. } | Event::Overrun => {
                return;
            }
        };
        let machine = self.judged.get(&token).and_then(|(_, machine)| *machine);
        if matches!(event, Event::Closed { .. }) {
            self.judged.remove(&token);
        }
        if let Some(steering) = machine.and_then(|index| self.machine(index)) {
            steering.handle_event(now, event);
        }
    }

    pub fn handle_sample(&mut self, sample: &HostSample) {
        if self.rules.is_empty() {
            return self.machines[0].steering.handle_sample(sample);
        }
        self.judged.retain(|token, _| sample.has(*token));
        self.beginnings.retain(|token, _| sample.has(*token));
        let mut parts: Vec<HostSample> =
            self.machines.iter().map(|_| HostSample { at: sample.at, connections: Vec::new() }).collect();
        for connection in &sample.connections {
            let machine = self.judge_sample(connection);
            if let Some(part) = machine.and_then(|index| parts.get_mut(index)) {
                part.connections.push(connection.clone());
            }
        }
        for (machine, part) in self.machines.iter_mut().zip(&parts) {
            machine.steering.handle_sample(part);
        }
    }

    fn judge_sample(&mut self, connection: &ConnectionSample) -> Option<usize> {
        if let Some((_, known)) = self.judged.get(&connection.token) {
            return *known;
        }
        // Subflows are in order of their addresses, not of their beginning.
        let owner = connection.subflows.first()?.owner;
        let before = self.beginnings.remove(&connection.token);
        let remote = before.or_else(|| Some(connection.initial()?.remote))?;
        let machine = self.judge(remote, Some(owner));
        self.left_alone += u64::from(machine.is_none());
        self.judged.insert(connection.token, (remote, machine));
        machine
    }

    /// Paths over these interfaces are used only while no other works.
    pub fn reserve(&mut self, now: Instant, interfaces: Vec<String>) {
        self.reserve = interfaces;
        self.apply_reserve(now);
    }

    fn apply_reserve(&mut self, now: Instant) {
        for machine in &mut self.machines {
            let (known, reserve) = (&self.interfaces, &self.reserve);
            let is_reserve = |name: &String| {
                reserve.contains(name) || !(machine.uplinks.is_empty() || machine.uplinks.contains(name))
            };
            let addresses: BTreeSet<IpAddr> =
                known.iter().filter(|(_, name)| is_reserve(name)).map(|(address, _)| *address).collect();
            machine.steering.reserve(now, addresses);
        }
    }

    pub fn handle_timeout(&mut self, now: Instant) {
        self.machines.iter_mut().for_each(|machine| machine.steering.handle_timeout(now));
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.machines().filter_map(Steering::poll_timeout).min()
    }

    /// The next command, with the number of the class that it comes from.
    pub fn poll_command(&mut self) -> Option<(usize, Command)> {
        let mut machines = self.machines.iter_mut().enumerate();
        machines.find_map(|(index, machine)| Some((index, machine.steering.poll_command()?)))
    }

    pub fn handle_outcome(&mut self, now: Instant, class: usize, command: Command, outcome: Outcome) {
        if let Some(steering) = self.machine(class) {
            steering.handle_outcome(now, command, outcome);
        }
    }

    /// The decision that a command of a class comes from.
    pub fn decision(&self, class: usize, command: &Command) -> Option<&Decision> {
        self.machines.get(class)?.steering.decisions().rev().find(|decision| decision.command == *command)
    }

    /// What is known of each connection that is steered.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionStatus<'_>> {
        self.machines().flat_map(Steering::connections)
    }

    /// How many there are.
    pub fn connection_count(&self) -> usize {
        self.machines().map(Steering::connection_count).sum()
    }

    /// Connections that were left alone, by a rule.
    pub fn left_alone(&self) -> u64 {
        self.left_alone
    }

    pub fn counters(&self) -> Counters {
        self.machines().map(Steering::counters).fold(Counters::default(), Counters::plus)
    }
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classes").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_info::{SubflowBlock, read_tcp_info};
    use anabranch_policy::path_manager::TABLE;
    use anabranch_policy::table::{Settings as PolicySettings, build};
    use anabranch_steering::sample::{Endpoints, SubflowSample};

    /// A subflow between these addresses, with the peer's identifier of its own.
    fn subflow(local: &str, remote: &str, remote_id: u8) -> SubflowSample {
        let of = |text: &str| text.parse().expect("an address");
        let endpoints = Endpoints { local: of(local), remote: of(remote) };
        // Established, and nothing else.
        let mut info = [0; 232];
        info[0] = 1;
        let block = SubflowBlock { remote_id, ..SubflowBlock::default() };
        read_tcp_info(&info, endpoints, block).expect("it is whole")
    }

    #[test]
    fn a_connection_is_judged_by_the_peer_at_its_beginning() {
        let manager = || build(TABLE, "full_mesh", &PolicySettings::new()).expect("it is there");
        let rule = || Rule {
            condition: Condition { remote: Some((IpAddr::from([192, 0, 2, 9]), 32)), ..Condition::default() },
            class: None,
        };
        let classes = |rules| Classes::new(rules, manager(), Settings::default());
        let sample = |subflows| HostSample {
            at: Instant::ZERO,
            connections: vec![ConnectionSample {
                token: Token(7),
                fallback: false,
                write_seq: 2,
                snd_una: 0,
                rcv_nxt: 0,
                subflows,
            }],
        };
        // The second address of the peer is the lower one.
        let first = subflow("10.0.0.1:40000", "192.0.2.9:443", 0);
        let second = subflow("10.0.0.1:40001", "192.0.2.1:443", 1);
        let mut with_rule = classes(vec![rule()]);
        with_rule.handle_sample(&sample(vec![second.clone(), first.clone()]));
        assert_eq!((with_rule.left_alone(), with_rule.connection_count()), (1, 0));
        // What the classes before have seen counts after the end of the first subflow.
        let mut without = classes(Vec::new());
        without.handle_sample(&sample(vec![second.clone(), first]));
        for mut before in [with_rule, without] {
            let mut next = classes(vec![rule()]);
            next.succeed(&before);
            before = next;
            before.handle_sample(&sample(vec![second.clone()]));
            assert_eq!((before.left_alone(), before.connection_count()), (1, 0));
        }
    }

    #[test]
    fn a_rule_fits_by_all_that_it_says() {
        let remote: SocketAddr = "192.0.2.77:443".parse().expect("an address");
        let owner = Some(Owner { uid: 1_000, cgroup: Some(9), absent: false });
        let net = |text: &str, length| Some((text.parse().expect("an address"), length));
        let all = Condition { remote: net("192.0.2.64", 26), port: Some(443), user: Some(1_000), cgroup: Some(9) };
        assert!(all.fits(remote, owner));
        assert!(!all.fits(remote, None));
        for other in [
            Condition { remote: net("192.0.2.0", 26), ..all },
            Condition { remote: net("::", 0), ..all },
            Condition { port: Some(80), ..all },
            Condition { user: Some(0), ..all },
            Condition { cgroup: Some(8), ..all },
        ] {
            assert!(!other.fits(remote, owner), "{other:?}");
        }
        assert!(Condition { remote: net("0.0.0.0", 0), ..Condition::default() }.fits(remote, None));
        let mapped = "[::ffff:192.0.2.77]:443".parse().expect("an address");
        assert!(all.fits(mapped, owner));
    }
}
