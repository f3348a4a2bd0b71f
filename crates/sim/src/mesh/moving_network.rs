//! Networks of moving nodes with a router each and probes between random pairs: RFC 5614, appendix E, and variations
//! (other sizes, speeds, parameters, forecasters).

use super::downloads::Downloads;
use super::{NodeId, RadioId};
use crate::address::InterfaceId;
use crate::mesh::probes::ProbeConfig;
use crate::mobility::{Area, Model, Span};
use crate::radio::{MediumConfig, Reach};
use crate::random::RandomStream;
use crate::topology::NoPaths;
use crate::world::{World, WorldConfig};
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::config::{Config, Manet};
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{InterfaceConfig, InterfaceKind, LinkCost};
use std::sync::Arc;

/// Changes a router's configuration before it starts.
pub type RouterChange = Arc<dyn Fn(NodeId, &mut Config) + Send + Sync>;

/// Settings of a network of moving nodes.
#[derive(Clone)]
pub struct MovingNetwork {
    pub nodes: usize,
    pub area: Area,
    pub model: Model,
    /// The channel shared by all.
    pub medium: MediumConfig,
    /// The parameters of RFC 5614.
    pub manet: Manet,
    pub hello_interval: Duration,
    pub router_dead_interval: Duration,
    /// Cost of a link without loss, and what else a link costs.
    pub cost: (u16, LinkCost),
    /// Any other change of the routers' configuration.
    pub router: Option<RouterChange>,
    /// Mean time between probes in the whole network.
    pub probe_interval: Duration,
    /// Bytes of a whole probe.
    pub probe_bytes: u32,
    /// Downloads in the time of the measurements, instead of probes.
    pub downloads: Option<Downloads>,
    /// Routers start at random times within this interval.
    pub start_within: Duration,
    /// Time before measurements begin.
    pub warm_up: Duration,
    /// Duration of the measurements.
    pub duration: Duration,
    /// Interval of position updates.
    pub step: Duration,
    /// All random streams are derived from it.
    pub seed: u64,
    /// Emit every packet as bytes and parse it again.
    pub wire: bool,
}

impl MovingNetwork {
    /// The scenario of RFC 5614, appendix E: 500 x 500 m, random waypoint without pause, 10 probes of 40 bytes per
    /// second, HelloInterval 2 s, RouterDeadInterval 6 s, differential Hellos with 2HopRefresh 3. `range` in metres:
    /// 200 or 250 in the RFC.
    ///
    /// "(Maximum) velocity 10 m/s" without a least one, and measured from 1,800 s on: so speeds of legs are uniform up
    /// to 10 m/s, and nodes have moved for half an hour at the end of the warm-up. The RFC does not state the rates of
    /// 802.11b. For 160 nodes it reports 1,310 kbit/s on one channel, in 352 packets per second and with 69 of 159
    /// nodes in range: more than broadcast frames at 1 Mbit/s can carry. So all frames use 11 Mbit/s.
    pub fn appendix_e(nodes: usize, range: f64, fullness: LsaFullness, seed: u64) -> Self {
        let warm_up = Duration::from_secs(60);
        let rate = Rate::from_bits_per_second(11_000_000);
        let model = Model::BegunWaypoint {
            speed: Span::new(0.0, 10.0),
            pause: Span::only(0.0),
            ago: Duration::from_secs(1800) - warm_up,
        };
        Self {
            nodes,
            area: Area { x: 500.0, y: 500.0 },
            model,
            medium: MediumConfig {
                reach: Reach::disk(range),
                basic_rate: rate,
                data_rate: rate,
                ..MediumConfig::default()
            },
            manet: Manet { lsa_fullness: fullness, two_hop_refresh: 3, ..Manet::default() },
            hello_interval: Duration::from_secs(2),
            router_dead_interval: Duration::from_secs(6),
            cost: (1, LinkCost::Interface),
            router: None,
            probe_interval: Duration::from_millis(100),
            probe_bytes: 40,
            downloads: None,
            start_within: Duration::from_secs(2),
            warm_up,
            duration: Duration::from_secs(600),
            step: Duration::from_millis(100),
            seed,
            wire: false,
        }
    }

    /// The same density with another number of nodes.
    #[must_use]
    pub fn with_nodes(mut self, nodes: usize) -> Self {
        let scale = libm::sqrt(nodes as f64 / self.nodes.max(1) as f64);
        self.area = Area { x: self.area.x * scale, y: self.area.y * scale };
        self.nodes = nodes;
        self
    }
    /// Builds the network.
    ///
    /// # Errors
    /// If the movement or a router is refused, as text.
    pub fn build(&self) -> Result<World, String> {
        let mut world = World::new(WorldConfig { seed: self.seed, wire: self.wire, ipv6: false });
        let channel = world.add_channel("channel", self.medium.clone());
        let length = self.warm_up + self.duration;
        let movement = self.model.draw(self.area, self.nodes, length, self.seed).map_err(|error| error.to_string())?;
        let mut random = RandomStream::new(self.seed, "starts of the routers");
        let mut among = Vec::new();
        for index in 0..self.nodes {
            let node = world.add_node(&index.to_string(), movement.position(index, Instant::ZERO));
            let radio = world.add_radio(node, channel);
            let host = world.add_host(&format!("host {index}"), &EndpointConfig::default(), Box::new(NoPaths));
            let interface = world.attach_to_node(host, node);
            among.push(interface);
            // Hellos of nodes that start simultaneously would always collide.
            let start = Instant::ZERO + self.start_within.mul_f64(random.uniform());
            self.add_router(&mut world, node, radio, interface, start)?;
        }
        world.set_movement(Box::new(movement), self.step);
        let (start, stop) = (Instant::ZERO + self.warm_up, Instant::ZERO + length);
        if let Some(downloads) = &self.downloads {
            downloads.add(&mut world, &among, (start, stop));
        } else {
            world.add_probes(ProbeConfig {
                name: "probes".to_owned(),
                among,
                one_way: false,
                interval: self.probe_interval,
                bytes: self.probe_bytes,
                start,
                stop,
            });
        }
        Ok(world)
    }
    pub(super) fn add_router(
        &self,
        world: &mut World,
        node: NodeId,
        radio: RadioId,
        interface: InterfaceId,
        start: Instant,
    ) -> Result<(), String> {
        let mut config = world.router_config(node);
        if let Some(change) = &self.router {
            change(node, &mut config);
        }
        let interface = InterfaceConfig {
            kind: InterfaceKind::Manet(self.manet.clone()),
            hello_interval: self.hello_interval,
            router_dead_interval: self.router_dead_interval,
            cost: self.cost.0,
            link_cost: self.cost.1,
            ..world.radio_interface(node, radio, &[interface])
        };
        world.add_mesh_router(node, start, config, vec![interface]).map_err(|error| error.to_string())
    }
}
