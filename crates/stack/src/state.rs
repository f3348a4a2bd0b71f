//! State shared by driver, streams and listeners, and the delivery of the engine's events to waiting tasks.

use super::connection::{Connection, PathChange, wait, wake};
use super::error::{AttachError, ConnectError, ListenError};
use super::{DeviceId, StackCounters};
use crate::device::{Device, DeviceCounters, Received};
use crate::gate::Gate;
use crate::past::Past;
use crate::slots::Slots;
use anabranch_mptcp::{BufferMemory, CloseCause, ConnectionConfig, Endpoint, Event, FallbackCause};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::time::Instant;
use anabranch_system::Clock;
use anabranch_wire::Packet;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use foldhash::fast::FixedState;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::task::{Context, Poll, Waker};

/// Limit of bytes copied for one write. Less than a quarter gets no slot of this size, which would waste memory.
const WRITE: usize = 64 * 1024;

/// Limit of tasks of connections that are woken after a turn of the driver. The runtime runs them before the next turn:
/// if thousands of connections end at once, packets and datagrams would wait for all of them.
const WOKEN: usize = 32;

/// The state behind its lock.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Slots for large writes.
    slots: Slots,
    /// The other stacks of the same host.
    others: OnceLock<Box<[Weak<Shared>]>>,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), slots: Slots::new(WRITE), others: OnceLock::new() }
    }

    /// From now on this stack shares a host with others. Only the first call has an effect.
    pub(super) fn unite(&self, others: impl Iterator<Item = Weak<Self>>) {
        let _ = self.others.set(others.collect());
    }

    /// Whether it shares a host with others.
    pub(super) fn has_others(&self) -> bool {
        self.others.get().is_some_and(|others| !others.is_empty())
    }

    /// Passes packets to the stacks that own them; those without an owner are ours. Must be called without holding a
    /// lock: two stacks might wait for each other.
    pub(super) fn hand_over(&self, strays: &mut Vec<Received>) {
        let others = self.others.get().into_iter().flatten().filter_map(Weak::upgrade);
        for other in others {
            if strays.is_empty() {
                return;
            }
            other.lock().take_strays(strays);
        }
        let mut state = self.lock();
        strays.drain(..).for_each(|stray| state.receive(stray));
        state.wake_driver();
    }

    /// Locks the state. A panic while it was locked does not matter: the engine's state is consistent between its
    /// methods.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Copies the first bytes that an application writes, at most `max`.
    pub(super) fn copy(&self, bytes: &[u8], max: usize) -> Bytes {
        let length = bytes.len().min(max).min(WRITE);
        let bytes = bytes.get(..length).unwrap_or_default();
        if length < WRITE / 4 {
            return Bytes::copy_from_slice(bytes);
        }
        let mut slot = self.slots.take();
        slot.bytes.get_mut(..length).into_iter().for_each(|place| place.copy_from_slice(bytes));
        slot.share(0..length)
    }
}

/// Connections to be accepted on a port.
#[derive(Default)]
struct Backlog {
    waiting: VecDeque<(ConnectionId, SocketAddr)>,
    acceptor: Option<Waker>,
}

/// A local address and the device that carries its packets.
struct Address {
    id: AddressId,
    address: IpAddr,
    device: usize,
    /// Its name in reports.
    name: Option<String>,
}

/// A host: engine, devices, and waiting tasks.
pub(super) struct State {
    pub(super) endpoint: Endpoint,
    pub(super) clock: Clock,
    /// A removed device leaves a gap, so that ids stay valid.
    pub(super) devices: Vec<Option<Device>>,
    addresses: Vec<Address>,
    past: Past,
    connections: HashMap<ConnectionId, Connection, FixedState>,
    backlogs: HashMap<u16, Backlog, FixedState>,
    backlog_limit: usize,
    pub(super) gate: Gate,
    driver: Option<Waker>,
    /// Tasks to be woken, the oldest first. Each waits for a connection, which limits their number.
    waking: VecDeque<Waker>,
    pub(super) shut_down: bool,
    backlog_overflows: u64,
    no_device: u64,
    dropped_path_changes: u64,
    /// Names of backup addresses.
    backups: Vec<String>,
    /// The memory of all buffers.
    memory: Arc<BufferMemory>,
}

