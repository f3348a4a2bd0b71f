//! Connections by rule: which path manager steers them over which uplinks, or that they are left alone.

use crate::addresses::interface_name;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::time::Instant;
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Event;
use anabranch_steering::sample::{ConnectionSample, Endpoints, HostSample, Owner, SubflowSample, Token};
use anabranch_steering::settings::Settings;
use anabranch_steering::status::{ConnectionStatus, Counters, Occasion, Why};
use anabranch_steering::steering::Steering;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// In place of a class's number: nobody steers the connection any more.
const LAST_WORDS: usize = usize::MAX;

/// What a rule asks of a connection; what is not said fits all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Condition {
    /// The peer's address at the beginning, and how many of its first bits count.
    pub remote: Option<(IpAddr, u8)>,
    /// The peer's port at the beginning.
    pub port: Option<u16>,
    /// The user whose socket it is.
    pub user: Option<u32>,
    /// The control group of its socket.
    pub cgroup: Option<Group>,
}

/// A control group by its directory, which may be made later, and again: that of a service is, when it starts.
#[derive(Clone, Debug)]
pub struct Group {
    pub directory: PathBuf,
    /// Groups that were looked for, and whether they are within. A group never moves.
    known: RefCell<BTreeMap<u64, bool>>,
}

/// Most groups that are known.
const MOST_KNOWN: usize = 4_096;

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.directory == other.directory
    }
}

impl Eq for Group {}

impl Group {
    /// That of a directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), known: RefCell::default() }
    }

    /// Its identifier now, the inode of its directory; none if there is none.
    pub fn id(&self) -> Option<u64> {
        identifier(&self.directory)
    }

    /// Whether the group of this identifier is this one or within it.
    fn has(&self, id: u64) -> bool {
        let Some(own) = self.id() else { return false };
        if own == id {
            return true;
        }
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        *known.entry(id).or_insert_with(|| is_below(&self.directory, id))
    }
}

/// The identifier of the control group of a directory; none if there is none.
fn identifier(directory: &Path) -> Option<u64> {
    std::fs::metadata(directory).ok().filter(std::fs::Metadata::is_dir).map(|found| found.ino())
}

/// Whether the group of this identifier is below a directory.
fn is_below(directory: &Path, id: u64) -> bool {
    let mut places = vec![directory.to_owned()];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let below = entry.path();
                if identifier(&below) == Some(id) {
                    return true;
                }
                places.push(below);
            }
        }
    }
    false
}

impl Condition {
    fn needs_owner(&self) -> bool {
        self.user.is_some() || self.cgroup.is_some()
    }

    fn fits(&self, remote: SocketAddr, owner: Option<Owner>) -> bool {
        self.remote.is_none_or(|prefix| is_within(remote.ip(), prefix))
            && self.port.is_none_or(|port| port == remote.port())
            && self.user.is_none_or(|user| owner.is_some_and(|owner| owner.uid == user))
            && self.cgroup.as_ref().is_none_or(|cgroup| {
                owner.and_then(|owner| owner.cgroup).is_some_and(|of_socket| cgroup.has(of_socket))
            })
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
    /// Connections that were judged, if there are rules or they stay on this host: their beginning, and the machine; none:
    /// left alone.
    judged: BTreeMap<Token, (Endpoints, Option<usize>)>,
    /// The beginning of connections that the classes before knew: their first subflows may have ended since.
    beginnings: BTreeMap<Token, Endpoints>,
    /// The host's addresses, whether or not paths can begin there.
    own: BTreeSet<IpAddr>,
    /// Our addresses with the names of their interfaces.
    interfaces: BTreeMap<IpAddr, String>,
    /// Names of interfaces that are for the time when no other works.
    reserve: Vec<String>,
    /// Subflows that are backups by the doing of who steered before, until the first sample.
    held_back: BTreeSet<(Token, Endpoints)>,
    /// What the first sample shows as backups are such subflows, but for those from these addresses.
    takes_over: Option<BTreeSet<IpAddr>>,
    /// Commands for connections that are left alone now.
    last_words: VecDeque<Command>,
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
            own: BTreeSet::new(),
            interfaces: BTreeMap::new(),
            reserve: Vec::new(),
            held_back: BTreeSet::new(),
            takes_over: None,
            last_words: VecDeque::new(),
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
        let judged = before.judged.iter().map(|(token, (initial, _))| (*token, *initial));
        self.beginnings = before.beginnings.iter().map(|(token, initial)| (*token, *initial)).chain(judged).collect();
        self.beginnings.extend(before.connections().map(|known| (known.token, known.initial)));
        self.own.clone_from(&before.own);
        self.inherit(before.held_back());
    }

