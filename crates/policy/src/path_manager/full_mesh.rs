//! Every local address to every address of the peer, within limits; the base of other path managers.
//!
//! - The client opens the joins (most servers cannot reach a client behind a NAT), local addresses in order of id, and
//!   for each the peer's in order of id, except the pair of the initial subflow. Addresses of different families are
//!   not paired. With the flag C (RFC 8684, section 3.1) the peer's address of the initial subflow is left out.
//! - The server announces its addresses other than that of the initial subflow (setting `announce`).
//! - An address that goes down is withdrawn if the peer knows it, announced or joined from (RFC 8684, section 3.4.2).
//!   The subflows of an address that the *peer* withdrew are closed by the engine, which first probes them by keepalive
//!   (same section); here they are only not opened again.
//! - Limits as in Linux: `subflows` beyond the initial one, opening ones included, and `add_addr_accepted`, how many
//!   announced addresses of the peer's are used at all (Linux's default is 0; ours is 8).
//! - `reopen` (Linux never does): a subflow that timed out, was reset or lost its address is opened again after 1 s,
//!   and if that fails 2 s, 4 s up to 60 s; one that lived for 60 s starts at 1 s again. One that was closed in order
//!   or refused for its protocol stays closed until its address goes down and up again. An address that comes up starts
//!   afresh, without delay.
//! - `backup` joined: subflows that join the initial one are backups (the flag B of MP_JOIN, RFC 8684, section 3.2), so
//!   that they carry data only while the initial one does not work.
//!
//! An attempt without a result for 120 s (the engine may have dropped the action) counts as timed out.

use super::subnets::Subnets;
use super::{CloseReason, PathAction, PathEvent, PathManager, Role};
use crate::ids::{AddressId, ConnectionId, ShortMap, SubflowId};
use crate::table::{Choice, Number, Reader, SettingError, Settings, Switch};
use crate::time::{Duration, Instant};
use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

/// The first pause before a subflow is opened again.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
/// The longest pause, and how long a subflow must live for the next pause to be the first.
const BACK_OFF_MOST: Duration = Duration::from_secs(60);
/// Limit of the time for an attempt; longer than six SYNs take (63 s at an initial timeout of 1 s).
const ATTEMPT: Duration = Duration::from_secs(120);
/// The identifier of the address of the initial subflow, at both ends.
const INITIAL: AddressId = AddressId(0);

const SUBFLOWS: Number = Number {
    name: "subflows",
    unit: "",
    default: 8.0,
    range: 0.0..=64.0,
    summary: "Most subflows of a connection beyond the initial one",
};
const ADD_ADDR_ACCEPTED: Number = Number {
    name: "add_addr_accepted",
    unit: "",
    default: 8.0,
    range: 0.0..=64.0,
    summary: "How many announced addresses of the peer's are used",
};
const ANNOUNCE: Choice<Announce> = Choice {
    name: "announce",
    default: Announce::Server,
    words: &[("never", Announce::Never), ("server", Announce::Server), ("both", Announce::Both)],
    summary: "Which role announces its other addresses to the peer",
};
const REOPEN: Switch = Switch {
    name: "reopen",
    default: true,
    summary: "Open lost subflows again after a pause of 1 s, doubling up to 60 s",
};
const BACKUP: Choice<bool> = Choice {
    name: "backup",
    default: false,
    words: &[("none", false), ("joined", true)],
    summary: "Which subflows are asked to be backups: none, or all that join the initial one",
};

/// Which role announces its other addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Announce {
    /// Nobody does.
    Never,
    /// Only the side that accepted the connection.
    Server,
    /// Both sides.
    Both,
}

/// Settings of a mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeshSettings {
    /// Limit of subflows of a connection besides the initial one.
    pub subflows: usize,
    /// Limit of announced addresses of the peer that are used.
    pub add_addr_accepted: usize,
    /// Which role announces its other addresses.
    pub announce: Announce,
    /// Open lost subflows again.
    pub reopen: bool,
    /// Make joining subflows backups.
    pub backup: bool,
    /// Age of a connection, counted from its SYN, from which addresses are announced and subflows opened.
    pub join_age: Duration,
}

impl Default for MeshSettings {
    fn default() -> Self {
        Settings::new().read(Self::read).expect("every default is a value")
    }
}

impl MeshSettings {
    /// Reads all settings except `backup`, which path managers that suspend subflows do not offer.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        Ok(Self {
            subflows: reader.read(&SUBFLOWS)? as usize,
            add_addr_accepted: reader.read(&ADD_ADDR_ACCEPTED)? as usize,
            announce: reader.read(&ANNOUNCE)?,
            reopen: reader.read(&REOPEN)?,
            backup: BACKUP.default,
            join_age: Duration::ZERO,
        })
    }

    /// Reads all its settings.
    pub(crate) fn read_with_backup(reader: &mut Reader<'_>) -> Result<Self, SettingError> {
        let mesh = Self::read(reader)?;
        Ok(Self { backup: reader.read(&BACKUP)?, ..mesh })
    }
}

