//! Adds competing connections: further ones of the transfer's kind between the same hosts, and TCP of other hosts on
//! the same links.

use super::network::{self, Lines};
use super::own::OwnPolicies;
use super::settings;
use crate::scenario::Scenario;
use crate::scenario::beside::START;
use crate::scenario::model::{Beside, Heading};
use anabranch_mptcp::{BufferSize, ConnectionConfig, EndpointConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::{Duration, Instant};
use anabranch_settings::connection::defaults;
use anabranch_sim::application::Sending;
use anabranch_sim::topology::NoPaths;
use anabranch_sim::{Application, FlowConfig, FlowId, World};

/// Buffers of other hosts: automatic, and large enough to never limit.
const INITIAL: u64 = 128 << 10;
const MOST: u64 = 64 << 20;

/// Name of the transfer's connection with this index.
pub fn own_name(number: u32) -> String {
    if number == 0 { "transfer".to_owned() } else { format!("transfer {}", number + 1) }
}

/// Name of another host's connection with this index.
pub fn name(beside: &Beside, number: u32) -> String {
    format!("beside/{}/{number}", beside.name)
}

/// Adds the transfer's connections, the first of which is `first`; each further one starts at its own time. `own` has the
/// policies of the first ones, in order.
pub fn add_own(world: &mut World, scenario: &Scenario, first: &FlowConfig, own: &[OwnPolicies]) -> Vec<FlowId> {
    let mut flows = Vec::new();
    for number in 0..scenario.connections {
        let name = own_name(number);
        let start = if number == 0 { first.start } else { start(world, &name, START) };
        let mut flow = FlowConfig { name, start, ..first.clone() };
        if let Some(own) = own.get(number as usize) {
            own.apply(&mut flow.client_config);
            own.apply(&mut flow.server_config);
        }
        flows.push(world.add_flow(flow));
    }
    flows
}

/// Adds the other hosts' connections on all present paths.
pub fn add(world: &mut World, scenario: &Scenario, paths: &[usize], lines: &Lines) {
    for beside in &scenario.beside {
        let used = paths.iter().copied().zip(lines.ends());
        let mut there = used.chain(lines.others.iter().copied());
        let Some((_, end)) = there.find(|(path, _)| *path == beside.path) else { continue };
        let mut host = |side: &str| {
            world.add_host(&format!("beside/{}/{side}", beside.name), &EndpointConfig::default(), Box::new(NoPaths))
        };
        let (client, server) = (host("client"), host("server"));
        let from = world.add_interface(client, end.forward, &[end.backward]);
        let (arrive, leave) = lines.server_links;
        let to = world.add_interface(server, leave, &[arrive]);
        let config = connection(beside);
        for number in 0..beside.count {
            let name = name(beside, number);
            let start = start(world, &name, beside.start);
            world.add_flow(FlowConfig {
                name,
                client,
                from: Some(from),
                to,
                start,
                stop: Instant::NEVER,
                application: application(beside),
                client_config: config.clone(),
                server_config: config.clone(),
                record: None,
            });
        }
    }
}

fn start(world: &World, name: &str, draw: crate::scenario::model::Draw<Duration>) -> Instant {
    let seconds = network::per_run(world.seed(), &format!("{name}/start"), draw);
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn connection(beside: &Beside) -> ConnectionConfig {
    let policies = Combination { congestion: beside.congestion.clone(), ..Combination::default() };
    let mut config = defaults(settings::policies(&policies));
    config.multipath = false;
    config.receive_buffer = BufferSize::Auto { initial: INITIAL, max: MOST };
    config.send_buffer = MOST;
    beside.connection.apply(&mut config);
    config
}

fn application(beside: &Beside) -> Application {
    let sending = beside
        .bursts
        .map_or(Sending::Endless, |bursts| Sending::Messages { size: bursts.size.0, interval: bursts.interval });
    let application = match beside.heading {
        Heading::Upload => Application::upload(sending),
        Heading::Download => Application::download(sending),
    };
    match beside.bursts {
        Some(bursts) => application.in_messages(bursts.size.0),
        None => application,
    }
}
