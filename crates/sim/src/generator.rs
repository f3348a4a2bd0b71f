//! Generators of cross traffic as the papers' simulations have them: sources that hang on a router, each by a link of its
//! own, with sinks that hang on another router in the same way.
//!
//! A source takes what it gets, whatever share of a link that is: a file transfer that never ends is limited by losses,
//! by queues and by its own window, a source of UDP by its rate.

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
    /// A file without end over this TCP connection; multipath is switched off. See [`ns2_tcp`].
    Ftp(Box<ConnectionConfig>),
    /// UDP packets at a bit rate, each as long as luck has it, evenly spaced: see [`Spacing::Even`].
    Vbr {
        /// Bytes with IP header count.
        rate: Rate,
        /// Least and most bytes of a packet with IP header; all sizes are alike likely.
        sizes: (u32, u32),
        /// Means of the exponentially distributed times on and off; none: always on.
        on_off: Option<(Duration, Duration)>,
    },
}

/// What can be chosen about a generator.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Its name; its luck depends on it.
    pub name: String,
    /// The router on which its source hangs.
    pub from: RouterId,
    /// The router on which its sink hangs.
    pub to: RouterId,
    /// The link from the source to its router, from the sink to its, and both ways back.
    pub access: LinkConfig,
    /// When it starts.
    pub start: Instant,
    /// What it sends.
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
    /// The name of the host that its sink is.
    pub fn sink(&self) -> String {
        format!("{}/sink", self.name)
    }
}

/// Bytes of data in a packet of ns-2's TCP (`packetSize_`).
pub(crate) const NS2_PACKET: u16 = 1000;
/// Bytes of headers of ns-2's TCP (`tcpip_base_hdr_size_`).
pub(crate) const NS2_HEADERS: u16 = 40;

/// TCP as ns-2.35 has it by default (`Agent/TCP` and `Agent/TCPSink` in its `tcl/lib/ns-default.tcl`): packets of 1000
/// bytes and 40 of headers, a first window of two packets, retransmission timeouts of 6 s before the first sample and of
/// at least 1 s after it, no selective acknowledgements, no timestamps, and an acknowledgement of each packet at once. It
/// never aborts. `window` is the most it has under way, packets; ns-2's is 20.
///
/// The congestion control is what `policies` say. ns-2's `Agent/TCP` is Tahoe, which begins anew with a window of one
/// packet after each loss; NewReno (RFC 6582) halves it.
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
