//! Random event sequences with a small model of the engine, and a model of a host for the tests of the members.

use super::*;
use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::scheduler::tests::{at, connection, subflow};
use crate::table::{SettingError, Settings, build};
use crate::time::{Duration, Instant};
use crate::view::{ConnectionView, SubflowState, SubflowView};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

const CLIENT: ConnectionId = ConnectionId(1);

pub(super) fn remote(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 80))
}

pub(super) fn local(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// A client connection whose engine carries out actions at once; the test advances the time.
pub(super) struct Host<P> {
    pub manager: P,
    pub now_ms: u64,
    pub views: Vec<SubflowView>,
}

impl<P: PathManager> Host<P> {
    /// With established subflows, ids from 0; no address is up, so that the mesh is idle.
    pub fn new(manager: P, subflows: u32) -> Self {
        let mut host = Self { manager, now_ms: 0, views: Vec::new() };
        host.tell(&PathEvent::ConnectionEstablished {
            connection: CLIENT,
            role: Role::Client,
            local: AddressId(1),
            remote: remote(1),
            remote_denies_joins: false,
            handshake_rtt: Duration::ZERO,
        });
        for id in 0..subflows {
            host.views.push(subflow(id, 20));
            host.tell(&PathEvent::SubflowEstablished {
                connection: CLIENT,
                subflow: SubflowId(id),
                local: AddressId(id as u8 + 1),
                remote: AddressId(0),
                backup: false,
            });
        }
        host
    }

    pub fn tell(&mut self, event: &PathEvent<'_>) -> Vec<PathAction> {
        let mut actions = Vec::new();
        self.manager.handle(at(self.now_ms), event, &mut actions);
        for action in &actions {
            match *action {
                PathAction::Suspend { subflow, .. } => self.view(subflow.0).suspended = true,
                PathAction::Resume { subflow, .. } => self.view(subflow.0).suspended = false,
                PathAction::SetBackup { subflow, backup, .. } => self.view(subflow.0).backup = backup,
                _ => {}
            }
        }
        actions
    }

    pub fn view(&mut self, id: u32) -> &mut SubflowView {
        self.views.iter_mut().find(|view| view.id.0 == id).unwrap()
    }

    pub fn measured(&mut self) -> Vec<PathAction> {
        let (view, views) = (connection(self.now_ms), self.views.clone());
        self.tell(&PathEvent::Measured { connection: &view, subflows: &views })
    }

    pub fn blocked(&mut self) -> Vec<PathAction> {
        let (view, views) = (connection(self.now_ms), self.views.clone());
        self.tell(&PathEvent::ReceiveBufferBlocked { connection: &view, subflows: &views, hole: 0 })
    }

    /// The same at the receiver.
    pub fn receiver_blocked(&mut self) -> Vec<PathAction> {
        let (view, views) = (connection(self.now_ms), self.views.clone());
        self.tell(&PathEvent::ReceiverBlocked { connection: &view, subflows: &views, hole: 0 })
    }

    /// The peer makes a subflow a backup, or not.
    pub fn priority(&mut self, id: u32, backup: bool) -> Vec<PathAction> {
        self.view(id).backup = backup;
        self.tell(&PathEvent::SubflowPriority { connection: CLIENT, subflow: SubflowId(id), backup })
    }

    pub fn timeout(&mut self, id: u32) -> Vec<PathAction> {
        self.view(id).stale = true;
        let (view, views) = (connection(self.now_ms), self.views.clone());
        self.tell(&PathEvent::SubflowTimeout { connection: &view, subflows: &views, subflow: SubflowId(id) })
    }

    pub fn closed(&mut self, id: u32) -> Vec<PathAction> {
        let view = self.view(id).clone();
        self.views.retain(|view| view.id.0 != id);
        self.tell(&PathEvent::SubflowClosed {
            connection: CLIENT,
            subflow: view.id,
            local: view.local_address,
            remote: view.remote_address,
            reason: CloseReason::Normal,
        })
    }

    /// An acknowledgement arrived on a subflow now.
    pub fn answered(&mut self, id: u32) {
        let now = at(self.now_ms);
        let view = self.view(id);
        (view.last_progress, view.stale) = (now, false);
    }

    pub fn active(&self) -> Vec<u32> {
        self.views.iter().filter(|view| view.usable()).map(|view| view.id.0).collect()
    }
}

pub(super) fn suspend(id: u32) -> PathAction {
    PathAction::Suspend { connection: CLIENT, subflow: SubflowId(id) }
}
pub(super) fn resume(id: u32) -> PathAction {
    PathAction::Resume { connection: CLIENT, subflow: SubflowId(id) }
}
pub(super) fn set_backup(id: u32, backup: bool) -> PathAction {
    PathAction::SetBackup { connection: CLIENT, subflow: SubflowId(id), backup }
}
pub(super) fn probe(id: u32) -> PathAction {
    PathAction::Probe { connection: CLIENT, subflow: SubflowId(id) }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

struct ModelConnection {
    role: Role,
    denied: bool,
    remotes: BTreeSet<AddressId>,
    attempts: BTreeSet<(AddressId, AddressId)>,
    views: Vec<SubflowView>,
    next: u32,
}

impl ModelConnection {
    fn usable(&self) -> usize {
        self.views.iter().filter(|view| view.usable()).count()
    }
    fn established(&self) -> usize {
        self.views.iter().filter(|view| view.state == SubflowState::Established).count()
    }
    fn find(&mut self, id: SubflowId) -> &mut SubflowView {
        self.views.iter_mut().find(|view| view.id == id).expect("an action names a subflow that there is")
    }
    fn add(&mut self, pair: (AddressId, AddressId), dice: &mut Dice) -> SubflowId {
        let mut view = subflow(self.next, 1 + dice.below(200));
        (view.local_address, view.remote_address) = pair;
        view.backup = self.next > 0 && dice.below(8) == 0;
        self.views.push(view);
        self.next += 1;
        SubflowId(self.next - 1)
    }
}

fn of(connections: &mut BTreeMap<ConnectionId, ModelConnection>, id: ConnectionId) -> &mut ModelConnection {
    connections.get_mut(&id).expect("an action names a connection that there is")
}

/// The engine as a path manager sees it, with a random network.
struct Model {
    manager: Box<dyn PathManager>,
    dice: Dice,
    now_ms: u64,
    addresses: BTreeSet<AddressId>,
    connections: BTreeMap<ConnectionId, ModelConnection>,
    wake: Option<Instant>,
    next: u64,
    counts: BTreeMap<&'static str, u32>,
}

impl Model {
    fn tell(&mut self, event: &PathEvent<'_>) {
        let mut actions = Vec::new();
        self.manager.handle(at(self.now_ms), event, &mut actions);
        for action in actions {
            self.apply(action);
        }
    }

    fn apply(&mut self, action: PathAction) {
        let name = match action {
            PathAction::Announce { connection, local } => {
                assert!(self.addresses.contains(&local));
                assert_eq!(of(&mut self.connections, connection).role, Role::Server);
                "announce"
            }
            PathAction::Remove { connection, local } => {
                assert!(!self.addresses.contains(&local));
                of(&mut self.connections, connection);
                "remove"
            }
            PathAction::CreateSubflow { connection, local, remote, .. } => {
                let model = of(&mut self.connections, connection);
                assert!(self.addresses.contains(&local) && model.remotes.contains(&remote));
                assert!(model.role == Role::Client && !(model.denied && remote == AddressId(0)));
                assert!(model.attempts.insert((local, remote)), "{local:?} {remote:?} is being opened already");
                let taken = model.views.iter().any(|v| (v.local_address, v.remote_address) == (local, remote));
                assert!(!taken, "{local:?} {remote:?} is open already");
                let extra = model.views.iter().filter(|view| view.id.0 != 0).count() + model.attempts.len();
                assert!(extra <= 8, "{extra} extra subflows");
                "create"
            }
            PathAction::Suspend { connection, subflow } => {
                let model = of(&mut self.connections, connection);
                assert!(model.find(subflow).usable());
                model.find(subflow).suspended = true;
                assert!(model.usable() > 0, "the last usable subflow was suspended");
                "suspend"
            }
            PathAction::Resume { connection, subflow } => {
                let view = of(&mut self.connections, connection).find(subflow);
                assert!(view.suspended);
                view.suspended = false;
                "resume"
            }
            PathAction::Probe { connection, subflow } => {
                assert!(of(&mut self.connections, connection).find(subflow).suspended);
                "probe"
            }
            PathAction::WakeAt(wake) => {
                self.wake = Some(wake);
                "wake"
            }
            PathAction::SetBackup { connection, subflow, backup } => {
                let model = of(&mut self.connections, connection);
                model.find(subflow).backup = backup;
                let regular = |view: &&SubflowView| view.state == SubflowState::Established && !view.backup;
                assert!(!backup || model.views.iter().any(|view| regular(&view)), "the last regular one was named");
                if backup { "backup" } else { "regular" }
            }
            PathAction::CloseSubflow { .. } => panic!("nobody does this yet: {action:?}"),
        };
        *self.counts.entry(name).or_default() += 1;
    }

    fn pick(&mut self) -> Option<ConnectionId> {
        let len = self.connections.len() as u64;
        if len == 0 { None } else { self.connections.keys().nth(self.dice.below(len) as usize).copied() }
    }

    fn address_event(&mut self) {
        let id = AddressId(1 + self.dice.below(4) as u8);
        if self.addresses.insert(id) {
            self.tell(&PathEvent::AddressUp { id, address: local(id.0) });
            return;
        }
        self.addresses.remove(&id);
        self.tell(&PathEvent::AddressDown { id });
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for connection in ids {
            let model = &self.connections[&connection];
            let gone = model.views.iter().filter(|v| v.local_address == id).map(|v| v.id).collect::<Vec<_>>();
            self.connections.get_mut(&connection).unwrap().attempts.retain(|(local, _)| *local != id);
            for subflow in gone {
                self.close(connection, subflow, CloseReason::AddressGone);
            }
        }
    }

    fn close(&mut self, connection: ConnectionId, subflow: SubflowId, reason: CloseReason) {
        let model = self.connections.get_mut(&connection).unwrap();
        let view = model.find(subflow).clone();
        model.views.retain(|view| view.id != subflow);
        let (local, remote) = (view.local_address, view.remote_address);
        self.tell(&PathEvent::SubflowClosed { connection, subflow, local, remote, reason });
    }

    fn connection_event(&mut self) {
        if self.connections.len() == 3 {
            let connection = self.pick().unwrap();
            self.connections.remove(&connection);
            self.tell(&PathEvent::ConnectionClosed { connection });
            return;
        }
        self.next += 1;
        let id = ConnectionId(self.next);
        let role = if self.dice.below(3) == 0 { Role::Server } else { Role::Client };
        let (local, denied) = (AddressId(1 + self.dice.below(4) as u8), self.dice.below(4) == 0);
        let mut model = ModelConnection {
            role,
            denied,
            remotes: BTreeSet::from([AddressId(0)]),
            attempts: BTreeSet::new(),
            views: Vec::new(),
            next: 0,
        };
        model.add((local, AddressId(0)), &mut self.dice);
        self.connections.insert(id, model);
        let handshake_rtt = Duration::from_millis(self.dice.below(20));
        self.tell(&PathEvent::ConnectionEstablished {
            connection: id,
            role,
            local,
            remote: remote(1),
            remote_denies_joins: denied,
            handshake_rtt,
        });
        let (subflow, remote) = (SubflowId(0), AddressId(0));
        self.tell(&PathEvent::SubflowEstablished { connection: id, subflow, local, remote, backup: false });
    }

    fn peer_event(&mut self, connection: ConnectionId) {
        let id = AddressId(self.dice.below(4) as u8);
        let model = self.connections.get_mut(&connection).unwrap();
        if model.remotes.remove(&id) {
            model.attempts.retain(|(_, remote)| *remote != id);
            self.tell(&PathEvent::AddressRemoved { connection, id });
        } else if id != AddressId(0) {
            model.remotes.insert(id);
            self.tell(&PathEvent::AddressAnnounced { connection, id, remote: remote(1 + id.0) });
        }
    }

    fn subflow_event(&mut self, connection: ConnectionId) {
        let succeeds = self.dice.below(3) > 0;
        let model = self.connections.get_mut(&connection).unwrap();
        let reasons = [CloseReason::Normal, CloseReason::Reset, CloseReason::TimedOut, CloseReason::ProtocolError];
        let reason = reasons[self.dice.below(4) as usize];
        if let Some(pair) = model.attempts.pop_first() {
            let subflow = model.add(pair, &mut self.dice);
            if succeeds {
                let (local, remote) = pair;
                let backup = model.find(subflow).backup;
                self.tell(&PathEvent::SubflowEstablished { connection, subflow, local, remote, backup });
            } else {
                self.close(connection, subflow, reason);
            }
        } else if !model.views.is_empty() {
            let at = self.dice.below(model.views.len() as u64) as usize;
            let id = model.views[at].id;
            if succeeds {
                model.views[at].state = SubflowState::Closing;
            } else {
                self.close(connection, id, reason);
            }
        }
    }

    fn view_event(&mut self, id: ConnectionId) {
        let (now, dice) = (at(self.now_ms), &mut self.dice);
        let model = self.connections.get_mut(&id).unwrap();
        for view in &mut model.views {
            view.cwnd = 1000 * (1 + dice.below(20));
            view.smoothed_rtt = Duration::from_millis(1 + dice.below(200));
            view.latest_rtt = Duration::from_millis(1 + dice.below(200));
            view.stale = dice.below(4) == 0;
            let mut delay = view.forward_delay.unwrap_or_default();
            delay.include(now, dice.below(200_000) as i64);
            view.forward_delay = Some(delay);
            if !view.stale && dice.below(2) == 0 {
                view.last_progress = now;
            }
        }
        let views = model.views.clone();
        let connection = ConnectionView { id, ..connection(self.now_ms) };
        match self.dice.below(4) {
            0 => self.tell(&PathEvent::ReceiveBufferBlocked { connection: &connection, subflows: &views, hole: 0 }),
            2 => self.tell(&PathEvent::ReceiverBlocked { connection: &connection, subflows: &views, hole: 0 }),
            1 => {
                let Some(view) = views.iter().find(|view| view.stale) else { return };
                let subflow = view.id;
                self.tell(&PathEvent::SubflowTimeout { connection: &connection, subflows: &views, subflow });
            }
            _ => {}
        }
        let views = self.connections[&id].views.clone();
        self.tell(&PathEvent::Measured { connection: &connection, subflows: &views });
        let model = &self.connections[&id];
        assert!(model.established() == 0 || model.usable() > 0, "all established subflows are suspended");
    }

    fn step(&mut self) {
        self.now_ms += self.dice.below(400);
        if self.wake.is_some_and(|wake| wake <= at(self.now_ms)) {
            self.wake = None;
            self.tell(&PathEvent::Wake);
        }
        let Some(connection) = self.pick() else { return self.connection_event() };
        match self.dice.below(40) {
            0 => self.connection_event(),
            1..3 => self.address_event(),
            3..6 => self.peer_event(connection),
            6..14 => self.subflow_event(connection),
            _ => self.view_event(connection),
        }
        for model in self.connections.values() {
            let closing = model.views.iter().any(|view| view.state == SubflowState::Closing);
            assert!(closing || model.established() == 0 || model.usable() > 0, "all subflows are suspended");
        }
    }
}

#[test]
fn whatever_happens_actions_name_what_exists_and_the_last_usable_subflow_is_never_suspended() {
    for (seed, member) in (0..10).flat_map(|seed| TABLE.iter().map(move |member| (seed, member))) {
        for choice in ["", "last"] {
            let mut settings = Settings::new();
            if choice == "last" && member.name == "lm3" {
                settings = settings.with("dead_paths", choice).with("bounds", "alternatives").with("rounding", "up");
            }
            if member.name == "same_subnet" {
                // The model's addresses are of two networks.
                settings = settings.with("prefix", 0);
            }
            if member.name == "predictive" {
                // The model's paths are up and down at random, so there is no trend.
                settings = settings.with("forecaster", "persistence").with("interval", 0.05).with("hold", 0);
            }
            let by_receiver = member.name == "one_way_delay" && choice.is_empty();
            if member.name == "one_way_delay" && !by_receiver {
                settings = settings.with("measured_by", "sender").with("hold", 1);
            }
            let mut model = Model {
                manager: build(TABLE, member.name, &settings).unwrap(),
                dice: Dice(seed),
                now_ms: 0,
                addresses: BTreeSet::new(),
                connections: BTreeMap::new(),
                wake: None,
                next: 0,
                counts: BTreeMap::new(),
            };
            for _ in 0..2_000 {
                model.step();
            }
            // The sequences must contain every kind of event and action.
            let mut expected = vec!["announce", "remove", "create", "wake"];
            if by_receiver {
                expected.extend(["backup", "regular"]);
            // Nothing is acknowledged here, so a goodput neither rises nor falls.
            } else if !["full_mesh", "same_subnet", "anabranch", "goodput_trial"].contains(&member.name) {
                expected.extend(["suspend", "resume", "probe"]);
            }
            for name in expected {
                assert!(model.counts.contains_key(name), "{} with seed {seed}: no {name}", member.name);
            }
        }
    }
}

#[test]
fn the_settings_of_the_mesh_hold_in_all_path_managers() {
    for member in TABLE {
        let opened = |settings: Settings| {
            // The model's addresses are of two networks.
            let settings = if member.name == "same_subnet" { settings.with("prefix", 0) } else { settings };
            let mut manager = build(TABLE, member.name, &settings).unwrap();
            let mut actions = Vec::new();
            for id in 1..=4 {
                let up = PathEvent::AddressUp { id: AddressId(id), address: local(id) };
                manager.handle(at(0), &up, &mut actions);
            }
            let established = PathEvent::ConnectionEstablished {
                connection: CLIENT,
                role: Role::Client,
                local: AddressId(1),
                remote: remote(1),
                remote_denies_joins: false,
                // Ours waits for a connection to be so old.
                handshake_rtt: Duration::from_millis(10),
            };
            manager.handle(at(0), &established, &mut actions);
            actions.iter().filter(|action| matches!(action, PathAction::CreateSubflow { .. })).count()
        };
        let numbers = [Settings::new(), Settings::new().with("subflows", 2)].map(opened);
        assert_eq!(numbers, [3, 2], "{}", member.name);
    }
}

#[test]
fn the_same_events_lead_to_the_same_actions() {
    let run = || {
        let mut model = Model {
            manager: build(TABLE, "lm3", &Settings::new()).unwrap(),
            dice: Dice(7),
            now_ms: 0,
            addresses: BTreeSet::new(),
            connections: BTreeMap::new(),
            wake: None,
            next: 0,
            counts: BTreeMap::new(),
        };
        (0..2_000).for_each(|_| model.step());
        model.counts
    };
    assert_eq!(run(), run());
}

#[test]
fn settings_outside_their_range_are_refused_by_name() {
    for (member, name, value) in [
        ("full_mesh", "subflows", "-1"),
        ("full_mesh", "announce", "client"),
        ("lm3", "rounding", "half"),
        ("lm3", "cwnd_weight", "1.5"),
        ("lm3", "quiet", "NaN"),
        ("lm3", "reopen", "true"),
        ("pu2m2", "width", "wide"),
        ("pu2m2", "floor", "-0.1"),
        ("one_way_delay", "average", "median"),
        ("one_way_delay", "hold", "-1"),
        ("same_subnet", "prefix", "33"),
        ("same_subnet", "reading", "table"),
    ] {
        let error = build(TABLE, member, &Settings::new().with(name, value)).err();
        assert!(
            matches!(&error, Some(SettingError::BadValue { name: n, .. }) if n == name),
            "{member} {name}: {error:?}"
        );
    }
    let error = build(TABLE, "full_mesh", &Settings::new().with("rounding", "up")).err();
    assert!(matches!(error, Some(SettingError::UnknownParameter { .. })));
}

#[test]
fn every_default_in_the_table_is_a_value_that_its_parameter_takes() {
    for member in TABLE {
        let settings = member.parameters().iter().fold(Settings::new(), |s, p| s.with(p.name, &p.default));
        assert!(build(TABLE, member.name, &settings).is_ok(), "{}", member.name);
    }
}
