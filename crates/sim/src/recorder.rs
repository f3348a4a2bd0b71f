//! Measurements of a connection over time, aggregated into intervals of fixed length, so that memory is bounded by the
//! length of the run and the sender's window, not by the number of packets.
//!
//! The end-to-end delay of data is the time from its first transmission until the receiving application can read it. It
//! is measured per segment as first sent, at the delivery of its last byte. Jitter is the mean absolute difference of
//! successive delays, and also the running estimate J += (|D| - J) / 16 (RFC 3550, section 6.4.1; D is the difference
//! of the same two delays). The out-of-order distance of an arriving segment is the number of bytes between the next
//! expected byte and its first byte.

use crate::histogram::Histogram;
use anabranch_mptcp::Endpoint;
use anabranch_mptcp::event::{SendKind, TraceRecord};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{Phase, SubflowView};
use std::collections::VecDeque;

/// A connection over time: one row per interval. Where nothing was measured in an interval, means and maxima are 0, as
/// the count shows. Sequence numbers count from 0 at the first byte; sizes are bytes of payload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConnectionSeries {
    /// End of the interval in seconds.
    pub time: Vec<f64>,
    /// Bytes delivered in the interval.
    pub delivered_bytes: Vec<u64>,
    /// The byte after the last one sent.
    pub data_seq_sent: Vec<u64>,
    /// The byte after the highest one that has arrived.
    pub data_seq_received: Vec<u64>,
    /// The byte after the last readable one.
    pub data_seq_delivered: Vec<u64>,
    /// Segments that arrived in the interval.
    pub segments_arrived: Vec<u64>,
    /// Of these, segments that arrived out of order.
    pub segments_out_of_order: Vec<u64>,
    /// Largest out-of-order distance.
    pub out_of_order_max: Vec<u64>,
    /// Over all segments that arrived.
    pub out_of_order_mean: Vec<f64>,
    /// Segments whose delay was measured.
    pub delay_count: Vec<u64>,
    /// In seconds.
    pub delay_mean: Vec<f64>,
    /// In seconds.
    pub delay_max: Vec<f64>,
    /// Longest time without delivery that ended in the interval, or lasts at its end, in seconds; it may have begun
    /// earlier.
    pub longest_silence: Vec<f64>,
    /// Mean absolute difference of successive delays in seconds.
    pub jitter_mean: Vec<f64>,
    /// The estimate of RFC 3550 in seconds.
    pub jitter_smoothed: Vec<f64>,
    /// In-order bytes in the receive buffer, not read.
    pub receive_readable: Vec<u64>,
    /// Out-of-order bytes in the receive buffer.
    pub receive_out_of_order: Vec<u64>,
    pub receive_buffer: Vec<u64>,
    /// Rest of the connection-level send window.
    pub window_left: Vec<u64>,
    /// Bytes written, not yet assigned to a subflow.
    pub unsent: Vec<u64>,
    /// Episodes of a blocked receive buffer so far.
    pub blocked_episodes: Vec<u64>,
    /// Bytes retransmitted on the same subflow so far.
    pub retransmitted: Vec<u64>,
    /// Bytes reinjected on another subflow so far.
    pub reinjected: Vec<u64>,
    /// Bytes of deliberate duplicates so far.
    pub duplicated: Vec<u64>,
    /// Duplicate bytes received so far.
    pub duplicates_received: Vec<u64>,
}

/// A subflow over time at its sender: one row per interval in which it exists.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubflowSeries {
    /// The sender's id.
    pub id: SubflowId,
    /// Identifier of the sender's address.
    pub local_address: AddressId,
    /// Identifier of the receiver's address.
    pub remote_address: AddressId,
    /// End of the interval in seconds.
    pub time: Vec<f64>,
    /// In bytes.
    pub cwnd: Vec<u64>,
    /// Slow-start threshold in bytes.
    pub ssthresh: Vec<u64>,
    /// In seconds.
    pub smoothed_rtt: Vec<f64>,
    /// In seconds.
    pub latest_rtt: Vec<f64>,
    /// Retransmission timeout in seconds.
    pub rto: Vec<f64>,
    /// In bytes.
    pub in_flight: Vec<u64>,
    /// Bytes sent for the first time in the interval.
    pub sent_bytes: Vec<u64>,
    /// Bytes acknowledged in the interval: the goodput of the path, duplicates included.
    pub acked_bytes: Vec<u64>,
    /// Bytes marked lost in the interval.
    pub lost_bytes: Vec<u64>,
    /// Retransmission timeouts so far.
    pub timeouts: Vec<u32>,
    /// Latest sample in bits per second.
    pub delivery_rate: Vec<u64>,
    /// Whether it may carry new data: established, neither suspended nor a backup.
    pub active: Vec<bool>,
    /// Whether it is in loss recovery.
    pub recovering: Vec<bool>,
    /// Totals at the last row.
    last: [u64; 3],
}

