//! The engine as one side of a history, and its settings.

use super::opposite::{Ending, Side};
use crate::literal::{Action, Nanos};
use crate::settings::{Settings, settings};
use anabranch_mptcp::{
    BufferSize, CloseCause, ConnectionConfig, EcnMode, Endpoint, EndpointConfig, Event, InitialPath, Policies, Protocol,
};
use anabranch_policy::ids::{AddressId, ConnectionId};
use anabranch_policy::table::{self, Settings as PolicySettings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{SubflowState, SubflowView};
use anabranch_policy::{congestion, path_manager, scheduler};
use anabranch_wire::Packet;
use bytes::Bytes;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The port of servers.
pub const PORT: u16 = 4_433;
/// Limit of connections of an engine.
const MAX_CONNECTIONS: usize = 16;

settings! {
    /// A setting of the engine; [`ENGINE`] has the values.
    Setting, ENGINE;
    /// Speaks MPTCP.
    Multipath "multipath" [1, 0];
    /// Requires DSS checksums.
    Checksum "checksum" [0, 1];
    /// Flag C.
    Deny "deny_join" [0, 1];
    /// Receive buffer, bytes.
    Receive "receive_buffer" [65_536, 2_048, 8_192, 262_144, 1_000_000];
    /// The receive buffer grows to eight times that.
    Grows "receive_buffer_grows" [0, 1];
    /// How out-of-order data counts against the receive window.
    Charge "charge_out_of_order" [0, 1];
    /// Data is passed to the data level in the order of its subflow.
    Strict "data_in_subflow_order" [0, 1];
    /// Send buffer, bytes.
    Send "send_buffer" [65_536, 4_096, 20_000, 1_000_000];
    /// Limit of subflows.
    Subflows "max_subflows" [8, 1, 2, 3];
    /// Largest packet.
    Mtu "mtu" [1_500, 576, 1_280, 9_000];
    /// Window scaling.
    Scaling "window_scaling" [1, 0];
    /// Timestamps.
    Timestamps "timestamps" [1, 0];
    /// SACK.
    Sack "sack" [1, 0];
    /// ECN.
    Ecn "ecn" [0, 1];
    /// Nagle.
    Nagle "nagle" [1, 0];
    /// Pacing.
    Pacing "pacing" [0, 1];
    /// Delay of acknowledgements, milliseconds.
    AckDelay "delayed_ack" [40, 0, 200];
    /// Initial window, segments.
    InitialWindow "initial_window" [10, 1, 3];
    /// Limit of the congestion window in bytes; 0: none.
    MaxWindow "max_window" [0, 3_000, 20_000];
    /// Tail loss probe.
    Tail "tail_loss_probe" [1, 0];
    /// Index in the congestion controls' table; 0 is new_reno.
    Congestion "congestion" [0, 1, 2, 3, 4, 5, 6, 7, 8];
    /// Index in the schedulers' table; 0 is lowest_rtt.
    Scheduler "scheduler" [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    /// Index in the path managers' table; 0 is full_mesh.
    Manager "path_manager" [0, 1, 2, 3, 4, 5, 6, 7];
}

/// The name at this index of a table, counted from 1; `plain` for 0.
fn name<P: ?Sized>(table: &'static [table::Member<P>], place: u32, plain: &'static str) -> &'static str {
    match place {
        0 => plain,
        place => table[(place as usize - 1) % table.len()].name,
    }
}

fn config(settings: &Settings) -> ConnectionConfig {
    let value = |setting: Setting| settings.value(setting as usize);
    let on = |setting: Setting| value(setting) == 1;
    let control = name(congestion::TABLE, value(Setting::Congestion), "new_reno");
    let order = name(scheduler::TABLE, value(Setting::Scheduler), "lowest_rtt");
    let built = "the tables build their members";
    let mut config = ConnectionConfig::new(Policies {
        congestion: Arc::new(move || table::build(congestion::TABLE, control, &PolicySettings::new()).expect(built)),
        scheduler: Arc::new(move || table::build(scheduler::TABLE, order, &PolicySettings::new()).expect(built)),
        reliability: anabranch_mptcp::config::fully_reliable(),
    });
    config.multipath = on(Setting::Multipath);
    config.checksum = on(Setting::Checksum);
    config.deny_join_initial = on(Setting::Deny);
    let initial = u64::from(value(Setting::Receive));
    let grows = on(Setting::Grows);
    config.receive_buffer =
        if grows { BufferSize::Auto { initial, max: 8 * initial } } else { BufferSize::Fixed(initial) };
    config.receiver.charge_out_of_order = on(Setting::Charge);
    config.receiver.data_in_subflow_order = on(Setting::Strict);
    config.send_buffer = u64::from(value(Setting::Send));
    config.buffers_per_subflow = false;
    config.max_subflows = value(Setting::Subflows) as usize;
    // The literal peer supports only a single attempt.
    config.initial_path = InitialPath::First;
    let tcp = &mut config.tcp;
    tcp.mtu = value(Setting::Mtu) as u16;
    tcp.options.window_scaling = on(Setting::Scaling);
    tcp.options.timestamps = on(Setting::Timestamps);
    tcp.options.sack = on(Setting::Sack);
    tcp.ecn = if on(Setting::Ecn) { EcnMode::Request } else { EcnMode::Accept };
    tcp.nagle = on(Setting::Nagle);
    tcp.pacing = on(Setting::Pacing);
    tcp.delayed_ack = Duration::from_millis(u64::from(value(Setting::AckDelay)));
    tcp.initial_window = value(Setting::InitialWindow);
    tcp.max_window = Some(u64::from(value(Setting::MaxWindow))).filter(|window| *window > 0);
    tcp.tail_loss_probe = on(Setting::Tail);
    config
}

/// A host with the engine and one connection.
pub struct EngineSide {
    endpoint: Endpoint,
    config: ConnectionConfig,
    largest_buffer: u64,
    local: IpAddr,
    client: bool,
    id: Option<ConnectionId>,
    cause: Option<CloseCause>,
    end_of_stream: bool,
    is_plain: bool,
    complaint: Option<String>,
}

impl EngineSide {
    /// With an address on each path.
    pub fn new(settings: &Settings, seed: u64, addresses: &[IpAddr], client: bool) -> Self {
        let mut bytes = [u8::from(client); 32];
        bytes[1..9].copy_from_slice(&seed.to_le_bytes());
        let manager = name(path_manager::TABLE, settings.value(Setting::Manager as usize), "full_mesh");
        let manager = table::build(path_manager::TABLE, manager, &PolicySettings::new()).expect("the table builds it");
        let limits = EndpointConfig { seed: bytes, max_connections: MAX_CONNECTIONS, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::new(limits, manager);
        for (path, address) in addresses.iter().enumerate() {
            endpoint.handle_address_up(Instant::ZERO, AddressId(1 + path as u8), *address);
        }
        let config = config(settings);
        let largest_buffer = match config.receive_buffer {
            BufferSize::Fixed(size) => size,
            BufferSize::Auto { max, .. } => max,
        };
        if !client {
            endpoint.listen(PORT, config.clone()).expect("nobody else listens");
        }
        Self {
            endpoint,
            config,
            largest_buffer,
            local: addresses[0],
            client,
            id: None,
            cause: None,
            end_of_stream: false,
            is_plain: false,
            complaint: None,
        }
    }

    fn on_end_of_stream(&mut self) {
        if std::mem::replace(&mut self.end_of_stream, true) {
            self.complaint = Some("the stream ended twice".into());
        }
    }

    fn on_closed(&mut self, cause: CloseCause) {
        if self.cause.replace(cause).is_some() {
            self.complaint = Some("the connection ended twice".into());
        }
    }

    fn hear(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Accepted { connection, .. } if !self.client && self.id.is_none() => self.id = Some(connection),
                Event::Accepted { .. } => self.complaint = Some("a second connection was accepted".into()),
                Event::FellBack(id, _) if self.id == Some(id) => self.is_plain = true,
                Event::EndOfStream(id) if self.id == Some(id) => self.on_end_of_stream(),
                Event::Closed(id, cause) if self.id == Some(id) => self.on_closed(cause),
                _ => {}
            }
        }
        while self.endpoint.poll_trace().is_some() {}
        // A closed connection may still be read, but has no protocol any more.
        self.is_plain |= self.id.and_then(|id| self.endpoint.protocol(id)) == Some(Protocol::Tcp);
    }
}

