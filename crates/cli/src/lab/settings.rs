//! Turns a scenario's `[connection]` and a contender's policies into the engine's settings.

use crate::contender::Contender;
use crate::scenario::Scenario;
use crate::scenario::model::ReceiveBuffer;
use anabranch_mptcp::{BufferSize, ConnectionConfig, Framing, Policies, TcpConfig};
use anabranch_policy::combination::Combination;
use anabranch_policy::reliability;

/// The settings of reliability policies that are the latency of the play-out, or the lifetime that follows from it, in ms.
const DEADLINES: [&str; 2] = ["latency", "lifetime"];
/// Bytes of IPv4 and TCP headers without options.
const HEADERS: u64 = 40;
/// Bytes of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS: u64 = 12;
/// Bytes of the longest data sequence signal, padded (RFC 8684, section 3.3): 8-byte numbers, no checksum.
const SIGNAL: u64 = 28;

/// Both ends' settings.
pub fn connection(scenario: &Scenario, contender: &Contender) -> ConnectionConfig {
    let wanted = &scenario.connection;
    let mut config = ConnectionConfig::new(policies(&for_video(scenario, &contender.policies)));
    config.multipath = contender.multipath;
    if scenario.video.is_some() {
        config.framing = Framing::Messages;
    }
    config.receive_buffer = match wanted.receive_buffer {
        ReceiveBuffer::Fixed(size) => BufferSize::Fixed(size.0),
        ReceiveBuffer::Auto { initial, max } => BufferSize::Auto { initial: initial.0, max: max.0 },
    };
    config.charge_out_of_order = wanted.charge_out_of_order.unwrap_or(config.charge_out_of_order);
    config.data_in_subflow_order = wanted.data_in_subflow_order.unwrap_or(config.data_in_subflow_order);
    config.send_buffer = wanted.send_buffer.map_or(config.send_buffer, |size| size.0);
    config.buffers_per_subflow = wanted.buffers_per_subflow.unwrap_or(config.buffers_per_subflow);
    config.priority = wanted.priority.unwrap_or(config.priority);
    config.checksum = wanted.checksum.unwrap_or(config.checksum);
    let tcp = &mut config.tcp;
    tcp.mtu = wanted.mtu.unwrap_or(tcp.mtu);
    tcp.sack = wanted.sack.unwrap_or(tcp.sack);
    tcp.timestamps = wanted.timestamps.unwrap_or(tcp.timestamps);
    tcp.ecn = wanted.ecn.unwrap_or(tcp.ecn);
    tcp.nagle = wanted.nagle.unwrap_or(tcp.nagle);
    tcp.pacing = wanted.pacing.unwrap_or(tcp.pacing);
    tcp.delayed_ack = wanted.delayed_ack.unwrap_or(tcp.delayed_ack);
    tcp.min_rto = wanted.min_rto.unwrap_or(tcp.min_rto);
    tcp.initial_rto = wanted.initial_rto.unwrap_or(tcp.initial_rto);
    tcp.max_timeouts = wanted.max_timeouts.unwrap_or(tcp.max_timeouts);
    tcp.initial_window = wanted.initial_window.map_or(tcp.initial_window, |packets| packets.0 as u32);
    tcp.max_window = wanted.max_window.map(|packets| packets.0 * segment_size(contender.multipath, tcp));
    config
}

/// A combination that does not say its deadline has that of the scenario's video.
fn for_video(scenario: &Scenario, policies: &Combination) -> Combination {
    let mut made = policies.clone();
    let Some(video) = &scenario.video else { return made };
    let choice = &mut made.reliability;
    let member = reliability::TABLE.iter().find(|member| member.name == choice.name);
    for name in DEADLINES {
        let takes = member.is_some_and(|member| member.parameters.iter().any(|parameter| parameter.name == name));
        if takes && choice.settings.get(name).is_none() {
            choice.settings.set(name, video.deadline.as_secs_f64() * 1e3);
        }
    }
    made
}

/// Payload of a full segment: the unit in which windows are given and shown.
pub fn segment_size(multipath: bool, tcp: &TcpConfig) -> u64 {
    // A multipath segment leaves room for the longest signal beside the timestamps.
    let options = if tcp.timestamps { TIMESTAMPS } else { 0 } + if multipath { SIGNAL } else { 0 };
    u64::from(tcp.mtu) - HEADERS - options
}

/// Factories of a combination's policies. The scenario has been checked, so that they cannot fail.
pub fn policies(combination: &Combination) -> Policies {
    Policies::of(combination).expect("the combination was checked")
}
