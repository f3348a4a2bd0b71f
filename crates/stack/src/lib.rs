//! A TCP/IP host in user space: one engine, the devices that carry its packets, and the handles of applications.
//!
//! One lock protects all of it. The [`Driver`] holds it for a turn of the event loop, a [`Stream`] for an operation; on
//! one thread nothing ever waits for it. A stream acts on the engine directly and then wakes the driver, which moves
//! the packets, so that all data written in one turn leaves in one batch.

mod connection;
mod counters;
pub mod device;
mod driver;
mod error;
mod gate;
mod gateway;
mod halves;
mod listener;
mod past;
mod report;
mod slots;
mod state;
mod stream;

pub use connection::PathChange;
pub use counters::StackCounters;
pub use device::{Device, DeviceId};
pub use driver::Driver;
pub use error::{AttachError, ConnectError, ListenError};
pub use gateway::{Asked, Gateway};
pub use halves::{ReadHalf, WriteHalf};
pub use listener::Listener;
pub use report::{ConnectionReport, PathReport, explain};
pub use slots::{Slot, Slots};
pub use stream::Stream;

use anabranch_mptcp::{BufferMemory, ConnectionConfig, Endpoint, EndpointConfig, Origin, Ports, Share};
use anabranch_policy::combination::{Combination, CombinationError};
use anabranch_policy::ids::AddressId;
use anabranch_policy::path_manager::PathManager;
use anabranch_system::Clock;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};
use device::DeviceCounters;
use state::{Shared, State};
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;

/// In place of the peer's address if there is none.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);

/// The part of the host's memory that buffers take by default: one of so many.
const MEMORY_PART: u64 = 8;

/// Settings of a stack.
pub struct StackConfig {
    /// The engine. Its seed is replaced by a random one of the operating system.
    pub endpoint: EndpointConfig,
    /// The path manager of all connections.
    pub path_manager: Box<dyn PathManager>,
    /// Limit of connections to be accepted at each listener; further ones are aborted and counted.
    pub backlog: usize,
    /// Names of backup addresses ([`Stack::address_up_named`]).
    pub backups: Vec<String>,
    /// The memory of all buffers, for connections whose settings name none. Several stacks may have the same.
    pub memory: Arc<BufferMemory>,
    /// A secret of the user that the programs before and after this one have too, for example the key of a proxy. With it, the
    /// sequence numbers of a connection lie beyond those of an earlier program's with the same ports, which a NAT may remember.
    pub secret: Option<[u8; 32]>,
}

impl StackConfig {
    /// The default settings with this path manager.
    pub fn new(path_manager: Box<dyn PathManager>) -> Self {
        // All but well-known ports (RFC 6056, section 3.2): a busy proxy uses them all within half a minute.
        let ports = Ports::HashBased { low: 1_024, high: u16::MAX };
        Self {
            endpoint: EndpointConfig { ports, ..EndpointConfig::default() },
            path_manager,
            backlog: 1_024,
            backups: Vec::new(),
            memory: Arc::new(BufferMemory::new(anabranch_system::memory() / MEMORY_PART)),
            secret: None,
        }
    }

    /// The default settings with the path manager of a combination.
    ///
    /// # Errors
    /// [`CombinationError`] if it names something that does not exist, or a setting out of range.
    pub fn of(combination: &Combination) -> Result<Self, CombinationError> {
        Ok(Self::new(combination.build_path_manager()?))
    }

    /// For one of several stacks of a host, each with tokens and ports of its own ([`Stack::unite`]).
    #[must_use]
    pub fn share(mut self, share: Share) -> Self {
        if let Ports::HashBased { low, high } = self.endpoint.ports {
            self.endpoint.ports = share.ports(low, high);
        }
        self.endpoint.share = share;
        self
    }
}

impl Default for StackConfig {
    /// With the path manager of [`Combination::recommended`].
    fn default() -> Self {
        Self::of(&Combination::recommended()).expect("the recommended combination exists")
    }
}