/// A local address and one of the peer's.
type PairOfAddresses = (AddressId, AddressId);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PairState {
    /// Requested, no result yet; fails at this time.
    Opening(Instant),
    /// Established, since this time.
    Open(SubflowId, Instant),
    /// Lost, to be opened again at this time.
    Waiting(Instant),
    /// Lost, not to be opened again.
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    state: PairState,
    /// Consecutive attempts that did not last.
    failures: u32,
}

impl Pair {
    /// The next deadline.
    fn deadline(self) -> Option<Instant> {
        match self.state {
            PairState::Opening(until) | PairState::Waiting(until) => Some(until),
            PairState::Open(..) | PairState::Ended => None,
        }
    }
}

/// Deadlines of pairs of addresses.
type Deadlines = BTreeSet<(Instant, ConnectionId, PairOfAddresses)>;

/// A connection.
#[derive(Debug)]
struct Mesh {
    role: Role,
    /// Local address of the initial subflow.
    initial_local: AddressId,
    remote_denies_joins: bool,
    remotes: ShortMap<AddressId, SocketAddr>,
    /// Local addresses that the peer knows.
    known_to_peer: BTreeSet<AddressId>,
    pairs: ShortMap<PairOfAddresses, Pair>,
}

impl Mesh {
    /// Subflows besides the initial one, opening ones included.
    fn extra_subflows(&self) -> usize {
        let counts = |pair: &&Pair| match pair.state {
            PairState::Opening(_) => true,
            PairState::Open(subflow, _) => subflow != SubflowId(0),
            PairState::Waiting(_) | PairState::Ended => false,
        };
        self.pairs.values().filter(counts).count()
    }

    /// Whether a subflow may be opened between the two, apart from limits.
    fn may_join(
        &self,
        addresses: &BTreeMap<AddressId, IpAddr>,
        subnets: Option<Subnets>,
        (local, remote): PairOfAddresses,
    ) -> bool {
        let (Some(from), Some(to)) = (addresses.get(&local), self.remotes.get(remote)) else { return false };
        let (from, to) = (from.to_canonical(), to.ip().to_canonical());
        let denied = remote == INITIAL && self.remote_denies_joins;
        let initial = addresses.get(&self.initial_local).map(IpAddr::to_canonical);
        self.role == Role::Client
            && !denied
            && from.is_ipv4() == to.is_ipv4()
            && subnets.is_none_or(|subnets| subnets.pair(from, to, initial))
    }

    /// The peer's identifier 0 for our initial address means the one that we know by another identifier.
    fn local_id(&self, local: AddressId) -> AddressId {
        if local == INITIAL { self.initial_local } else { local }
    }

    /// Sets or removes the state of a pair, and its deadline.
    fn set(&mut self, due: &mut Deadlines, id: ConnectionId, addresses: PairOfAddresses, pair: Option<Pair>) {
        let before = match pair {
            Some(pair) => self.pairs.insert(addresses, pair),
            None => self.pairs.remove(addresses),
        };
        if let Some(at) = before.and_then(Pair::deadline) {
            due.remove(&(at, id, addresses));
        }
        if let Some(at) = pair.and_then(Pair::deadline) {
            due.insert((at, id, addresses));
        }
    }

    /// Removes the state of pairs that are not open, where `forget` says so.
    fn forget(&mut self, due: &mut Deadlines, id: ConnectionId, forget: impl Fn(PairOfAddresses) -> bool) {
        let open = |pair: &Pair| matches!(pair.state, PairState::Open(..));
        let pairs = self.pairs.iter().filter(|(addresses, pair)| !open(pair) && forget(*addresses));
        let forgotten: Vec<PairOfAddresses> = pairs.map(|(addresses, _)| addresses).collect();
        for addresses in forgotten {
            self.set(due, id, addresses, None);
        }
    }
}

/// The path manager `full_mesh`.
#[derive(Debug, Default)]
pub struct FullMesh {
    settings: MeshSettings,
    /// Which addresses may be paired; without it, all.
    subnets: Option<Subnets>,
    addresses: BTreeMap<AddressId, IpAddr>,
    /// Boxed, since the tree has space for twice as many.
    connections: BTreeMap<ConnectionId, Box<Mesh>>,
    /// Connections younger than `join_age`, and when they are no longer.
    young: BTreeMap<ConnectionId, Instant>,
    due: Deadlines,
    /// The last requested wake-up.
    wake: Option<Instant>,
}

