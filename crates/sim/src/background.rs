//! Background load: cross traffic that takes a varying share of a link, part UDP, part TCP.
//!
//! Both parts follow the same share at any time. The UDP part does not react to congestion. The TCP part consists of
//! flows with exponentially distributed on and off times; while on, a flow's application produces bytes at such a rate
//! that all flows together produce their part on average. The application drops what the network does not accept within
//! a second, so the TCP part yields to congestion and resumes afterwards.

use crate::address::InterfaceId;
use crate::application::{Application, Pace, Sending};
use crate::flow::{FlowConfig, FlowId};
use crate::share::ShareRange;
use crate::udp::{PacketSizes, Spacing, UdpConfig};
use crate::world::World;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};

/// Packet sizes in the evaluation of LM3: weights in percent, bytes with IP header.
pub const LM3_SIZES: [(f64, u32); 5] = [(49.0, 44), (1.2, 576), (2.1, 628), (1.7, 1300), (46.0, 1500)];

/// Packet sizes in the evaluation of recPR: weights in percent, bytes with IP header.
pub const RECPR_SIZES: [(f64, u32); 4] = [(49.0, 44), (2.9, 576), (2.1, 628), (46.0, 1500)];

/// Settings of a background load.
#[derive(Clone, Debug)]
pub struct BackgroundLoad {
    /// Its name, from which its random streams are derived.
    pub name: String,
    /// Source.
    pub from: InterfaceId,
    /// Destination.
    pub to: InterfaceId,
    /// The rate of the loaded link.
    pub rate: Rate,
    /// The share of the link.
    pub share: ShareRange,
    /// The UDP part of it, 0 to 1; the rest is TCP.
    pub udp_part: f64,
    /// Sizes of UDP packets: weights, bytes with IP header.
    pub udp_sizes: Vec<(f64, u32)>,
    /// Number of TCP flows.
    pub tcp_flows: usize,
    /// Mean on time of a TCP flow.
    pub mean_on: Duration,
    /// Mean off time of a TCP flow.
    pub mean_off: Duration,
    /// The TCP connections; multipath is disabled.
    pub connection: ConnectionConfig,
    pub start: Instant,
}

impl BackgroundLoad {
    /// 0 to 50 % of a link, redrawn every 5 s; 10 % UDP with the sizes of LM3's evaluation, 90 % TCP in four flows with
    /// mean on and off times of 1 s.
    pub fn lm3(name: &str, from: InterfaceId, to: InterfaceId, rate: Rate, connection: ConnectionConfig) -> Self {
        Self {
            name: name.to_owned(),
            from,
            to,
            rate,
            share: ShareRange { min: 0.0, max: 0.5, interval: Duration::from_secs(5) },
            udp_part: 0.1,
            udp_sizes: LM3_SIZES.to_vec(),
            tcp_flows: 4,
            mean_on: Duration::from_secs(1),
            mean_off: Duration::from_secs(1),
            connection,
            start: Instant::ZERO,
        }
    }
    /// The UDP part, unless it is zero.
    pub fn udp(&self) -> Option<UdpConfig> {
        (self.udp_part > 0.0).then(|| UdpConfig {
            name: format!("{}/udp", self.name),
            from: self.from,
            to: self.to,
            rate: self.rate,
            share: self.share,
            part: self.udp_part,
            share_name: Some(self.name.clone()),
            sizes: PacketSizes::Mix(self.udp_sizes.clone()),
            spacing: Spacing::Exponential,
            on_off: None,
            start: self.start,
            stop: Instant::NEVER,
        })
    }
    /// Adds it to a world; returns its TCP flows.
    pub fn add(&self, world: &mut World) -> Vec<FlowId> {
        if let Some(source) = self.udp() {
            world.add_udp(source);
        }
        let Some(client) = world.host_of(self.from).filter(|_| self.udp_part < 1.0) else { return Vec::new() };
        let mut connection = self.connection.clone();
        connection.multipath = false;
        (0..self.tcp_flows)
            .map(|index| {
                world.add_flow(FlowConfig {
                    name: format!("{}/tcp {index}", self.name),
                    client,
                    from: Some(self.from),
                    to: self.to,
                    start: self.start,
                    stop: Instant::NEVER,
                    application: Application::upload(Sending::Paced(self.pace())),
                    client_config: connection.clone(),
                    server_config: connection.clone(),
                    record: None,
                })
            })
            .collect()
    }
    /// The pace of one TCP flow. Headers count: a full segment is 52 bytes longer than its payload (IPv4, TCP and
    /// timestamps).
    fn pace(&self) -> Pace {
        let duty = self.mean_on.as_secs_f64() / (self.mean_on + self.mean_off).as_secs_f64();
        let payload = 1.0 - 52.0 / f64::from(self.connection.tcp.mtu.max(53));
        let factor = (1.0 - self.udp_part) * payload / (self.tcp_flows as f64 * duty);
        Pace {
            rate: self.rate.mul_f64(factor),
            share: Some((self.share, self.name.clone())),
            on_off: Some((self.mean_on, self.mean_off)),
        }
    }
}