/// The origin that all programs of this host share until it is started anew. The kernel's number of that start is not known to other
/// hosts; without it each program has an origin of its own.
fn origin(sequences: Option<[u8; 32]>) -> Origin {
    let number = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let secret = number.and_then(|number| u128::from_str_radix(&number.trim().replace('-', ""), 16).ok());
    Origin { secret, sequences, millis: Clock::new().start_millis() }
}

/// A handle to a host in user space. Clones refer to the same host.
#[derive(Clone)]
pub struct Stack {
    shared: Arc<Shared>,
    runtime: Handle,
}

impl Stack {
    /// A host without devices, and its event loop, which must be spawned. To be called within a runtime.
    ///
    /// # Errors If the operating system has no file descriptor or random numbers left.
    pub fn new(mut config: StackConfig) -> io::Result<(Self, Driver)> {
        getrandom::fill(&mut config.endpoint.seed).map_err(io::Error::other)?;
        config.endpoint.origin = origin(config.secret);
        let endpoint = Endpoint::new(config.endpoint, config.path_manager);
        let shared = Arc::new(Shared::new(State::new(endpoint, config.backlog, config.backups, config.memory)));
        let driver = Driver::new(Arc::clone(&shared))?;
        Ok((Self { shared, runtime: Handle::current() }, driver))
    }

    /// The runtime of its driver, in which its streams are best used.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Makes several stacks with the same addresses one host, for example with a stack per core. A packet that reaches
    /// the wrong stack is passed to its owner. A new connection belongs to the stack that its SYN reaches; a join
    /// belongs to the stack of its token. Each stack must have its own [`StackConfig::share`] and a queue of each
    /// device ([`Device::tun_queues`]), and each SYN from the same address and port must reach the same stack.
    pub fn unite(stacks: &[Self]) {
        for (at, stack) in stacks.iter().enumerate() {
            let others = stacks.iter().enumerate().filter(|(other, _)| *other != at);
            stack.shared.unite(others.map(|(_, other)| Arc::downgrade(&other.shared)));
        }
    }

    /// Adds a device, without addresses.
    pub fn attach(&self, device: Device) -> DeviceId {
        let mut state = self.shared.lock();
        state.attach(device)
    }

    /// Adds a device that brings connections to any address, and other IP packets too. There is at most one: a second
    /// one replaces the first. [`EndpointConfig::max_held_syns`] limits the connections that wait for a decision.
    pub fn gateway(&self, device: Device) -> Gateway {
        self.shared.lock().open_gate(device);
        Gateway::new(Arc::clone(&self.shared))
    }

    /// Removes a device with its addresses.
    pub fn detach(&self, device: DeviceId) {
        self.shared.lock().detach(device);
    }

    /// A client's tunnel leads to another address of its server from now on; connections go on. Returns whether it can: it
    /// is a tunnel, to an address of the same family.
    pub fn set_server(&self, device: DeviceId, server: SocketAddr) -> bool {
        self.shared.lock().set_server(device, server)
    }

