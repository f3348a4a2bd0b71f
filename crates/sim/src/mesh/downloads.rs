//! Downloads between random pairs of hosts, one at a time: the throughput that a routing metric gives (De Couto et al.,
//! MobiCom 2003, and Draves et al., SIGCOMM 2004, measure it so).

use crate::address::InterfaceId;
use crate::application::{Application, Sending};
use crate::flow::{FlowConfig, Side};
use crate::random::RandomStream;
use crate::results::RunResult;
use crate::world::{Change, World};
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::time::{Duration, Instant};

/// Settings of downloads.
#[derive(Clone, Debug)]
pub struct Downloads {
    /// Duration of each; the next one begins when it ends.
    pub each: Duration,
    /// Of both ends.
    pub connection: ConnectionConfig,
}

impl Downloads {
    /// Adds as many as fit between two times. Each pair of different interfaces is equally likely.
    pub(super) fn add(&self, world: &mut World, among: &[InterfaceId], (from, until): (Instant, Instant)) {
        let mut random = RandomStream::new(world.seed(), "downloads");
        let mut start = from;
        for number in 0_u32.. {
            let stop = start + self.each;
            let Some((client, server)) = pair(&mut random, among).filter(|_| stop <= until) else { return };
            let Some(host) = world.host_of(client) else { return };
            let flow = world.add_flow(FlowConfig {
                name: format!("download {number}"),
                client: host,
                from: Some(client),
                to: server,
                start,
                stop: Instant::NEVER,
                application: Application::download(Sending::Endless),
                client_config: self.connection.clone(),
                server_config: self.connection.clone(),
                // One sample, at its end.
                record: Some(self.each),
            });
            // Both ends, so that neither sends what is left in its buffer during the next download.
            for side in Side::BOTH {
                world.schedule(stop, Change::Abort(flow, side));
            }
            start = stop;
        }
    }
    /// Data delivered in the time of each, in bits per second; 0 where no connection was established.
    pub(super) fn throughputs(&self, results: &RunResult) -> Vec<f64> {
        let measured = results.flows.iter().filter_map(|flow| flow.measurements.as_ref());
        let bytes = measured.map(|flow| flow.series.delivered_bytes.first().copied().unwrap_or(0));
        bytes.map(|bytes| bytes as f64 * 8.0 / self.each.as_secs_f64()).collect()
    }
}

/// Two different ones; none if there are fewer.
fn pair(random: &mut RandomStream, among: &[InterfaceId]) -> Option<(InterfaceId, InterfaceId)> {
    let count = among.len() as u64;
    let one = random.below(count.max(1));
    let other = (one + 1 + random.below(count.saturating_sub(1).max(1))) % count.max(1);
    Some((*among.get(one as usize)?, *among.get(other as usize)?)).filter(|_| count > 1)
}
