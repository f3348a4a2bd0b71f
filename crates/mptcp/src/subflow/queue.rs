//! The queue of data assigned to a subflow and not yet sent.

use super::receiver::AckDue;
use super::scoreboard::{Departing, Place, Record};
use super::state::Subflow;
use crate::event::SendKind;
use anabranch_policy::congestion::CongestionControl;
use anabranch_wire::MptcpOption;
use bytes::Bytes;

/// Above this share of lost segments, each segment has a mapping of its own.
pub(super) const MOST_LOSS_WITH_SHARED_MAPPINGS: f64 = 0.001;

impl Subflow {
    /// Records whether the window allows another segment and there is none, so that samples of the delivery rate are
    /// application-limited. To be called when everything that may be sent has been sent. Returns whether this is new.
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

    /// Appends a range of data to the queue.
    #[inline]
    pub fn push(&mut self, data_seq: u64, payload: Bytes, origin: SendKind) {
        let seq = self.send.end;
        self.send.end += payload.len() as u32;
        self.cursor = self.cursor.max(data_seq + payload.len() as u64);
        self.scoreboard.push(seq, data_seq, payload, false, origin);
    }

    /// Appends new data at this place in a shared mapping.
    pub fn push_under_mapping(&mut self, data_seq: u64, payload: Bytes, place: Place) {
        self.push(data_seq, payload, SendKind::New);
        self.scoreboard.set_place(place);
    }

    /// Whether a mapping may cover several segments: the peer has used MPTCP on this subflow, and loss is rare, since
    /// the loss of a mapping makes the peer drop all segments that rely on it.
    pub fn may_share_mappings(&self) -> bool {
        let calm = self.rates.loss_rate < MOST_LOSS_WITH_SHARED_MAPPINGS
            && self.scoreboard.lost() == 0
            && self.liveness.timeouts_in_row == 0;
        calm && self.negotiated.sack
            && self.counters.bytes_acked > u64::from(self.mss)
            && self.receiver.due == AckDue::No
    }

    /// Whether a record is so long that its segment has no space for a mapping.
    pub fn is_bare(&self, record: &Departing) -> bool {
        record.payload.len() > self.mss as usize && record.place.number > 0
    }

    /// Appends a FIN. [`Self::is_usable`] then refuses further data.
    pub fn push_fin(&mut self, data_seq: u64) {
        if self.due.fin_queued {
            return;
        }
        self.due.fin_queued = true;
        let seq = self.send.end;
        self.send.end += 1;
        self.scoreboard.push(seq, data_seq, Bytes::new(), true, SendKind::New);
    }

    pub fn fin_queued(&self) -> bool {
        self.due.fin_queued
    }

    /// Queues an MPTCP option for the next bare acknowledgement; returns false if the queue is full.
    pub fn push_control(&mut self, option: MptcpOption) -> bool {
        self.control.push(option)
    }

    /// Removes and returns the last unsent record.
    pub fn take_unsent(&mut self) -> Option<Record> {
        let record = self.scoreboard.take_unsent()?;
        self.send.end = record.seq;
        Some(record)
    }

    /// Removes unsent records that are useless by their range of the stream.
    pub fn drop_useless(&mut self, is_useless: impl Fn(u64, u64) -> bool) {
        if let Some(end) = self.scoreboard.drop_useless(is_useless) {
            self.send.end = end;
        }
    }

    /// Removes unsent records. A FIN among them moves up.
    pub fn drop_unsent(&mut self, data_end: u64) {
        let Some((seq, fin)) = self.scoreboard.drop_unsent() else { return };
        self.send.end = seq;
        if fin {
            self.due.fin_queued = false;
            self.push_fin(data_end);
        }
    }

    /// Queues a FIN, unless there was one, and changes the state as if it had been sent.
    pub fn close(&mut self, data_end: u64) {
        if self.state.is_synchronised() && !self.fin_queued() {
            self.push_fin(data_end);
            self.handle_fin_sent();
        }
    }
}
