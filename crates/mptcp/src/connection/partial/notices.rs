//! What two of our own ends tell each other about what is given up ([`Notice`]). Nothing waits for any of it.

use super::Connection;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::MptcpOption;
use anabranch_wire::mptcp::notice::{Notice, WorstPath};

/// How often we say that we know of notices, where no answer comes.
const MAX_HELLOS: u32 = 4;
/// Stretches that the peer withdrew and that are remembered.
const MAX_WITHDRAWN: usize = 256;

impl Connection {
    /// Says, a few times, that we know of notices.
    pub(in crate::connection) fn say_hello(&mut self, now: Instant) {
        // A server has the client's key with its first data, if not before.
        let confirmed = (self.association.confirmed || self.receiver.buffer.next() > 0)
            && self.association.protocol == super::Protocol::Multipath
            && self.life.closed.is_none();
        let Some(partial) = self.partial.as_mut().filter(|partial| confirmed && partial.gives_up()) else { return };
        let settled = partial.peer_knows && partial.peer_heard;
        if settled || partial.hellos >= MAX_HELLOS {
            return;
        }
        if now >= partial.hello_at {
            partial.hellos += 1;
            let (heard, pause) = (partial.peer_knows, 1 << partial.hellos);
            let repairs = self.duplicates();
            let round_trip = self.round_trip();
            if let Some(partial) = self.partial.as_mut() {
                partial.hello_at = now + round_trip * pause;
            }
            self.tell(Notice::Hello { heard, repairs }, false);
        }
        if let Some(partial) = &self.partial {
            self.timers.missing = self.timers.missing.min(partial.hello_at);
        }
    }

    /// Puts a notice on the way, on every subflow or on the one of the shortest round trip.
    pub(super) fn tell(&mut self, notice: Notice, everywhere: bool) {
        let option = notice.option();
        let open = |s: &&mut crate::subflow::Subflow| s.state.can_receive() && s.confirmed;
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

    /// We gave something up: the sender hears of it, if it knows what that means.
    pub(super) fn tell_of_abandoned(&mut self, start: u64, length: u64, reason: Reason) {
        let worst = self.worst_path();
        let data_seq = self.identity.remote.data_seq(start) as u32;
        let Some(partial) = self.partial.as_mut() else { return };
        partial.told_total = partial.told_total.wrapping_add(length as u32);
        if !partial.peer_knows {
            return;
        }
        let place = Reason::ALL.iter().position(|known| *known == reason).unwrap_or_default() as u8;
        let (length, total) = (length.min(u64::from(u32::MAX)) as u32, partial.told_total);
        self.tell(Notice::Abandoned { data_seq, length, total, reason: place, worst }, false);
    }

    /// The path of the largest forward delay, where delays are measured.
    fn worst_path(&self) -> Option<WorstPath> {
        let delays: Vec<(usize, f64)> = self.forward_delays().collect();
        let (index, worst) = delays.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = delays.iter().map(|(_, delay)| *delay).fold(worst, f64::min);
        let identity = self.subflows.get(index)?.identity;
        Some(WorstPath {
            local_address: self.wire_address(identity.local_address),
            remote_address: identity.remote_address.0,
            behind: ((worst - least) / 1_000.0) as u16,
        })
    }

    /// A notice came in; anything else is not for us.
    pub(in crate::connection) fn handle_notice(&mut self, now: Instant, option: &MptcpOption) {
        let near = self.receiver.buffer.next();
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.gives_up()) else { return };
        match Notice::of(option) {
            None => {}
            Some(Notice::Hello { heard, repairs }) => {
                let news = !partial.peer_knows;
                partial.peer_knows = true;
                partial.peer_heard |= heard;
                partial.peer_repairs |= repairs;
                if news || !heard {
                    partial.judge_written_at = now;
                    let repairs = self.duplicates();
                    self.tell(Notice::Hello { heard: true, repairs }, false);
                    self.judge_missing(now);
                }
            }
            Some(Notice::Abandoned { total, worst, .. }) => {
                let more = total.wrapping_sub(partial.peer_total);
                // One that was overtaken by a later one says nothing new.
                if more < 1 << 31 {
                    partial.peer_total = total;
                    partial.peer_abandoned += u64::from(more);
                    partial.peer_worst = worst;
                }
            }
            Some(Notice::Withdrawn { data_seq, length }) if partial.peer_knows => {
                let start = crate::connection::mapping::near_offset(
                    near,
                    data_seq.wrapping_sub(self.identity.remote.data_seq(0) as u32),
                );
                let Some(partial) = self.partial.as_mut() else { return };
                let range = (start, start.saturating_add(u64::from(length)));
                partial.peer_withdrawn.retain(|known| known.1 > near);
                if partial.peer_withdrawn.len() < MAX_WITHDRAWN && !partial.peer_withdrawn.contains(&range) {
                    partial.peer_withdrawn.push(range);
                }
                self.judge_missing(now);
            }
            Some(Notice::Missing { local_address, remote_address, subflow_seq, length }) if partial.peer_knows => {
                self.send_elsewhere(now, (local_address, remote_address), subflow_seq, length);
            }
            Some(Notice::Withdrawn { .. } | Notice::Missing { .. }) => {}
        }
    }

    /// The peer's worst path by its own word: the subflow, and how much longer than the shortest way it takes.
    pub fn worst_path_of_peer(&self) -> Option<(anabranch_policy::ids::SubflowId, Duration)> {
        let worst = self.partial.as_ref()?.peer_worst?;
        let index = self.named_by_peer((worst.local_address, worst.remote_address))?;
        Some((self.subflows.get(index)?.id(), Duration::from_millis(u64::from(worst.behind))))
    }

    /// The subflow that the peer names by its address and ours.
    pub(super) fn named_by_peer(&self, (theirs, ours): (u8, u8)) -> Option<usize> {
        self.subflows.iter().position(|subflow| {
            subflow.identity.remote_address.0 == theirs && self.wire_address(subflow.identity.local_address) == ours
        })
    }
}
