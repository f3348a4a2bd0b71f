//! Data that waits on a subflow to be sent.

use super::receiver::AckDue;
use super::scoreboard::{Departing, Place, Record};
use super::state::Subflow;
use crate::event::SendKind;
use anabranch_policy::congestion::CongestionControl;
use anabranch_wire::MptcpOption;
use bytes::Bytes;

/// Share of segments lost from which on each has its own mapping.
pub(super) const MOST_LOSS_IN_TRAINS: f64 = 0.001;

impl Subflow {
    /// Records whether congestion control would let a segment go and there is none: samples of the delivery rate then say
    /// nothing of the network. To be called when everything that may be sent has been. Returns whether that is new.
    pub fn record_limit(&mut self, congestion: &dyn CongestionControl) -> bool {
        let nothing_waits = self.scoreboard.queued() == 0 && self.scoreboard.lost() == 0;
        let in_flight = self.scoreboard.in_flight();
        if !nothing_waits
            || self.scoreboard.sampler.is_limited_until(in_flight)
            || self.pipe() + u64::from(self.mss) > congestion.window(self.id())
        {
            return false;
        }
        let known = self.scoreboard.sampler.is_application_limited();
        self.scoreboard.sampler.limit(in_flight);
        !known
    }

    /// Puts a range of data in the queue of this subflow.
    #[inline]
    pub fn push(&mut self, data_seq: u64, payload: Bytes, origin: SendKind) {
        let seq = self.send.end;
        self.send.end += payload.len() as u32;
        self.cursor = self.cursor.max(data_seq + payload.len() as u64);
        self.scoreboard.push(seq, data_seq, payload, false, origin);
    }

    /// Puts new data in the queue that takes this place in a shared mapping.
    pub fn push_under_mapping(&mut self, data_seq: u64, payload: Bytes, place: Place) {
        self.push(data_seq, payload, SendKind::New);
        self.scoreboard.set_place(place);
    }

    /// Whether the mapping of data to be sent now may be for more than one segment: the peer knows MPTCP on this subflow,
    /// and hardly anything is lost; who loses the mapping drops all that relies on it.
    pub fn may_share_mappings(&self) -> bool {
        let calm = self.rates.loss_rate < MOST_LOSS_IN_TRAINS
            && self.scoreboard.lost() == 0
            && self.liveness.timeouts_in_row == 0;
        calm && self.negotiated.sack
            && self.counters.bytes_acked > u64::from(self.mss)
            && self.receiver.due == AckDue::No
    }

    /// Whether a record is so long that there is no room for a mapping beside it.
    pub fn is_bare(&self, record: &Departing) -> bool {
        record.payload.len() > self.mss as usize && record.place.number > 0
    }

    /// Puts a FIN behind what is queued; further data is refused by [`Self::is_usable`].
    pub fn push_fin(&mut self, data_seq: u64) {
        if self.due.fin_queued {
            return;
        }
        self.due.fin_queued = true;
        let seq = self.send.end;
        self.send.end += 1;
        self.scoreboard.push(seq, data_seq, Bytes::new(), true, SendKind::New);
    }

    /// Whether a FIN was queued or sent.
    pub fn fin_queued(&self) -> bool {
        self.due.fin_queued
    }

    /// Has an MPTCP option sent on the next bare acknowledgement; returns false if too many wait.
    pub fn push_control(&mut self, option: MptcpOption) -> bool {
        self.control.push(option)
    }

    /// Takes back the last record that has not been sent.
    pub fn take_unsent(&mut self) -> Option<Record> {
        let record = self.scoreboard.take_unsent()?;
        self.send.end = record.seq;
        Some(record)
    }

    /// Takes out what waits to be sent and is useless, by its range of the stream.
    pub fn drop_useless(&mut self, is_useless: impl Fn(u64, u64) -> bool) {
        if let Some(end) = self.scoreboard.drop_useless(is_useless) {
            self.send.end = end;
        }
    }

    /// Forgets what has not been sent; a FIN among it moves up.
    pub fn drop_unsent(&mut self, data_end: u64) {
        let Some((seq, fin)) = self.scoreboard.drop_unsent() else { return };
        self.send.end = seq;
        if fin {
            self.due.fin_queued = false;
            self.push_fin(data_end);
        }
    }

    /// Queues a FIN, if there has been none, and moves the state as if it were sent.
    pub fn close(&mut self, data_end: u64) {
        if self.state.is_synchronised() && !self.fin_queued() {
            self.push_fin(data_end);
            self.handle_fin_sent();
        }
    }
}