/// A host with the engine that only listens, with the plainest settings.
pub(super) fn listener(seed: u64, addresses: &[IpAddr]) -> Endpoint {
    let settings = Settings::plain(ENGINE);
    EngineSide::new(&settings, seed, addresses, false).endpoint
}

fn at(now: Nanos) -> Instant {
    Instant::from_nanos(now)
}

impl Side for EngineSide {
    fn connect(&mut self, now: Nanos, remote: SocketAddr) {
        let config = self.config.clone();
        self.id = Some(self.endpoint.connect(at(now), Some(self.local), remote, config).expect("it can connect"));
    }
    fn handle(&mut self, now: Nanos, packet: Packet) {
        self.endpoint.handle_packet(at(now), packet);
    }
    fn handle_timeout(&mut self, now: Nanos) {
        self.endpoint.handle_timeout(at(now));
    }
    fn poll_transmit(&mut self, now: Nanos) -> Option<Packet> {
        let packet = self.endpoint.poll_transmit(at(now));
        if packet.is_none() {
            self.hear();
        }
        packet
    }
    fn poll_timeout(&mut self) -> Nanos {
        self.endpoint.poll_timeout().as_nanos()
    }
    fn write(&mut self, now: Nanos, bytes: &Bytes) -> usize {
        self.id.and_then(|id| self.endpoint.write(at(now), id, bytes.clone()).ok()).unwrap_or(0)
    }
    fn close(&mut self, now: Nanos) {
        self.id.into_iter().for_each(|id| _ = self.endpoint.close(at(now), id));
    }
    fn abort(&mut self, now: Nanos) {
        self.id.into_iter().for_each(|id| _ = self.endpoint.abort(at(now), id));
    }
    fn read(&mut self, now: Nanos, most: u64) -> Option<Bytes> {
        self.endpoint.read(at(now), self.id?, usize::try_from(most).unwrap_or(usize::MAX))
    }
    fn act(&mut self, _now: Nanos, _action: Action) {}
    fn address_down(&mut self, now: Nanos, path: u8) {
        self.endpoint.handle_address_down(at(now), AddressId(1 + path));
    }
    fn address_up(&mut self, now: Nanos, path: u8, address: IpAddr) {
        self.endpoint.handle_address_up(at(now), AddressId(1 + path), address);
    }
    fn lives_beside(&self, ours: Option<u8>, theirs: Option<u8>) -> bool {
        let Some(id) = self.id.filter(|id| self.endpoint.protocol(*id) == Some(Protocol::Multipath)) else {
            return false;
        };
        // The peer knows the address of the initial subflow by the identifier 0.
        let on = |id: AddressId, path: Option<u8>| path.is_some_and(|p| id.0 == 1 + p || (p == 0 && id.0 == 0));
        let carries = |view: &SubflowView| {
            view.state == SubflowState::Established && !on(view.local_address, ours) && !on(view.remote_address, theirs)
        };
        self.endpoint.subflow_views(Instant::ZERO, id).iter().any(carries)
    }
    fn is_plain(&self) -> bool {
        self.is_plain
    }
    fn is_open(&self) -> bool {
        self.id.is_some()
    }
    fn at_end(&self) -> bool {
        self.end_of_stream
    }
    fn ending(&self) -> Option<Ending> {
        self.cause.map(|cause| match cause {
            CloseCause::Finished => Ending::Finished,
            other => Ending::Failed(other.to_string()),
        })
    }
    fn is_gone(&self) -> bool {
        self.endpoint.connection_count() == 0
    }
    fn check(&self, read: u64) -> Result<(), String> {
        if let Some(complaint) = &self.complaint {
            return Err(complaint.clone());
        }
        if self.endpoint.connection_count() > MAX_CONNECTIONS || self.endpoint.counters().dropped_events > 0 {
            return Err(format!("{} connections", self.endpoint.connection_count()));
        }
        let Some(state) = self.id.and_then(|id| self.endpoint.receive_state(id)) else { return Ok(()) };
        if state.readable + state.out_of_order > state.buffer || state.buffer > self.largest_buffer {
            return Err(format!("{state:?} of at most {}", self.largest_buffer));
        }
        if state.next != read + state.readable {
            return Err(format!("{state:?} after {read} bytes read"));
        }
        Ok(())
    }
    fn describe(&self, now: Nanos) -> String {
        let id = self.id.unwrap_or_default();
        format!(
            "engine: {:?} end {} {:?}\n  {:?}\n  {:?}\n  {:?}\n  {:?}",
            self.cause,
            self.end_of_stream,
            self.endpoint.protocol(id),
            self.endpoint.receive_state(id),
            self.endpoint.connection_view(at(now), id),
            self.endpoint.subflow_views(at(now), id),
            self.endpoint.stats(id)
        )
    }
}
