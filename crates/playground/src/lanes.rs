//! The lanes that a page draws: each direction of each link of a path, and of the links that paths share.

use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::{Link, LinkRate, Path};
use anabranch_lab::simulation::network::{Lines, PathEnd, directions};
use anabranch_sim::link::{DelayModel, LinkConfig, LossModel, QueueLimit, RateModel};
use anabranch_sim::world::view::Carried;
use anabranch_sim::{InterfaceId, LinkId, World};
use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Heading {
    Forward,
    Backward,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lane {
    /// Index of the path among the scenario's; none: shared by all.
    pub path: Option<usize>,
    /// Name of the path.
    pub name: String,
    /// Index of the link on its path, from the client on.
    pub link: usize,
    pub direction: Heading,
    pub up: bool,
    /// In bits per second; none: unlimited, or by a trace.
    pub rate: Option<f64>,
    /// Propagation delay in seconds, the longest if it varies.
    pub delay: f64,
    /// Mean share of packets lost.
    pub loss: f64,
    /// Limit of the queue in packets; none: in bytes, or unlimited.
    pub queue: Option<usize>,
}

/// The lanes of these paths and of the shared links, in the order of [`links_of`].
pub fn lanes_of(scenario: &Scenario, paths: &[usize], seed: u64) -> Vec<Lane> {
    let own = paths.iter().filter_map(|index| Some((Some(*index), scenario.paths.get(*index)?)));
    let own = own.map(|(index, path)| (index, path.name.as_str(), &path.links));
    let mut lanes = Vec::new();
    for (path, name, links) in own.chain([(None, "shared", &scenario.shared)]) {
        for (at, link) in links.iter().enumerate() {
            let configs = directions(seed, &format!("{name}/{at}"), link);
            for ((_, config), direction) in configs.iter().zip([Heading::Forward, Heading::Backward]) {
                lanes.push(lane(config, (path, name, at), direction));
            }
        }
    }
    lanes
}

/// The index of the link of a path that is slowest, the first of several: what sliders change.
pub fn slowest(path: &Path) -> usize {
    let rate = |link: &Link| fixed_rate(link).unwrap_or(u64::MAX);
    path.links.iter().enumerate().min_by_key(|(_, link)| rate(link)).map_or(0, |(at, _)| at)
}

/// The rate of a link in bits per second; none: by a trace.
pub fn fixed_rate(link: &Link) -> Option<u64> {
    match &link.rate {
        LinkRate::Fixed(rate) => Some(rate.bits_per_second()),
        LinkRate::Trace(_) => None,
    }
}

/// The links of the lanes.
pub fn links_of(lines: &Lines) -> Vec<LinkId> {
    let both = |end: &PathEnd| [end.forward, end.backward];
    lines.links.iter().flatten().chain(&lines.shared).flat_map(both).collect()
}

fn lane(config: &LinkConfig, (path, name, link): (Option<usize>, &str, usize), direction: Heading) -> Lane {
    let delay = match config.delay {
        DelayModel::Fixed(delay) => delay,
        DelayModel::Uniform { max, .. } | DelayModel::Varying { max, .. } => max,
    };
    // Each model decides on what the earlier ones have passed.
    let passed: f64 = config.loss.iter().map(|model: &LossModel| 1.0 - model.mean()).product();
    Lane {
        path,
        name: name.to_owned(),
        link,
        direction,
        up: true,
        rate: match config.rate {
            RateModel::Fixed(rate) => Some(rate.bits_per_second() as f64),
            RateModel::Unlimited | RateModel::Trace(_) => None,
        },
        delay: delay.as_secs_f64(),
        loss: 1.0 - passed,
        queue: match config.queue.limit {
            QueueLimit::Packets(packets) => Some(packets),
            QueueLimit::Bytes(_) | QueueLimit::Unlimited => None,
        },
    }
}

/// Adds four numbers for each packet under way on a lane: the index of the lane, the position from 0 to 1, the bytes, and
/// what it carries: 0 for data, 1 for an acknowledgement, 2 for traffic of others than `client`, 3 for data that was sent before.
pub fn add_packets(
    world: &World,
    client: &[InterfaceId],
    link: LinkId,
    (index, lane): (usize, &Lane),
    packets: &mut Vec<f32>,
) {
    for packet in world.packets_on(link) {
        let is_ours = client.contains(&packet.ends.0) || client.contains(&packet.ends.1);
        let carried = if is_ours { packet.carried } else { Carried::Other };
        let sending = lane.rate.map_or(0.0, |rate| f64::from(packet.length) * 8.0 / rate.max(1.0));
        let left = packet.arrives.since(world.now()).as_secs_f64();
        let position = 1.0 - (left / (lane.delay + sending).max(1e-9)).clamp(0.0, 1.0);
        packets.extend([index as f32, position as f32, packet.length as f32, carried as u8 as f32]);
    }
}
