//! Sends notices to the peer.

use crate::connection::state::Connection;
use crate::connection::subflows::Handle;
use crate::connection::timer_table::Timer;
use anabranch_policy::path_manager::ForwardDelays;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::mptcp::notice::{Notice, WorstPath};

/// Limit of hellos without an answer.
const MAX_HELLOS: u32 = 4;

impl Connection {
    /// Sends a hello, a limited number of times.
    pub(in crate::connection) fn send_hello(&mut self, now: Instant) {
        // A server has the client's key at the latest with its first data.
        let confirmed = (self.association.confirmed || self.receiver.buffer.next() > 0)
            && self.association.protocol == crate::connection::association::Protocol::Multipath
            && self.life.closed.is_none();
        let Some(partial) = self.partial.as_mut().filter(|partial| confirmed && partial.abandons()) else { return };
        let settled = partial.notices.peer_knows && partial.notices.peer_heard;
        if settled || partial.notices.hellos >= MAX_HELLOS {
            return;
        }
        if now >= partial.notices.hello_at {
            partial.notices.hellos += 1;
            let (heard, pause) = (partial.notices.peer_knows, 1 << partial.notices.hellos);
            let repairs = self.duplicates();
            let round_trip = self.round_trip();
            if let Some(partial) = self.partial.as_mut() {
                partial.notices.hello_at = now + round_trip * pause;
            }
            self.tell(Notice::Hello { heard, repairs }, false);
        }
        if let Some(partial) = &self.partial {
            self.timers.set_by(Timer::Missing, partial.notices.hello_at);
        }
    }

    /// Queues a notice on every subflow, or on the one with the shortest round trip.
    pub(in crate::connection) fn tell(&mut self, notice: Notice, everywhere: bool) {
        let option = notice.option();
        let open = |s: &&mut crate::subflow::Subflow| s.state.can_receive() && s.handshake.confirmed;
        let mut open: Vec<_> = self.subflows.iter_mut().filter(open).collect();
        open.sort_by_key(|subflow| subflow.rtt.smoothed());
        let most = if everywhere { open.len() } else { 1 };
        for subflow in open.into_iter().take(most) {
            if !subflow.control.contains(&option) {
                subflow.push_control(option.clone());
            }
        }
        self.output.pending = true;
    }

    /// We abandoned data: sends a notice, if the peer understands it.
    pub(in crate::connection) fn report_abandoned(&mut self, start: u64, length: u64, reason: Reason) {
        let worst = self.worst_path();
        let data_seq = self.identity.remote.data_seq(start) as u32;
        let Some(partial) = self.partial.as_mut() else { return };
        partial.notices.told_total = partial.notices.told_total.wrapping_add(length as u32);
        if !partial.notices.peer_knows {
            return;
        }
        let place = Reason::ALL.iter().position(|known| *known == reason).unwrap_or_default() as u8;
        let (length, total) = (length.min(u64::from(u32::MAX)) as u32, partial.notices.told_total);
        self.tell(Notice::Abandoned { data_seq, length, total, reason: place, worst }, false);
    }

    /// The path with the largest one-way delay, where delays are measured.
    fn worst_path(&self) -> Option<WorstPath> {
        let delays: Vec<(Handle, f64)> = self.forward_delays().collect();
        let (handle, worst) = delays.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = delays.iter().map(|(_, delay)| *delay).fold(worst, f64::min);
        let identity = self.subflows[handle].identity;
        Some(WorstPath {
            local_address: self.identity.wire_address(identity.local_address),
            remote_address: identity.remote_address.0,
            behind: ((worst - least) / 1_000.0) as u16,
        })
    }

    /// The slowest path by the peer's last notice: the subflow, and by how much its delay exceeds the minimum.
    pub fn worst_path_of_peer(&self) -> Option<(anabranch_policy::ids::SubflowId, Duration)> {
        let worst = self.partial.as_ref()?.notices.peer_worst?;
        let handle = self.named_by_peer((worst.local_address, worst.remote_address))?;
        Some((self.subflows[handle].id(), Duration::from_millis(u64::from(worst.behind))))
    }

    /// The subflow that the peer identifies by its address and ours.
    pub(in crate::connection) fn named_by_peer(&self, (theirs, ours): (u8, u8)) -> Option<Handle> {
        self.subflows.find(|subflow| {
            subflow.identity.remote_address.0 == theirs
                && self.identity.wire_address(subflow.identity.local_address) == ours
        })
    }

    /// Indices of the subflows whose one-way delay is measured on arrivals, and the delays in microseconds on a common
    /// scale.
    pub(super) fn forward_delays(&self) -> impl Iterator<Item = (Handle, f64)> {
        let watch = self.measurement.watch.as_ref().filter(|watch| watch.of == ForwardDelays::OfArrivals);
        let meter = move |id| watch.and_then(|watch| watch.meters.get(id));
        let of = move |subflow: &crate::subflow::Subflow| {
            meter(subflow.id()).map(|meter| meter.delay.smoothed(meter.delay.latest_at(), 0.0))
        };
        self.subflows.entries().filter_map(move |(handle, subflow)| Some((handle, of(subflow)?)))
    }
}

#[cfg(test)]
mod tests {
    use crate::connection::measurement::ReceiverWatch;
    use crate::connection::tests::{config, connected};
    use crate::subflow::delay_meter::DelayMeter;
    use anabranch_policy::ids::SubflowId;
    use anabranch_policy::path_manager::ForwardDelays;
    use anabranch_policy::time::Instant;

    #[test]
    fn the_path_with_the_largest_delay_is_named_with_the_milliseconds_by_which_it_is_behind_the_quickest() {
        let mut connection = connected(config(), 3);
        let mut watch = ReceiverWatch::of(ForwardDelays::OfArrivals).unwrap();
        for (id, millis) in [(0, 60), (1, 130), (2, 30)] {
            let mut meter = DelayMeter::new(1_000 + millis, 1_000);
            meter.include(Instant::ZERO, 1_000 + millis, 0);
            watch.meters.insert(SubflowId(id), meter);
        }
        connection.measurement.watch = Some(watch);
        let worst = connection.worst_path().unwrap();
        assert_eq!((worst.local_address, worst.remote_address, worst.behind), (2, 0, 100));
        connection.measurement.watch = None;
        assert!(connection.worst_path().is_none());
    }
}