/// Sums since the start of the connection, up to any time: rows end on a grid, runs and warm-ups anywhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sums {
    /// Bytes delivered.
    pub delivered: u64,
    /// Delays: number, and sum in nanoseconds.
    pub delays: u64,
    pub delay: u64,
    /// Segments that arrived, and the sum of their out-of-order distances in bytes.
    pub arrived: u64,
    pub distance: u64,
    /// Longest time without delivery that a delivery ended.
    pub silence: Duration,
}

/// What has happened since the last row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rest {
    /// Largest out-of-order distance in bytes.
    pub out_of_order_max: u64,
    /// Differences of successive delays: number, and sum in nanoseconds.
    pub jitters: u64,
    pub jitter: u64,
    /// Longest time without delivery that ended, and the one that lasts.
    pub silence: Duration,
    pub waiting: Duration,
}

/// Totals of the whole connection.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measurements {
    pub sums: Sums,
    pub rest: Rest,
    /// Of all segments.
    pub delay: Histogram,
    /// Mean absolute difference of successive delays in seconds.
    pub jitter_mean: f64,
    /// In bytes.
    pub out_of_order_max: u64,
    pub segments_out_of_order: u64,
    /// By reason: new, retransmission, reinjection, duplicate.
    pub bytes_sent_as: [u64; 4],
    /// Reports of a blocked receive buffer.
    pub blocked_reports: u64,
    pub series: ConnectionSeries,
    /// In order of id.
    pub subflows: Vec<SubflowSeries>,
}

/// Observations since the last row.
#[derive(Clone, Debug, Default)]
struct Bin {
    arrived: u64,
    out_of_order: u64,
    distance_sum: u64,
    distance_max: u64,
    delays: u64,
    delay_sum: u64,
    delay_max: u64,
    jitters: u64,
    jitter_sum: u64,
    silence: Duration,
}

/// A segment sent but not yet delivered.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    end: u64,
    at: Instant,
}

/// Measures one connection, in the direction with most data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    /// In order of data sequence, without overlap.
    outstanding: VecDeque<Sent>,
    sent: u64,
    received: u64,
    delivered: u64,
    /// Time of the last delivery; before that, the start of the connection.
    delivered_at: Instant,
    last_delay: Option<Duration>,
    smoothed_jitter: f64,
    jitters: u64,
    jitter_sum: u64,
    bin: Bin,
    delivered_at_last_row: u64,
    results: Measurements,
}

