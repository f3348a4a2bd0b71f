//! Measures one-way delays for path managers that ask for them, and detects a blocked receive buffer at the receiver.

use super::association::Protocol;
use super::output::Notice;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::delay_meter::DelayMeter;
use anabranch_policy::path_manager::ForwardDelays;
use anabranch_policy::time::Instant;
use anabranch_wire::Segment;

impl Connection {
    /// Data arrived: our clock minus its timestamp.
    pub(super) fn record_arrival_delay(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        if let Some(stamps) = segment.options.timestamps {
            let difference = self.stamp(now).wrapping_sub(stamps.value);
            self.record_delay(now, handle, ForwardDelays::OfArrivals, difference, self.stamp_clock().micros_into(now));
        }
    }

    /// Our data was acknowledged: the peer's clock minus our clock at the transmission, both in whole milliseconds.
    pub(super) fn record_acknowledged_delay(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        if let Some(stamps) = segment.options.timestamps.filter(|stamps| stamps.echo != 0) {
            let difference = stamps.value.wrapping_sub(stamps.echo);
            self.record_delay(now, handle, ForwardDelays::OfAcknowledgements, difference, 0);
        }
    }

    fn record_delay(&mut self, now: Instant, handle: Handle, of: ForwardDelays, difference: u32, micros: i64) {
        let Some(watch) = self.measurement.watch.as_mut().filter(|watch| watch.of == of) else { return };
        let subflow = &self.subflows[handle];
        if !subflow.negotiated.timestamps {
            return;
        }
        let reference = *watch.reference.get_or_insert(difference);
        if let Some(meter) = watch.meters.get_mut(subflow.id()) {
            return meter.include(now, difference, micros);
        }
        let mut meter = DelayMeter::new(difference, reference);
        meter.include(now, difference, micros);
        watch.meters.retain(|id| self.subflows.iter().any(|subflow| subflow.id() == id));
        watch.meters.insert(subflow.id(), meter);
    }

    /// Data was put into the receive buffer: an episode may begin or end.
    pub(super) fn watch_receive_buffer(&mut self, now: Instant) {
        let was_blocked = self.measurement.watch.as_ref().is_some_and(|watch| watch.repeat_at != Instant::NEVER);
        let is_blocked = self.is_receiver_blocked();
        if was_blocked != is_blocked {
            self.announce_receiver_blocked(now, is_blocked);
        }
    }

    /// Repeats the report of an episode that outlasts the largest round trip, unless reading has ended it.
    pub(super) fn look_at_receive_buffer_again(&mut self, now: Instant) {
        if self.measurement.watch.as_ref().is_some_and(|watch| watch.repeat_at <= now) {
            self.announce_receiver_blocked(now, self.is_receiver_blocked());
        }
    }

    fn announce_receiver_blocked(&mut self, now: Instant, is_blocked: bool) {
        let repeat_at = if is_blocked { now + self.longest_round_trip() } else { Instant::NEVER };
        let Some(watch) = self.measurement.watch.as_mut().filter(|watch| watch.of == ForwardDelays::OfArrivals) else {
            return;
        };
        watch.repeat_at = repeat_at;
        if is_blocked {
            self.output.tell(Notice::ReceiverBlocked(self.receiver.buffer.next()));
        }
    }

    /// Whether nothing can arrive except data that fills the hole. The edge is the one advertised, which may have been
    /// rounded down.
    fn is_receiver_blocked(&self) -> bool {
        let Some(highest) = self.receiver.buffer.highest().filter(|_| self.association.protocol == Protocol::Multipath)
        else {
            return false;
        };
        let scale = self.subflows.iter().map(|s| s.negotiated.receive_scale).max().unwrap_or(0);
        let rounded = (1 << scale) - 1;
        self.receiver.advertised_edge.saturating_sub(highest) < u64::from(self.receiver.buffer.segment_size()) + rounded
    }
}