impl State {
    pub(super) fn new(
        endpoint: Endpoint,
        backlog_limit: usize,
        backups: Vec<String>,
        memory: Arc<BufferMemory>,
    ) -> Self {
        Self {
            endpoint,
            clock: Clock::new(),
            devices: Vec::new(),
            addresses: Vec::new(),
            past: Past::default(),
            connections: HashMap::default(),
            backlogs: HashMap::default(),
            backlog_limit,
            gate: Gate::default(),
            driver: None,
            waking: VecDeque::new(),
            shut_down: false,
            backlog_overflows: 0,
            no_device: 0,
            dropped_path_changes: 0,
            backups,
            memory,
        }
    }

    /// Handles a received packet.
    pub(super) fn receive(&mut self, received: Received) {
        let now = self.now();
        match received {
            Received::Packet(packet) => self.endpoint.handle_packet(now, packet),
            Received::Error(error) => {
                self.endpoint.handle_icmp_error(now, &error);
            }
            Received::Foreign(foreign) => self.gate.push_foreign(foreign),
        }
    }

    /// Whether a received packet belongs to this stack, of several of a host.
    pub(super) fn claims(&self, received: &Received) -> bool {
        match received {
            Received::Packet(packet) => self.endpoint.claims(packet),
            Received::Error(error) => self.endpoint.has_subflow(error.source, error.destination),
            Received::Foreign(_) => true,
        }
    }