impl Recorder {
    /// A recorder of a connection that starts at `start`.
    pub(crate) fn from(start: Instant) -> Self {
        Self { delivered_at: start, ..Self::default() }
    }
    /// A trace record of the sender or the receiver.
    pub(crate) fn on_trace(&mut self, now: Instant, at_sender: bool, record: &TraceRecord) {
        match *record {
            TraceRecord::Sent { data_seq, length, kind, .. } if at_sender => self.on_sent(now, data_seq, length, kind),
            TraceRecord::Arrived { data_seq, length, expected, .. } if !at_sender => {
                self.on_arrived(data_seq, u64::from(length), expected);
            }
            TraceRecord::Delivered { data_seq, .. } if !at_sender => self.on_delivered(now, data_seq),
            TraceRecord::Blocked { .. } if at_sender => self.results.blocked_reports += 1,
            // The other direction of the connection.
            TraceRecord::Sent { .. }
            | TraceRecord::Arrived { .. }
            | TraceRecord::Delivered { .. }
            | TraceRecord::Blocked { .. } => {}
        }
    }
    fn on_sent(&mut self, now: Instant, data_seq: u64, length: u32, kind: SendKind) {
        self.results.bytes_sent_as[kind as usize] += u64::from(length);
        let end = data_seq + u64::from(length);
        self.sent = self.sent.max(end);
        // Data assigned to one subflow is overtaken by later data on another, and may even be sent first as a
        // duplicate.
        let place = match self.outstanding.back() {
            Some(last) if last.start >= data_seq => self.outstanding.partition_point(|sent| sent.start <= data_seq),
            _ => self.outstanding.len(),
        };
        let known = place.checked_sub(1).and_then(|before| self.outstanding.get(before));
        if length > 0 && data_seq >= self.delivered && known.is_none_or(|before| before.end <= data_seq) {
            self.outstanding.insert(place, Sent { start: data_seq, end, at: now });
        }
    }
    fn on_arrived(&mut self, data_seq: u64, length: u64, expected: u64) {
        self.received = self.received.max(data_seq + length);
        let distance = data_seq.saturating_sub(expected);
        let ahead = u64::from(distance > 0);
        self.bin.arrived += 1;
        self.bin.out_of_order += ahead;
        self.bin.distance_sum += distance;
        self.bin.distance_max = self.bin.distance_max.max(distance);
        self.results.sums.arrived += 1;
        self.results.sums.distance += distance;
        self.results.segments_out_of_order += ahead;
        self.results.out_of_order_max = self.results.out_of_order_max.max(distance);
    }
    fn on_delivered(&mut self, now: Instant, data_seq: u64) {
        if data_seq > self.delivered {
            self.bin.silence = self.bin.silence.max(now - self.delivered_at);
            self.results.sums.silence = self.results.sums.silence.max(self.bin.silence);
            (self.delivered, self.delivered_at) = (data_seq, now);
        }
        while let Some(sent) = self.outstanding.front().filter(|sent| sent.end <= data_seq) {
            let delay = now - sent.at;
            self.outstanding.pop_front();
            self.results.delay.add(delay);
            self.bin.delays += 1;
            self.bin.delay_sum += delay.as_nanos();
            self.bin.delay_max = self.bin.delay_max.max(delay.as_nanos());
            if let Some(last) = self.last_delay.replace(delay) {
                let difference = delay.abs_diff(last);
                self.smoothed_jitter += (difference.as_secs_f64() - self.smoothed_jitter) / 16.0;
                self.bin.jitters += 1;
                self.bin.jitter_sum += difference.as_nanos();
                self.jitters += 1;
                self.jitter_sum += difference.as_nanos();
            }
        }
    }
    /// Ends an interval: adds a row to every series.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        sender: Option<(&Endpoint, ConnectionId)>,
        receiver: Option<(&Endpoint, ConnectionId)>,
    ) {
        let bin = core::mem::take(&mut self.bin);
        let series = &mut self.results.series;
        let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
        series.time.push(now.as_secs_f64());
        series.delivered_bytes.push(self.delivered - self.delivered_at_last_row);
        self.delivered_at_last_row = self.delivered;
        series.data_seq_sent.push(self.sent);
        series.data_seq_received.push(self.received);
        series.data_seq_delivered.push(self.delivered);
        series.segments_arrived.push(bin.arrived);
        series.segments_out_of_order.push(bin.out_of_order);
        series.out_of_order_max.push(bin.distance_max);
        series.out_of_order_mean.push(mean(bin.distance_sum, bin.arrived));
        series.delay_count.push(bin.delays);
        series.delay_mean.push(mean(bin.delay_sum, bin.delays) / 1e9);
        series.delay_max.push(bin.delay_max as f64 / 1e9);
        series.longest_silence.push(bin.silence.max(now - self.delivered_at).as_secs_f64());
        series.jitter_mean.push(mean(bin.jitter_sum, bin.jitters) / 1e9);
        series.jitter_smoothed.push(self.smoothed_jitter);
        self.results.jitter_mean = mean(self.jitter_sum, self.jitters) / 1e9;
        let receive = receiver.and_then(|(endpoint, id)| endpoint.receive_state(id)).unwrap_or_default();
        series.receive_readable.push(receive.readable);
        series.receive_out_of_order.push(receive.out_of_order);
        series.receive_buffer.push(receive.buffer);
        let view = sender.and_then(|(endpoint, id)| endpoint.connection_view(now, id));
        series.window_left.push(view.as_ref().map_or(0, |view| view.window_left));
        series.unsent.push(view.as_ref().map_or(0, |view| view.unsent));
        self.sample_counters(sender, receiver);
        if let Some((endpoint, id)) = sender {
            for view in endpoint.subflow_views(now, id) {
                self.sample_subflow(now, &view);
            }
        }
    }
    /// Totals keep their values after the connection has ended.
    fn sample_counters(
        &mut self,
        sender: Option<(&Endpoint, ConnectionId)>,
        receiver: Option<(&Endpoint, ConnectionId)>,
    ) {
        let series = &mut self.results.series;
        let go_on = |column: &mut Vec<u64>, value: Option<u64>| {
            let last = column.last().copied().unwrap_or(0);
            column.push(value.unwrap_or(last));
        };
        let stats = sender.and_then(|(endpoint, id)| endpoint.stats(id));
        go_on(&mut series.blocked_episodes, stats.map(|stats| stats.blocked_episodes));
        go_on(&mut series.retransmitted, stats.map(|stats| stats.bytes_retransmitted));
        go_on(&mut series.reinjected, stats.map(|stats| stats.bytes_reinjected));
        go_on(&mut series.duplicated, stats.map(|stats| stats.bytes_duplicated));
        let stats = receiver.and_then(|(endpoint, id)| endpoint.stats(id));
        go_on(&mut series.duplicates_received, stats.map(|stats| stats.duplicate_bytes_received));
    }
    fn sample_subflow(&mut self, now: Instant, view: &SubflowView) {
        let subflows = &mut self.results.subflows;
        let place = match subflows.binary_search_by_key(&view.id, |series| series.id) {
            Ok(place) => place,
            Err(place) => {
                let (id, local_address, remote_address) = (view.id, view.local_address, view.remote_address);
                subflows.insert(place, SubflowSeries { id, local_address, remote_address, ..SubflowSeries::default() });
                place
            }
        };
        subflows[place].add_row(now, view);
    }
    #[cfg(test)]
    pub(crate) fn results(&self) -> &Measurements {
        &self.results
    }
    /// What was measured until now, with what no row has yet.
    pub(crate) fn results_at(&self, now: Instant) -> Measurements {
        let Bin { jitters, jitter_sum: jitter, silence, distance_max: out_of_order_max, .. } = self.bin;
        let rest = Rest { out_of_order_max, jitters, jitter, silence, waiting: now - self.delivered_at };
        let Measurements { delay, sums, .. } = &self.results;
        let (delivered, delays, delay) = (self.delivered, delay.count(), delay.sum().as_nanos());
        Measurements { sums: Sums { delivered, delays, delay, ..*sums }, rest, ..self.results.clone() }
    }
}

