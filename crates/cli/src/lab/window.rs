//! The part of a run that counts, and the connections of the transfer in it.

use super::beside;
use crate::scenario::Scenario;
use anabranch_policy::time::Instant;
use anabranch_sim::link::LinkCounters;
use anabranch_sim::recorder::SubflowSeries;
use anabranch_sim::{FlowResult, RunResult, Side};

/// A run, and how it stood when the warm-up was over.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    /// What was run.
    pub scenario: &'a Scenario,
    /// Places of the paths in use.
    pub paths: &'a [usize],
    /// At the end of the warm-up; none: there is none.
    pub before: Option<&'a RunResult>,
    /// At the end.
    pub after: &'a RunResult,
}

impl<'a> Window<'a> {
    /// The connections of the transfer.
    pub fn own(&self) -> impl Iterator<Item = &'a FlowResult> {
        let after = self.after;
        (0..self.scenario.connections).filter_map(move |number| after.flow(&beside::own_name(number)))
    }

    /// Bytes that a flow's receiver read in the window.
    pub fn read(&self, flow: &FlowResult) -> f64 {
        let earlier = self.before.and_then(|before| before.flow(&flow.name)).map_or(0, |flow| flow.receiver().read);
        (flow.receiver().read - earlier) as f64
    }

    /// What a link counted in the window.
    pub fn counted(&self, link: &str, what: impl Fn(&LinkCounters) -> u64) -> u64 {
        let count = |results: &RunResult| results.link(link).map_or(0, |link| what(&link.counters));
        count(self.after) - self.before.map_or(0, count)
    }

    /// How long it is.
    pub fn seconds(&self) -> f64 {
        let begin = self.before.map_or(Instant::ZERO, |before| before.end);
        (self.after.end - begin).as_secs_f64()
    }

    /// Whether a row of a series, with the interval that ends at `time`, belongs to it.
    pub fn row_counts(&self, time: f64) -> bool {
        time > self.before.map_or(0.0, |before| before.end.as_secs_f64())
    }

    /// Delays of a flow's messages in ms, from when there was one to be written to when its last byte had been read. Messages of the
    /// warm-up do not count, nor do those of the last tenth of the rest, which might have no time to arrive; of the others, one that has
    /// not arrived counts with the time that it has waited.
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

/// Which of the client's interfaces a subflow leaves from. The client numbers its addresses from 1; the address of the
/// initial subflow, which is the first, may also be called 0 (RFC 8684, section 3.4.1). Where the server sends, the
/// client's address is the remote one.
pub fn interface(sender: Side, subflow: &SubflowSeries) -> usize {
    let of_client = match sender {
        Side::Client => subflow.local_address,
        Side::Server => subflow.remote_address,
    };
    usize::from(of_client.0.max(1)) - 1
}