impl FullMesh {
    pub fn new(settings: MeshSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// A mesh of the pairs that `subnets` allows.
    pub(super) fn within(subnets: Subnets, settings: MeshSettings) -> Self {
        Self { subnets: Some(subnets), ..Self::new(settings) }
    }

    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn PathManager>, SettingError> {
        Ok(Box::new(Self::new(MeshSettings::read_with_backup(reader)?)))
    }

    /// Announces the addresses of `locals`, then opens subflows.
    fn extend(&mut self, now: Instant, id: ConnectionId, actions: &mut Vec<PathAction>) {
        match self.young.get(&id) {
            Some(joins_from) if now < *joins_from => return,
            Some(_) => {
                self.young.remove(&id);
            }
            None => {}
        }
        let Some(mesh) = self.connections.get_mut(&id) else { return };
        let announces = match self.settings.announce {
            Announce::Never => false,
            Announce::Server => mesh.role == Role::Server,
            Announce::Both => true,
        };
        for local in self.addresses.keys().filter(|_| announces) {
            if mesh.known_to_peer.insert(*local) {
                actions.push(PathAction::Announce { connection: id, local: *local });
            }
        }
        let mut room = self.settings.subflows.saturating_sub(mesh.extra_subflows());
        let remotes: Vec<AddressId> = mesh.remotes.keys().collect();
        for local in self.addresses.keys() {
            for remote in &remotes {
                let addresses = (*local, *remote);
                let failures = match mesh.pairs.get(addresses) {
                    None => 0,
                    Some(Pair { state: PairState::Waiting(until), failures }) if *until <= now => *failures,
                    Some(_) => continue,
                };
                if room == 0 || !mesh.may_join(&self.addresses, self.subnets, addresses) {
                    continue;
                }
                room -= 1;
                let opening = Pair { state: PairState::Opening(now + ATTEMPT), failures };
                mesh.set(&mut self.due, id, addresses, Some(opening));
                actions.push(PathAction::CreateSubflow {
                    connection: id,
                    local: *local,
                    remote: *remote,
                    backup: self.settings.backup,
                });
            }
        }
    }

    /// A subflow ended, or an attempt failed.
    fn lose(&mut self, now: Instant, id: ConnectionId, addresses: PairOfAddresses, reason: CloseReason) {
        let Some(mesh) = self.connections.get_mut(&id) else { return };
        let Some(pair) = mesh.pairs.get(addresses).copied() else { return };
        let failures = match pair.state {
            PairState::Open(_, since) if now.since(since) >= BACK_OFF_MOST => 0,
            _ => pair.failures,
        };
        let worth_another_try = match reason {
            CloseReason::TimedOut | CloseReason::Unreachable | CloseReason::Reset | CloseReason::AddressGone => true,
            CloseReason::Normal | CloseReason::ProtocolError => false,
        };
        let pair = if !mesh.may_join(&self.addresses, self.subnets, addresses) {
            None
        } else if self.settings.reopen && worth_another_try {
            let until = now + back_off(failures);
            Some(Pair { state: PairState::Waiting(until), failures: failures.saturating_add(1) })
        } else {
            Some(Pair { state: PairState::Ended, failures })
        };
        mesh.set(&mut self.due, id, addresses, pair);
    }

    /// Handles the pairs whose deadline has passed.
    fn catch_up(&mut self, now: Instant, actions: &mut Vec<PathAction>) {
        while let Some(first) = self.due.first().copied().filter(|(at, ..)| *at <= now) {
            self.due.remove(&first);
            let (_, id, addresses) = first;
            let pair = self.connections.get(&id).and_then(|mesh| mesh.pairs.get(addresses));
            if pair.is_some_and(|pair| matches!(pair.state, PairState::Opening(_))) {
                self.lose(now, id, addresses, CloseReason::TimedOut);
            }
            self.extend(now, id, actions);
        }
    }

    fn address_down(&mut self, id: AddressId, actions: &mut Vec<PathAction>) {
        self.addresses.remove(&id);
        for (connection, mesh) in &mut self.connections {
            mesh.forget(&mut self.due, *connection, |(local, _)| local == id);
            if mesh.known_to_peer.remove(&id) {
                actions.push(PathAction::Remove { connection: *connection, local: id });
            }
        }
    }

    fn announced(&mut self, connection: ConnectionId, id: AddressId, remote: SocketAddr) {
        let Some(mesh) = self.connections.get_mut(&connection) else { return };
        let ip = remote.ip();
        let unreachable = ip.is_unspecified() || ip.is_multicast() || remote.port() == 0;
        let accepted = mesh.remotes.keys().filter(|have| *have != INITIAL && *have != id).count();
        let known = mesh.remotes.values().any(|have| *have == remote);
        if id == INITIAL || unreachable || known || accepted >= self.settings.add_addr_accepted {
            return;
        }
        if mesh.remotes.insert(id, remote).is_some() {
            mesh.forget(&mut self.due, connection, |(_, to)| to == id);
        }
    }

    fn handle_structure(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        match *event {
            PathEvent::AddressUp { id, address } => {
                self.addresses.insert(id, address);
                let connections: Vec<ConnectionId> = self.connections.keys().copied().collect();
                for connection in connections {
                    self.extend(now, connection, actions);
                }
            }
            PathEvent::AddressDown { id } => self.address_down(id, actions),
            PathEvent::ConnectionEstablished {
                connection,
                role,
                local,
                remote,
                remote_denies_joins,
                handshake_rtt,
            } => {
                let joins_from = now + (self.settings.join_age - handshake_rtt);
                if joins_from > now {
                    self.young.insert(connection, joins_from);
                    self.due.insert((joins_from, connection, (local, INITIAL)));
                }
                let initial = Pair { state: PairState::Open(SubflowId(0), now), failures: 0 };
                let mesh = Mesh {
                    role,
                    initial_local: local,
                    remote_denies_joins,
                    remotes: ShortMap::of(INITIAL, remote),
                    known_to_peer: BTreeSet::from([local]),
                    pairs: ShortMap::of((local, INITIAL), initial),
                };
                self.connections.insert(connection, Box::new(mesh));
                self.extend(now, connection, actions);
            }
            PathEvent::ConnectionClosed { connection } => self.connection_closed(connection),
            PathEvent::AddressAnnounced { connection, id, remote } => {
                self.announced(connection, id, remote);
                self.extend(now, connection, actions);
            }
            PathEvent::AddressRemoved { connection, id } => {
                if let Some(mesh) = self.connections.get_mut(&connection) {
                    mesh.remotes.remove(id);
                    mesh.forget(&mut self.due, connection, |(_, remote)| remote == id);
                }
            }
            PathEvent::SubflowEstablished { connection, subflow, local, remote, .. } => {
                let Some(mesh) = self.connections.get_mut(&connection) else { return };
                let local = mesh.local_id(local);
                mesh.known_to_peer.insert(local);
                let failures = mesh.pairs.get((local, remote)).map_or(0, |pair| pair.failures);
                let open = Pair { state: PairState::Open(subflow, now), failures };
                mesh.set(&mut self.due, connection, (local, remote), Some(open));
            }
            PathEvent::SubflowClosed { connection, subflow, local, remote, reason } => {
                let Some(mesh) = self.connections.get(&connection) else { return };
                let addresses = (mesh.local_id(local), remote);
                match mesh.pairs.get(addresses).map(|pair| pair.state) {
                    Some(PairState::Opening(_)) => self.lose(now, connection, addresses, reason),
                    Some(PairState::Open(open, _)) if open == subflow => self.lose(now, connection, addresses, reason),
                    _ => {}
                }
                self.extend(now, connection, actions);
            }
            PathEvent::SubflowPriority { .. }
            | PathEvent::Measured { .. }
            | PathEvent::ReceiveBufferBlocked { .. }
            | PathEvent::ReceiverBlocked { .. }
            | PathEvent::SubflowTimeout { .. }
            | PathEvent::Wake => {}
        }
    }

    fn connection_closed(&mut self, connection: ConnectionId) {
        let Some(mesh) = self.connections.remove(&connection) else { return };
        if let Some(joins_from) = self.young.remove(&connection) {
            self.due.remove(&(joins_from, connection, (mesh.initial_local, INITIAL)));
        }
        for (addresses, pair) in mesh.pairs {
            if let Some(at) = pair.deadline() {
                self.due.remove(&(at, connection, addresses));
            }
        }
    }
}

/// The pause after consecutive failures.
fn back_off(failures: u32) -> Duration {
    let doubled = BACK_OFF_FIRST * 1_u64.checked_shl(failures).unwrap_or(u64::MAX);
    doubled.min(BACK_OFF_MOST)
}

impl PathManager for FullMesh {
    fn handle(&mut self, now: Instant, event: &PathEvent<'_>, actions: &mut Vec<PathAction>) {
        self.handle_structure(now, event, actions);
        self.catch_up(now, actions);
        let Some((earliest, ..)) = self.due.first().copied() else { return };
        let pending = self.wake.filter(|at| *at > now);
        if pending.is_none_or(|at| earliest < at) {
            self.wake = Some(earliest);
            actions.push(PathAction::WakeAt(earliest));
        }
    }
}

#[cfg(test)]
mod tests;
