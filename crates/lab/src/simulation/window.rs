//! The measured part of a run, and the transfer's connections in it.

use super::beside;
use crate::scenario::Scenario;
use anabranch_policy::time::Instant;
use anabranch_sim::link::LinkCounters;
use anabranch_sim::recorder::SubflowSeries;
use anabranch_sim::{FlowResult, RunResult, Side};

/// A run, with its state at the end of the warm-up.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    pub scenario: &'a Scenario,
    /// Indices of the paths in use.
    pub paths: &'a [usize],
    /// State at the end of the warm-up; none without a warm-up.
    pub before: Option<&'a RunResult>,
    /// State at the end.
    pub after: &'a RunResult,
}

impl<'a> Window<'a> {
    /// The connections of the transfer.
    pub fn own(&self) -> impl Iterator<Item = &'a FlowResult> {
        let after = self.after;
        (0..self.scenario.connections).filter_map(move |number| after.flow(&beside::own_name(number)))
    }

    /// Bytes read by a flow's receiver in the window.
    pub fn read(&self, flow: &FlowResult) -> f64 {
        let earlier = self.before.and_then(|before| before.flow(&flow.name)).map_or(0, |flow| flow.receiver().read);
        (flow.receiver().read - earlier) as f64
    }

    /// Increase of a link's counter in the window.
    pub fn counted(&self, link: &str, what: impl Fn(&LinkCounters) -> u64) -> u64 {
        let count = |results: &RunResult| results.link(link).map_or(0, |link| what(&link.counters));
        count(self.after) - self.before.map_or(0, count)
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        let begin = self.before.map_or(Instant::ZERO, |before| before.end);
        (self.after.end - begin).as_secs_f64()
    }

    /// Whether the sampling interval that ends at `time` is in the window.
    pub fn row_counts(&self, time: f64) -> bool {
        time > self.before.map_or(0.0, |before| before.end.as_secs_f64())
    }

    /// How many of a flow's rows, which end at these times, end within the warm-up. Of transfers that end by themselves
    /// there is no state at its end, and those of a mesh begin later than the world.
    pub fn rows_of_warm_up(&self, times: &[f64]) -> usize {
        match self.before {
            Some(_) => times.iter().filter(|time| !self.row_counts(**time)).count(),
            None => (self.scenario.warm_up.as_nanos() / self.scenario.sample.as_nanos().max(1)) as usize,
        }
    }

    /// Delays of a flow's messages in ms, from their creation until their last byte was read. Messages of the warm-up
    /// are excluded, and those of the last tenth of the window, which may be too late to arrive. A message that has not
    /// arrived counts with its present age.
    pub fn delays_of_messages(&self, flow: &FlowResult) -> Vec<f64> {
        let begin = Instant::ZERO + self.scenario.warm_up;
        let end = begin + (self.scenario.duration - self.scenario.warm_up).mul_f64(0.9);
        let counted = flow.messages().filter(|(written, _)| (begin..end).contains(written));
        let delay = |(written, read): (Instant, Option<Instant>)| {
            (read.unwrap_or(self.after.end) - written).as_secs_f64() * 1e3
        };
        counted.map(delay).collect()
    }
}

/// Index of the client's interface that a subflow uses. The client numbers its addresses from 1; the address of the
/// initial subflow, which is the first, may also have ID 0 (RFC 8684, section 3.4.1). If the server sends, the client's
/// address is the remote one.
pub fn interface(sender: Side, subflow: &SubflowSeries) -> usize {
    let of_client = match sender {
        Side::Client => subflow.local_address,
        Side::Server => subflow.remote_address,
    };
    usize::from(of_client.0.max(1)) - 1
}