impl SubflowSeries {
    fn add_row(&mut self, now: Instant, view: &SubflowView) {
        self.time.push(now.as_secs_f64());
        self.cwnd.push(view.cwnd);
        self.ssthresh.push(view.ssthresh);
        self.smoothed_rtt.push(view.smoothed_rtt.as_secs_f64());
        self.latest_rtt.push(view.latest_rtt.as_secs_f64());
        self.rto.push(view.rto.as_secs_f64());
        self.in_flight.push(view.in_flight);
        let totals = [view.counters.bytes_sent, view.counters.bytes_acked, view.counters.bytes_lost];
        let [sent, acked, lost] = [0, 1, 2].map(|column| totals[column].saturating_sub(self.last[column]));
        self.last = totals;
        self.sent_bytes.push(sent);
        self.acked_bytes.push(acked);
        self.lost_bytes.push(lost);
        self.timeouts.push(view.counters.timeouts);
        self.delivery_rate.push(view.rates.delivery.bits_per_second());
        self.active.push(view.usable() && !view.backup);
        self.recovering.push(matches!(view.phase, Phase::FastRecovery | Phase::TimeoutRecovery));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: ConnectionId = ConnectionId(1);
    const S: SubflowId = SubflowId(0);

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }
    fn sent(data_seq: u64, kind: SendKind) -> TraceRecord {
        TraceRecord::Sent { connection: C, subflow: S, data_seq, length: 100, kind }
    }
    fn arrived(data_seq: u64, expected: u64) -> TraceRecord {
        TraceRecord::Arrived { connection: C, subflow: S, data_seq, length: 100, expected }
    }
    fn delivered(data_seq: u64) -> TraceRecord {
        TraceRecord::Delivered { connection: C, data_seq }
    }

