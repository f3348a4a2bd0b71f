//! Generators of cross traffic as in the papers' simulations: each source has its own link to a router, and each sink
//! its own link to another router.
//!
//! A source is not tied to a share of a link: an endless file transfer is limited by losses, queues and its window, a
//! UDP source by its rate.

use crate::address::InterfaceId;
use crate::application::{Application, Sending};
use crate::flow::FlowConfig;
use crate::identifiers::RouterId;
use crate::link::LinkConfig;
use crate::share::ShareRange;
use crate::topology::{NoPaths, attach_by_link};
use crate::udp::{PacketSizes, Spacing, UdpConfig};
use crate::world::World;
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig, Policies};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// What a generator sends.
#[derive(Clone, Debug)]
pub enum Source {
    /// An endless file over this TCP connection; multipath is disabled. See [`ns2_tcp`].
    Ftp(Box<ConnectionConfig>),
    /// UDP packets of random sizes at a bit rate, evenly spaced: see [`Spacing::Even`].
    Vbr {
        /// IP headers count.
        rate: Rate,
        /// Least and greatest packet size in bytes with IP header, uniformly distributed.
        sizes: (u32, u32),
        /// Means of the exponentially distributed on and off times; `None`: always on.
        on_off: Option<(Duration, Duration)>,
    },
}

/// Settings of a generator.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Its name, from which its random streams are derived.
    pub name: String,
    /// The router of the source.
    pub from: RouterId,
    /// The router of the sink.
    pub to: RouterId,
    /// Configuration of the links between source, sink and their routers, in both directions.
    pub access: LinkConfig,
    pub start: Instant,
    pub source: Source,
}

impl Generator {
    /// Adds it to a world. An FTP becomes a flow with the generator's name; UDP arrives at the host [`Self::sink`].
    pub fn add(&self, world: &mut World) {
        let mut attach = |name: &str, router| -> InterfaceId {
            let host = world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths));
            attach_by_link(world, name, host, router, &self.access)
        };
        let (from, to) = (attach(&format!("{}/source", self.name), self.from), attach(&self.sink(), self.to));
        match &self.source {
            Source::Ftp(connection) => {
                let Some(client) = world.host_of(from) else { return };
                let config = ConnectionConfig { multipath: false, ..(**connection).clone() };
                world.add_flow(FlowConfig {
                    name: self.name.clone(),
                    client,
                    from: Some(from),
                    to,
                    start: self.start,
                    stop: Instant::NEVER,
                    application: Application::upload(Sending::Endless),
                    client_config: config.clone(),
                    server_config: config,
                    record: None,
                });
            }
            Source::Vbr { rate, sizes: (least, most), on_off } => world.add_udp(UdpConfig {
                name: self.name.clone(),
                from,
                to,
                rate: *rate,
                share: ShareRange::fixed(1.0),
                part: 1.0,
                share_name: None,
                sizes: PacketSizes::Between(*least, *most),
                spacing: Spacing::Even,
                on_off: *on_off,
                start: self.start,
                stop: Instant::NEVER,
            }),
        }
    }
    /// The name of the host of its sink.
    pub fn sink(&self) -> String {
        format!("{}/sink", self.name)
    }
}

/// Bytes of data in a packet of ns-2's TCP (`packetSize_`).
pub(crate) const NS2_PACKET: u16 = 1000;
/// Bytes of headers of ns-2's TCP (`tcpip_base_hdr_size_`).
pub(crate) const NS2_HEADERS: u16 = 40;

/// TCP with the defaults of ns-2.35 (`Agent/TCP` and `Agent/TCPSink` in its `tcl/lib/ns-default.tcl`): segments of 1000
/// bytes with 40 bytes of headers, an initial window of two segments, a retransmission timeout of 6 s before the first
/// sample and of at least 1 s afterwards, no selective acknowledgements, no timestamps, and an immediate
/// acknowledgement of each segment. It never aborts. `window` limits the segments in flight; ns-2's is 20.
///
/// The congestion control is that of `policies`. ns-2's `Agent/TCP` is Tahoe, which restarts with a window of one
/// segment after each loss; NewReno (RFC 6582) halves it.
pub fn ns2_tcp(policies: Policies, window: Option<u64>) -> ConnectionConfig {
    let mut config = ConnectionConfig::new(policies);
    config.multipath = false;
    let packet = u64::from(NS2_PACKET);
    config.receive_buffer = BufferSize::Fixed(window.map_or(4 << 20, |window| (2 * window * packet).max(256 << 10)));
    let tcp = &mut config.tcp;
    tcp.mtu = NS2_PACKET + NS2_HEADERS;
    tcp.options.sack = false;
    tcp.options.timestamps = false;
    tcp.delayed_ack = Duration::ZERO;
    tcp.initial_window = 2;
    tcp.max_window = window.map(|window| window * packet);
    tcp.min_rto = Duration::from_secs(1);
    tcp.initial_rto = Duration::from_secs(6);
    tcp.max_timeouts = u32::MAX;
    config
}
