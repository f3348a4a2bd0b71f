//! Adds cross traffic to the first link of each path: from a host that shares the link with the client to one after the
//! link, so that it competes with the client's packets.

use super::network::{Lines, PathEnd};
use super::settings;
use crate::scenario::Scenario;
use crate::scenario::model::{Background, Draw, Drawn, LinkRate, Path};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::quantity::Share;
use anabranch_sim::background::BackgroundLoad;
use anabranch_sim::share::ShareRange;
use anabranch_sim::topology::{NoPaths, attach_to_router};
use anabranch_sim::{InterfaceId, World};

/// Adds the traffic of all paths in use.
pub fn add(world: &mut World, scenario: &Scenario, paths: &[usize], lines: &Lines) {
    for (place, end) in paths.iter().zip(lines.ends()) {
        let Some(path) = scenario.paths.get(*place) else { continue };
        if let Some(background) = &path.background {
            add_to_path(world, path, background, end);
        }
    }
}

fn add_to_path(world: &mut World, path: &Path, background: &Background, end: PathEnd) {
    let name = format!("background/{}", path.name);
    let station = world.add_host(&format!("{name}/station"), &EndpointConfig::default(), Box::new(NoPaths));
    let from = world.add_interface(station, end.forward, &[end.backward]);
    let remote = world.add_host(&format!("{name}/remote"), &EndpointConfig::default(), Box::new(NoPaths));
    let to = attach_to_router(world, &format!("{name}/remote"), remote, end.router);
    load(path, background, from, to).add(world);
}

/// The traffic of a path between these interfaces.
pub fn load(path: &Path, background: &Background, from: InterfaceId, to: InterfaceId) -> BackgroundLoad {
    let policies = Combination { congestion: Choice::new("new_reno"), ..Combination::default() };
    let mut connection = ConnectionConfig::new(settings::policies(&policies));
    connection.receive_buffer = BufferSize::Fixed(256 * 1024);
    BackgroundLoad {
        name: format!("background/{}", path.name),
        rate: path.links.first().map_or(Rate::ZERO, |link| match &link.rate {
            LinkRate::Fixed(rate) => *rate,
            LinkRate::Trace(trace) => trace.mean_rate(),
        }),
        from,
        to,
        share: share(background.share),
        udp_part: 1.0 - background.tcp.0,
        udp_sizes: background.sizes.iter().map(|(share, size)| (share.0, size.0 as u32)).collect(),
        tcp_flows: background.tcp_flows as usize,
        mean_on: background.on,
        mean_off: background.off,
        connection,
        start: Instant::ZERO,
    }
}

fn share(draw: Draw<Share>) -> ShareRange {
    match draw {
        Draw::Fixed(share) => ShareRange::fixed(share.0),
        Draw::Uniform { low, high, drawn } => {
            let interval = match drawn {
                Drawn::Stepwise(interval) | Drawn::SlowlyVarying(interval) => interval,
                Drawn::PerRun | Drawn::PerPacket => Duration::MAX,
            };
            ShareRange { min: low.0, max: high.0, interval }
        }
    }
}