    #[test]
    fn delay_jitter_and_distance_of_a_hole_that_is_filled_late() {
        let mut recorder = Recorder::default();
        for n in 0..3 {
            recorder.on_trace(ms(n), true, &sent(n * 100, SendKind::New));
        }
        // The first arrives after 10 ms, the second is lost, the third waits for it from 12 to 50 ms.
        recorder.on_trace(ms(10), false, &arrived(0, 0));
        recorder.on_trace(ms(10), false, &delivered(100));
        recorder.on_trace(ms(12), false, &arrived(200, 100));
        recorder.on_trace(ms(30), true, &sent(100, SendKind::Reinjection));
        recorder.on_trace(ms(50), false, &arrived(100, 100));
        recorder.on_trace(ms(50), false, &delivered(300));
        recorder.sample(ms(100), None, None);
        // Delays 10, 49 and 48 ms; differences 39 and 1 ms.
        let Measurements { series, delay, jitter_mean, out_of_order_max, bytes_sent_as, .. } = recorder.results();
        assert_eq!((delay.count(), delay.max()), (3, Duration::from_millis(49)));
        assert!((series.delay_mean[0] - 0.107 / 3.0).abs() < 1e-12);
        assert!((series.jitter_mean[0] - 0.020).abs() < 1e-12 && (jitter_mean - 0.020).abs() < 1e-12);
        // 39/16 = 2.4375 ms, then 2.4375 + (1 - 2.4375)/16 = 2.34765625 ms.
        assert!((series.jitter_smoothed[0] - 0.002_347_656_25).abs() < 1e-12);
        assert_eq!((series.segments_out_of_order[0], series.out_of_order_max[0], *out_of_order_max), (1, 100, 100));
        assert!((series.out_of_order_mean[0] - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!((series.delivered_bytes[0], series.data_seq_received[0], series.data_seq_sent[0]), (300, 300, 300));
        assert_eq!(*bytes_sent_as, [300, 0, 100, 0]);
    }

    #[test]
    fn data_that_is_overtaken_before_it_is_sent_counts_from_its_own_first_transmission() {
        let mut recorder = Recorder::default();
        recorder.on_trace(ms(0), true, &sent(0, SendKind::New));
        recorder.on_trace(ms(1), true, &sent(200, SendKind::New));
        recorder.on_trace(ms(5), true, &sent(100, SendKind::Reinjection));
        recorder.on_trace(ms(7), true, &sent(100, SendKind::Retransmission));
        recorder.on_trace(ms(8), true, &sent(200, SendKind::Duplicate));
        recorder.on_trace(ms(20), false, &delivered(300));
        recorder.on_trace(ms(21), true, &sent(200, SendKind::Retransmission));
        recorder.on_trace(ms(30), false, &delivered(300));
        let delay = &recorder.results().delay;
        // 20, 15 and 19 ms.
        assert_eq!(
            (delay.count(), delay.mean(), delay.max()),
            (3, Duration::from_millis(18), Duration::from_millis(20))
        );
    }

    #[test]
    fn an_empty_interval_is_a_row_of_zeros_and_totals_stay() {
        let mut recorder = Recorder::default();
        recorder.on_trace(ms(0), true, &sent(0, SendKind::New));
        recorder.on_trace(ms(5), false, &delivered(100));
        recorder.sample(ms(10), None, None);
        recorder.sample(ms(20), None, None);
        let series = &recorder.results().series;
        assert_eq!((series.delivered_bytes[0], series.delivered_bytes[1]), (100, 0));
        assert_eq!((series.delay_count[1], series.data_seq_delivered[1]), (0, 100));
        // From the start to 5 ms, and from then to 20 ms.
        assert_eq!(series.longest_silence, [0.005, 0.015]);
        assert!(series.delay_mean[1] == 0.0);
    }
}