    /// Takes over from a daemon that ended without making backups what they were: those that the first sample shows are
    /// used again, unless they are to wait here too. Those from the addresses `except` are others' doing.
    pub fn take_over(&mut self, except: BTreeSet<IpAddr>) {
        self.takes_over = Some(except);
    }

    fn inherit(&mut self, held_back: BTreeSet<(Token, Endpoints)>) {
        self.machines.iter_mut().for_each(|machine| machine.steering.inherit(held_back.clone()));
        self.held_back = held_back;
    }

    /// Subflows that are backups by our doing.
    pub fn held_back(&self) -> BTreeSet<(Token, Endpoints)> {
        self.machines().flat_map(Steering::held_back).collect()
    }

    /// Whether subflows from an address are to be backups for now.
    pub fn holds_back(&self, address: IpAddr) -> bool {
        let is_reserve = self.interfaces.get(&address).is_some_and(|name| self.reserve.contains(name));
        is_reserve || self.held_back().iter().any(|(_, endpoints)| endpoints.local.ip() == address)
    }

    /// These are the host's addresses.
    pub fn own(&mut self, addresses: BTreeSet<IpAddr>) {
        self.own = addresses;
    }

    /// Whether a connection leads to this host itself: none of its packets may leave by an uplink (RFC 1122, section
    /// 3.2.1.3).
    fn stays_here(&self, initial: Endpoints) -> bool {
        let (local, remote) = (initial.local.ip().to_canonical(), initial.remote.ip().to_canonical());
        local.is_loopback() || remote.is_loopback() || self.own.contains(&remote)
    }