    /// Takes this stack's packets out of those that others received.
    fn take_strays(&mut self, strays: &mut Vec<Received>) {
        let before = strays.len();
        let mut left = Vec::new();
        for stray in strays.drain(..) {
            if self.claims(&stray) { self.receive(stray) } else { left.push(stray) }
        }
        *strays = left;
        if strays.len() < before {
            self.wake_driver();
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Wakes the driver.
    pub(super) fn wake_driver(&mut self) {
        wake(&mut self.driver);
    }

    /// Wakes the first tasks in the queue, [`WOKEN`] at most. Returns true if tasks are left for the next turn.
    pub(super) fn wake_tasks(&mut self) -> bool {
        let some = self.waking.len().min(WOKEN);
        self.waking.drain(..some).for_each(Waker::wake);
        !self.waking.is_empty()
    }

    /// The driver sleeps until it is woken.
    pub(super) fn driver_waits(&mut self, context: &Context<'_>) {
        wait(&mut self.driver, context);
    }

    pub(super) fn attach(&mut self, device: Device) -> DeviceId {
        self.devices.push(Some(device));
        self.wake_driver();
        DeviceId(self.devices.len() - 1)
    }

    pub(super) fn detach(&mut self, DeviceId(device): DeviceId) {
        let orphans: Vec<AddressId> = self.addresses.iter().filter(|a| a.device == device).map(|a| a.id).collect();
        orphans.into_iter().for_each(|id| self.address_down(id));
        if let Some(gone) = self.devices.get_mut(device).and_then(Option::take) {
            self.past.end(device, gone.counters());
        }
        if self.gate.device == Some(device) {
            self.gate.close();
        }
    }

    pub(super) fn set_server(&mut self, DeviceId(device): DeviceId, server: SocketAddr) -> bool {
        let leads =
            self.devices.get_mut(device).and_then(Option::as_mut).is_some_and(|device| device.set_server(server));
        self.wake_driver();
        leads
    }

    pub(super) fn address_up(
        &mut self,
        device: DeviceId,
        id: AddressId,
        address: IpAddr,
        public: IpAddr,
    ) -> Result<(), AttachError> {
        let DeviceId(device) = device;
        self.devices.get(device).and_then(Option::as_ref).ok_or(AttachError::NoDevice)?;
        self.addresses.retain(|known| known.id != id && known.address != address);
        self.addresses.push(Address { id, address, device, name: None });
        let now = self.now();
        self.endpoint.handle_address_up_as(now, id, address, public);
        self.wake_driver();
        Ok(())
    }

    /// Announces the name of an address that will come up.
    pub(super) fn expect_address(&mut self, id: AddressId, name: &str) {
        let backup = self.backups.iter().any(|backup| backup == name);
        self.endpoint.handle_address_backup(self.now(), id, backup);
    }

    /// Makes the addresses of this name backups, or not.
    pub(super) fn set_backup(&mut self, name: &str, backup: bool) {
        self.backups.retain(|known| known != name);
        self.backups.extend(backup.then(|| name.to_owned()));
        let now = self.now();
        for known in self.addresses.iter().filter(|known| known.name.as_deref() == Some(name)) {
            self.endpoint.handle_address_backup(now, known.id, backup);
        }
        self.wake_driver();
    }

    pub(super) fn name_address(&mut self, id: AddressId, name: &str) {
        for known in self.addresses.iter_mut().filter(|known| known.id == id) {
            known.name = Some(name.to_owned());
            self.past.name(known.device, name);
        }
    }

    /// The name of an address, or the address.
    pub(super) fn name_of(&self, address: IpAddr) -> String {
        let known = self.addresses.iter().find(|known| known.address == address);
        known.and_then(|known| known.name.clone()).unwrap_or_else(|| address.to_string())
    }

    /// Why a connection fell back, if it did.
    pub(super) fn fallback_of(&self, id: ConnectionId) -> Option<FallbackCause> {
        self.connections.get(&id)?.fallback
    }

    /// The connections that applications hold, in order of their ids, at most `limit`.
    pub(super) fn connection_ids(&self, limit: usize) -> Vec<ConnectionId> {
        let mut ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        ids.sort_unstable();
        ids.truncate(limit);
        ids
    }

    pub(super) fn address_down(&mut self, id: AddressId) {
        self.addresses.retain(|known| known.id != id);
        let now = self.now();
        self.endpoint.handle_address_down(now, id);
        self.wake_driver();
    }

    /// Whether there is another address to open connections from ([`Endpoint::distrust`]).
    pub(super) fn distrust(&mut self, local: IpAddr) -> bool {
        let now = self.now();
        self.endpoint.distrust(now, local)
    }

    pub(super) fn connect(
        &mut self,
        local: Option<IpAddr>,
        remotes: &[SocketAddr],
        config: ConnectionConfig,
        first: Bytes,
    ) -> Result<(ConnectionId, usize), ConnectError> {
        if self.shut_down {
            return Err(ConnectError::ShutDown);
        }
        let now = self.now();
        let id = self.endpoint.connect_to_any(now, local, remotes, self.fitted(config))?;
        self.connections.insert(id, Connection::default());
        // An error is reported when the rest is written.
        let taken = if first.is_empty() { 0 } else { self.endpoint.write(now, id, first).unwrap_or(0) };
        self.wake_driver();
        Ok((id, taken))
    }

    pub(super) fn listen(&mut self, port: u16, config: ConnectionConfig) -> Result<(), ListenError> {
        if self.shut_down {
            return Err(ListenError::ShutDown);
        }
        self.endpoint.listen(port, self.fitted(config))?;
        self.backlogs.insert(port, Backlog::default());
        Ok(())
    }

    /// From now on `device` brings connections to any address, and other packets.
    pub(super) fn open_gate(&mut self, mut device: Device) {
        device.keep_foreign();
        let DeviceId(device) = self.attach(device);
        self.gate = Gate::of(device);
    }

    /// Accepts a connection of a gateway.
    pub(super) fn accept_held(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<ConnectionId, ConnectError> {
        if self.shut_down {
            return Err(ConnectError::ShutDown);
        }
        let now = self.now();
        let id = self.endpoint.accept_held(now, local, remote, self.fitted(config))?;
        self.connections.insert(id, Connection::default());
        self.wake_driver();
        Ok(id)
    }

    /// Sends a packet that is not the engine's through the gateway's device; returns whether it was accepted.
    pub(super) fn send_foreign(&mut self, packet: &[u8]) -> bool {
        let device = self.gate.device.and_then(|device| self.devices.get_mut(device)?.as_mut());
        device.is_some_and(|device| device.send(packet))
    }

    pub(super) fn unlisten(&mut self, port: u16) {
        let now = self.now();
        self.endpoint.unlisten(port);
        for (id, _) in self.backlogs.remove(&port).map(|backlog| backlog.waiting).unwrap_or_default() {
            self.connections.remove(&id);
            // It may have ended by now, which needs no report.
            let _ = self.endpoint.abort(now, id);
        }
        self.wake_driver();
    }

    /// The next connection that came to `port`; none when the stack has been shut down.
    pub(super) fn poll_accept(&mut self, port: u16, context: &Context<'_>) -> Poll<Option<(ConnectionId, SocketAddr)>> {
        let Some(backlog) = self.backlogs.get_mut(&port).filter(|_| !self.shut_down) else { return Poll::Ready(None) };
        match backlog.waiting.pop_front() {
            Some(next) => Poll::Ready(Some(next)),
            None => {
                wait(&mut backlog.acceptor, context);
                Poll::Pending
            }
        }
    }

    pub(super) fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// The application has dropped the connection.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        let now = self.now();
        let Some(connection) = self.connections.remove(&id) else { return };
        if connection.closed.is_none() {
            // It may have ended by now.
            let _ = self.endpoint.discard(now, id);
        }
        self.endpoint.forget(now, id);
        self.wake_driver();
    }

    pub(super) fn shut_down(&mut self) {
        let now = self.now();
        self.shut_down = true;
        self.gate.close();
        for (&id, connection) in &mut self.connections {
            // Some have ended by now.
            let _ = self.endpoint.abort(now, id);
            connection.wake_all();
        }
        self.waking.drain(..).for_each(Waker::wake);
        self.backlogs.values_mut().for_each(|backlog| wake(&mut backlog.acceptor));
        self.wake_driver();
    }

    /// The driver has ended. The engine is left alone, since it may have panicked.
    pub(super) fn driver_ended(&mut self) {
        self.shut_down = true;
        self.gate.close();
        for connection in self.connections.values_mut() {
            connection.closed.get_or_insert(CloseCause::Aborted);
            connection.wake_all();
        }
        self.waking.drain(..).for_each(Waker::wake);
        self.backlogs.values_mut().for_each(|backlog| wake(&mut backlog.acceptor));
    }

    pub(super) fn counters(&self) -> StackCounters {
        StackCounters {
            endpoint: self.endpoint.counters(),
            backlog_overflows: self.backlog_overflows,
            no_device: self.no_device,
            dropped_path_changes: self.dropped_path_changes,
        }
    }

    /// The address that the datagrams of a client inside UDP come from.
    pub(super) fn source(&self, address: IpAddr) -> Option<SocketAddr> {
        self.devices.iter().flatten().find_map(|device| device.source(address))
    }

    pub(super) fn device_counters(&self, DeviceId(device): DeviceId) -> Option<DeviceCounters> {
        let counters = self.devices.get(device)?.as_ref()?.counters();
        Some(self.past.with(device, counters))
    }

    /// Takes the engine's output after an input: packets for the devices, events for the waiting tasks.
    pub(super) fn drain(&mut self, now: Instant) {
        while let Some(packet) = self.endpoint.poll_transmit(now) {
            self.transmit(packet);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.pass_on(now, event);
        }
    }

    fn transmit(&mut self, packet: Packet) {
        let known = self.addresses.iter().find(|known| known.address == packet.ip.source).map(|known| known.device);
        let device = known.or(self.gate.device);
        let alone = self.endpoint.resends();
        let left = device.and_then(|device| Some(self.devices.get_mut(device)?.as_mut()?.transmit(packet, alone)));
        match (left, device) {
            (None, _) | (_, None) => self.no_device += 1,
            (Some(true), Some(device)) => self.flush_all_but(device),
            (Some(false), Some(_)) => {}
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&mut self) -> Instant {
        let devices = self.devices.iter().flatten().map(Device::poll_timeout).min();
        self.endpoint.poll_timeout().min(devices.unwrap_or(Instant::NEVER))
    }

    /// Handles the deadline of [`Self::poll_timeout`].
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.devices.iter_mut().flatten().for_each(|device| device.handle_timeout(now));
    }

    /// Settings of a connection, with the packet size and segmentation that all devices support, and the stack's
    /// memory.
    fn fitted(&self, mut config: ConnectionConfig) -> ConnectionConfig {
        let mtu = self.devices.iter().flatten().filter_map(Device::mtu).min();
        config.tcp.mtu = config.tcp.mtu.min(mtu.unwrap_or(u16::MAX));
        if self.devices.iter().flatten().any(Device::segments) {
            config.segments_per_mapping = 1;
        }
        config.memory.get_or_insert_with(|| Arc::clone(&self.memory));
        config
    }

    /// Sends the packets that wait at the devices.
    pub(super) fn flush(&mut self) {
        self.flush_all_but(usize::MAX);
    }

    fn flush_all_but(&mut self, busy: usize) {
        let others = self.devices.iter_mut().enumerate().filter(|(at, _)| *at != busy);
        for device in others.filter_map(|(_, device)| device.as_mut()) {
            device.flush();
            device.joined(|joined| self.endpoint.handle_joined(&joined));
        }
    }

    fn pass_on(&mut self, now: Instant, event: Event) {
        match event {
            Event::Asked { local, remote } => self.gate.push_asked(local, remote),
            // A gateway's connection is held already.
            Event::Accepted { connection: id, .. } if self.connections.contains_key(&id) => {
                self.with(id, |connection, waking| {
                    connection.established = true;
                    waking.extend(connection.take_all());
                });
            }
            Event::Accepted { connection, port, remote } => self.accepted(now, connection, port, remote),
            Event::Connected(id) => self.with(id, |connection, waking| {
                connection.established = true;
                waking.extend(connection.take_all());
            }),
            Event::Readable(id) => self.with(id, |connection, waking| waking.extend(connection.reader.take())),
            Event::Writable(id) => self.with(id, |connection, waking| waking.extend(connection.writer.take())),
            Event::EndOfStream(id) => self.with(id, |connection, waking| {
                connection.ended = true;
                waking.extend(connection.reader.take());
            }),
            Event::Closed(id, cause) => self.with(id, |connection, waking| {
                connection.closed = Some(cause);
                waking.extend(connection.take_all());
            }),
            Event::FellBack(id, cause) => {
                self.with(id, |connection, _| connection.fallback = Some(cause));
                self.path_change(id, PathChange::FellBack(cause));
            }
            Event::SubflowEstablished(id, subflow) => self.path_change(id, PathChange::Established(subflow)),
            Event::SubflowClosed(id, subflow, reason) => self.path_change(id, PathChange::Closed(subflow, reason)),
        }
    }

    /// Changes a connection and queues tasks to be woken.
    fn with(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection, &mut VecDeque<Waker>)) {
        if let Some(connection) = self.connections.get_mut(&id) {
            act(connection, &mut self.waking);
        }
    }

    fn accepted(&mut self, now: Instant, id: ConnectionId, port: u16, remote: SocketAddr) {
        // Who listens on port 0 takes what comes to all others.
        let port = if self.backlogs.contains_key(&port) { port } else { 0 };
        match self.backlogs.get_mut(&port).filter(|backlog| backlog.waiting.len() < self.backlog_limit) {
            Some(backlog) => {
                backlog.waiting.push_back((id, remote));
                wake(&mut backlog.acceptor);
                self.connections.entry(id).or_default().established = true;
            }
            None => {
                self.backlog_overflows += 1;
                // It may have ended by now.
                let _ = self.endpoint.abort(now, id);
            }
        }
    }

    fn path_change(&mut self, id: ConnectionId, change: PathChange) {
        if self.connections.get_mut(&id).is_some_and(|connection| !connection.push_path_change(change)) {
            self.dropped_path_changes += 1;
        }
    }

    /// A device has failed for good: removes its addresses.
    pub(super) fn device_failed(&mut self, device: usize) {
        self.detach(DeviceId(device));
    }
}

pub(super) type Handle = Arc<Shared>;

#[cfg(test)]
mod tests;
