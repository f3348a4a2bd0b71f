//! Adds other people's traffic to the first link of each path: TCP connections and a UDP source that together ask for the
//! scenario's share of the link's rate, from hosts that share the link with the client to hosts behind it.

use super::network::{Lines, PathEnd, unlimited};
use super::settings;
use crate::scenario::Scenario;
use crate::scenario::model::{Background, Draw, Drawn, LinkRate, Path};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig};
use anabranch_policy::combination::{Choice, Combination};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::application::{Pace, Sending};
use anabranch_sim::share::ShareRange;
use anabranch_sim::{Application, End, FlowConfig, InterfaceId, LinkConfig, UdpConfig, World};

/// Adds the traffic of all paths in use.
pub fn add(world: &mut World, scenario: &Scenario, paths: &[usize], lines: &Lines) {
    for (place, end) in paths.iter().zip(&lines.ends) {
        let Some(path) = scenario.paths.get(*place) else { continue };
        if let Some(background) = &path.background {
            add_to_path(world, path, background, *end);
        }
    }
}

fn add_to_path(world: &mut World, path: &Path, background: &Background, end: PathEnd) {
    let name = format!("background/{}", path.name);
    let plain = Combination { congestion: Choice::new("new_reno"), ..Combination::default() };
    let manager = || plain.build_path_manager().expect("the default path manager can be made");
    let source = world.add_host(&format!("{name}/source"), &EndpointConfig::default(), manager());
    let sink = world.add_host(&format!("{name}/sink"), &EndpointConfig::default(), manager());
    let from = world.add_interface(source, end.forward, &[end.backward]);
    let nothing = LinkConfig { queue: unlimited(), ..LinkConfig::default() };
    let arrive = world.add_link(&format!("{name}/in"), &nothing, End::Router(end.router), End::Hosts);
    let leave = world.add_link(&format!("{name}/out"), &nothing, End::Hosts, End::Router(end.router));
    let to = world.add_interface(sink, leave, &[arrive]);

    let rate = path.links.first().map_or(Rate::ZERO, |link| match &link.rate {
        LinkRate::Fixed(rate) => *rate,
        LinkRate::Trace(trace) => trace.mean_rate(),
    });
    let share = share(background.share);
    let mut config = ConnectionConfig::new(settings::policies(&plain));
    config.multipath = false;
    config.receive_buffer = BufferSize::Fixed(256 * 1024);
    let flows = background.tcp_flows;
    for flow in 0..if background.tcp.0 > 0.0 { flows } else { 0 } {
        let pace = Pace {
            rate: rate.mul_f64(background.tcp.0 / f64::from(flows)),
            share: Some((share, name.clone())),
            on_off: None,
        };
        world.add_flow(FlowConfig {
            name: format!("{name}/tcp {flow}"),
            client: source,
            from: Some(from),
            to,
            start: Instant::ZERO,
            stop: Instant::NEVER,
            application: Application::upload(Sending::Paced(pace)),
            client_config: config.clone(),
            server_config: config.clone(),
            record: None,
        });
    }
    if background.tcp.0 < 1.0 {
        world.add_udp(udp(&name, background, rate, share, (from, to)));
    }
}

fn udp(
    name: &str,
    background: &Background,
    rate: Rate,
    share: ShareRange,
    (from, to): (InterfaceId, InterfaceId),
) -> UdpConfig {
    UdpConfig {
        name: format!("{name}/udp"),
        from,
        to,
        rate,
        share,
        part: 1.0 - background.tcp.0,
        share_name: Some(name.to_owned()),
        sizes: background.sizes.iter().map(|(share, size)| (share.0, size.0 as u32)).collect(),
        start: Instant::ZERO,
        stop: Instant::NEVER,
    }
}

fn share(draw: Draw<crate::scenario::quantity::Share>) -> ShareRange {
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