    /// Judges a connection; without an owner only by rules that need none.
    fn judge(&self, initial: Endpoints, owner: Option<Owner>) -> Option<usize> {
        if self.stays_here(initial) {
            return None;
        }
        let remote = initial.remote;
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
            _ => self.handle_event_of_a_connection(now, event),
        }
    }

    /// Whose socket it is, samples tell: a connection that a rule may fit by that begins with its first sample.
    fn handle_event_of_a_connection(&mut self, now: Instant, event: &Event) {
        let token = match *event {
            Event::Created { token, endpoints, .. } | Event::Established { token, endpoints, .. } => {
                let needs_owner = || self.rules.iter().any(|(condition, _)| condition.needs_owner());
                if !self.stays_here(endpoints) && needs_owner() {
                    return;
                }
                let machine = self.judge(endpoints, None);
                self.left_alone += u64::from(machine.is_none() && !self.judged.contains_key(&token));
                self.judged.remove(&token);
                if machine.is_none() || !self.rules.is_empty() {
                    self.judged.insert(token, (endpoints, machine));
                }
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
        let unjudged = self.rules.is_empty().then_some(0);
        let machine = self.judged.get(&token).map_or(unjudged, |(_, machine)| *machine);
        if let Some(steering) = machine.and_then(|index| self.machine(index)) {
            steering.handle_event(now, event);
        }
    }

    pub fn handle_sample(&mut self, sample: &HostSample) {
        if let Some(except) = self.takes_over.take() {
            self.inherit(backups(sample, &except));
        }
        let held_back = core::mem::take(&mut self.held_back);
        let stays_here = |connection: &ConnectionSample| connection.initial().is_some_and(|it| self.stays_here(it));
        if self.rules.is_empty() && self.judged.is_empty() && !sample.connections.iter().any(stays_here) {
            return self.machines[0].steering.handle_sample(sample);
        }
        self.judged.retain(|token, _| sample.has(*token));
        self.beginnings.retain(|token, _| sample.has(*token));
        let mut parts: Vec<HostSample> =
            self.machines.iter().map(|_| HostSample { at: sample.at, connections: Vec::new() }).collect();
        for connection in &sample.connections {
            let machine = self.judge_sample(connection);
            match machine.and_then(|index| parts.get_mut(index)) {
                Some(part) => part.connections.push(connection.clone()),
                None => self.release(connection, &held_back),
            }
        }
        for (machine, part) in self.machines.iter_mut().zip(&parts) {
            machine.steering.handle_sample(part);
        }
    }

    /// Makes regular again what was held back of a connection that is left alone from now on: nobody else would.
    fn release(&mut self, connection: &ConnectionSample, held_back: &BTreeSet<(Token, Endpoints)>) {
        let token = connection.token;
        let was_held =
            |subflow: &&SubflowSample| subflow.backup_local && held_back.contains(&(token, subflow.endpoints));
        let promotion =
            |subflow: &SubflowSample| Command::SetBackup { token, endpoints: subflow.endpoints, backup: false };
        self.last_words.extend(connection.subflows.iter().filter(was_held).map(promotion));
    }

    fn judge_sample(&mut self, connection: &ConnectionSample) -> Option<usize> {
        if let Some((_, known)) = self.judged.get(&connection.token) {
            return *known;
        }
        // Subflows are in order of their addresses, not of their beginning.
        let owner = connection.subflows.first().map(|subflow| subflow.owner);
        let before = self.beginnings.remove(&connection.token);
        let Some((initial, owner)) = before.or_else(|| connection.initial()).zip(owner) else {
            return self.rules.is_empty().then_some(0);
        };
        let machine = self.judge(initial, Some(owner));
        self.left_alone += u64::from(machine.is_none());
        if machine.is_none() || !self.rules.is_empty() {
            self.judged.insert(connection.token, (initial, machine));
        }
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
        if let Some(command) = self.last_words.pop_front() {
            return Some((LAST_WORDS, command));
        }
        let mut machines = self.machines.iter_mut().enumerate();
        machines.find_map(|(index, machine)| Some((index, machine.steering.poll_command()?)))
    }

    pub fn handle_outcome(&mut self, now: Instant, class: usize, command: Command, outcome: Outcome) {
        if let Some(steering) = self.machine(class) {
            steering.handle_outcome(now, command, outcome);
        }
    }

    /// Why a class gave a command.
    pub fn why(&self, class: usize, command: &Command) -> Option<Why> {
        if class == LAST_WORDS {
            return Some(Why { occasion: Occasion::LeftAlone, ..Why::default() });
        }
        let mut decisions = self.machines.get(class)?.steering.decisions().rev();
        decisions.find(|decision| decision.command == *command).map(|decision| decision.why)
    }

    /// What is known of each connection that is steered.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionStatus<'_>> {
        self.machines().flat_map(Steering::connections)
    }

    /// How many there are.
    pub fn connection_count(&self) -> usize {
        self.machines().map(Steering::connection_count).sum()
    }

    /// Connections that were left alone, by a rule or since they lead to this host itself.
    pub fn left_alone(&self) -> u64 {
        self.left_alone
    }

    pub fn counters(&self) -> Counters {
        self.machines().map(Steering::counters).fold(Counters::default(), Counters::plus)
    }
}

/// Subflows that are backups at our end.
fn backups(sample: &HostSample, except: &BTreeSet<IpAddr>) -> BTreeSet<(Token, Endpoints)> {
    let counts = |subflow: &&SubflowSample| subflow.backup_local && !except.contains(&subflow.endpoints.local.ip());
    let of = |connection: &ConnectionSample| {
        let backups = connection.subflows.iter().filter(counts);
        backups.map(|subflow| (connection.token, subflow.endpoints)).collect::<Vec<_>>()
    };
    sample.connections.iter().flat_map(of).collect()
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classes").field("rules", &self.rules).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