    /// A local address is available on `device`. The caller chooses ids, from 1, which are sent in MP_JOIN and
    /// ADD_ADDR.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn address_up(&self, device: DeviceId, id: AddressId, address: IpAddr) -> Result<(), AttachError> {
        self.shared.lock().address_up(device, id, address, address)
    }

    /// As [`Self::address_up`], for an address behind a NAT: a router translates `public` to `address` (destination
    /// NAT), and peers are told `public`.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn address_up_as(
        &self,
        device: DeviceId,
        id: AddressId,
        address: IpAddr,
        public: IpAddr,
    ) -> Result<(), AttachError> {
        self.shared.lock().address_up(device, id, address, public)
    }

    /// As [`Self::address_up_as`], for an address with a name ([`Self::name_address`]).
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn address_up_named(
        &self,
        device: DeviceId,
        id: AddressId,
        [address, public]: [IpAddr; 2],
        name: &str,
    ) -> Result<(), AttachError> {
        let mut state = self.shared.lock();
        state.expect_address(id, name);
        state.address_up(device, id, address, public)?;
        state.name_address(id, name);
        Ok(())
    }

    /// Makes the present and later addresses of this name backups, or not.
    pub fn set_backup(&self, name: &str, backup: bool) {
        self.shared.lock().set_backup(name, backup);
    }

    /// What answered at this local address was not the peer: attempts to open a connection from there come last for a
    /// while. Returns whether there is another address of the family ([`Endpoint::distrust`]).
    pub fn distrust(&self, local: IpAddr) -> bool {
        self.shared.lock().distrust(local)
    }

    /// The peer has proved who it is to this local address.
    pub fn trust(&self, local: IpAddr) {
        self.shared.lock().endpoint.trust(local);
    }

    /// Names a local address, usually by its interface; reports contain the name. Removed with the address.
    pub fn name_address(&self, id: AddressId, name: &str) {
        self.shared.lock().name_address(id, name);
    }

    /// A local address is gone: its subflows end without a segment, and the peer gets REMOVE_ADDR on the others.
    pub fn address_down(&self, id: AddressId) {
        self.shared.lock().address_down(id);
    }

    /// Opens a connection, from `local` or from the first address of the right family; without an answer after a short
    /// time, also from others ([`anabranch_mptcp::InitialPath`]).
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect(
        &self,
        local: Option<IpAddr>,
        remote: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<Stream, ConnectError> {
        Ok(self.connect_to_any(local, &[remote], config, Bytes::new()).await?.0)
    }

    /// As [`Self::connect`], to a peer with several addresses in order of preference: the first that answers is used
    /// (RFC 8305). `first` is written before the handshake is complete, and leaves with its third segment instead of
    /// after it. Also returns how many bytes of it were written.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub async fn connect_to_any(
        &self,
        local: Option<IpAddr>,
        remotes: &[SocketAddr],
        config: ConnectionConfig,
        first: Bytes,
    ) -> Result<(Stream, usize), ConnectError> {
        let (id, taken) = self.shared.lock().connect(local, remotes, config, first)?;
        let mut stream = Stream::new(Arc::clone(&self.shared), id, remotes.first().copied().unwrap_or(NOBODY));
        stream.established().await?;
        Ok((stream, taken))
    }

    /// Accepts connections on a port of every local address; on port 0, those to any port that has no listener.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&self, port: u16, config: ConnectionConfig) -> Result<Listener, ListenError> {
        self.shared.lock().listen(port, config)?;
        Ok(Listener::new(Arc::clone(&self.shared), port))
    }

    /// Counters of drops and failures.
    pub fn counters(&self) -> StackCounters {
        self.shared.lock().counters()
    }

    /// Counters of a device, with those of detached ones of the same name ([`Self::name_address`]).
    pub fn device_counters(&self, device: DeviceId) -> Option<DeviceCounters> {
        self.shared.lock().device_counters(device)
    }

    /// The connections that applications hold, in the order in which they were opened, at most `limit` of them.
    pub fn connections(&self, limit: usize) -> Vec<ConnectionReport> {
        let state = self.shared.lock();
        state.connection_ids(limit).into_iter().filter_map(|id| state.connection_report(id)).collect()
    }

    /// The number of connections, those in TIME-WAIT included.
    pub fn connection_count(&self) -> usize {
        self.shared.lock().endpoint.connection_count()
    }

    /// Ends the event loop: connections are aborted, their peers are notified, and [`Driver`] completes.
    pub fn shutdown(&self) {
        self.shared.lock().shut_down();
    }
}

#[cfg(test)]
mod tests {
    use super::origin;

    #[test]
    fn the_timestamps_of_the_next_program_of_a_host_go_on_where_those_of_the_last_ended() {
        let [first, next] = [origin(None), origin(None)];
        assert!(first.secret.is_some_and(|secret| secret != 0));
        assert_eq!(first.secret, next.secret);
        assert!((next.millis.wrapping_sub(first.millis) as i32) >= 0);
        // Not this program's time, which has just begun.
        assert!(first.millis > 2_000, "{} ms", first.millis);
    }
}
