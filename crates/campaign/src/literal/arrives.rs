//! SEGMENT ARRIVES (RFC 9293, section 3.10.7.4; RFC 5961; RFC 7323, section 5), subflow by subflow.

use super::choices::Choice;
use super::tcp::{Kind, State};
use super::{NEVER, Peer, Protocol};
use anabranch_wire::mptcp::{CapableKeys, MptcpOption};
use anabranch_wire::{Flags, Segment};

impl Peer {
    pub(super) fn segment_arrives(&mut self, index: usize, segment: &Segment) {
        if self.flows[index].state == State::SynSent {
            return self.syn_sent_arrives(index, segment);
        }
        let flow = &mut self.flows[index];
        flow.due.silent = 0;
        let start = flow.relative(segment.seq);
        if !self.is_acceptable(index, segment, start) {
            return;
        }
        if segment.flags.contains(Flags::RST) {
            return self.reset_arrives(index, segment, start);
        }
        if segment.flags.contains(Flags::SYN) {
            // In SYN-RECEIVED our SYN/ACK was lost; otherwise RFC 5961, section 4.2.
            self.challenge(index);
            return;
        }
        if !segment.flags.contains(Flags::ACK) || !self.acknowledgement_arrives(index, segment, start) {
            return;
        }
        self.options_arrive(index, segment);
        if self.flows[index].state == State::Closed {
            return;
        }
        self.text_arrives(index, segment, start);
    }

    /// Acceptability: PAWS, then the sequence number.
    fn is_acceptable(&mut self, index: usize, segment: &Segment, start: i64) -> bool {
        let window = self.data.offered.saturating_sub(self.data.rcv_nxt).min(1 << 29) as i64;
        let flow = &mut self.flows[index];
        let (reset, syn) = (segment.flags.contains(Flags::RST), segment.flags.contains(Flags::SYN));
        let next = i64::from(flow.rcv_nxt);
        let length = i64::from(segment.sequence_length());
        if syn && start == 0 && flow.state == State::SynReceived {
            flow.due.resend_at = self.now; // SYN/ACK again
            return false;
        }
        if let (true, false, Some(stamps)) = (flow.options.stamps, reset, segment.options.timestamps) {
            let older = (stamps.value.wrapping_sub(flow.options.recent) as i32) < 0;
            if older {
                flow.due.ack_now = true;
                return false;
            }
            if start <= next {
                flow.options.recent = stamps.value;
            }
        }
        let inside = |number: i64| (next..next + window).contains(&number);
        let acceptable = match (length, window) {
            (0, 0) => start == next,
            (0, _) => inside(start) || start == next,
            (_, 0) => start <= next && start + length > next, // the next octet is judged by the data level
            (_, _) => inside(start) || inside(start + length - 1) || (start < next && start + length > next),
        };
        if !acceptable && !reset {
            self.challenge(index);
        }
        acceptable
    }

    /// Sends an acknowledgement with the expected numbers.
    fn challenge(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.kind == Kind::JoinedByUs && !flow.usable {
            self.send_third(index); // its SYN/ACK came again: the proof was lost
        } else if flow.state != State::SynReceived {
            flow.due.ack_now = true;
        }
    }

    /// RFC 5961, section 3.2: only the exact number resets.
    fn reset_arrives(&mut self, index: usize, segment: &Segment, start: i64) {
        if start != i64::from(self.flows[index].rcv_nxt) {
            return self.challenge(index);
        }
        let key = self.secrets.key;
        let closes = |option: &MptcpOption| matches!(option, MptcpOption::FastClose { key: told } if *told == key);
        let fast_close = self.protocol == Protocol::Multipath && segment.options.mptcp.iter().any(closes);
        if fast_close {
            return self.fast_closed();
        }
        self.lose(index, true);
    }

    /// The fifth check. Returns whether to process the segment further.
    fn acknowledgement_arrives(&mut self, index: usize, segment: &Segment, start: i64) -> bool {
        let flow = &self.flows[index];
        let ack = i64::from(flow.una) + i64::from(segment.ack.distance(flow.iss + flow.una));
        if flow.state == State::SynReceived {
            if ack != 1 {
                self.send_bare(index, segment.ack, anabranch_wire::SeqNumber(0), Flags::RST, None);
                return false;
            }
            if !self.third_arrives(index, segment) {
                return false;
            }
        }
        let flow = &mut self.flows[index];
        if ack > i64::from(flow.nxt) {
            flow.due.ack_now = true;
            return false;
        }
        if flow.kind == Kind::JoinedByUs && !flow.usable {
            flow.usable = true; // the fourth segment
            flow.due.resend_at = NEVER;
        }
        let advanced = ack > i64::from(flow.una);
        if advanced {
            flow.una = ack as u32;
            flow.due.tries = 0;
            flow.force = false;
            flow.due.resend_now |= flow.una < flow.due.recover;
            flow.due.resend_at = NEVER;
        }
        let (number, ack) = (start.max(0) as u32, ack.max(0) as u32);
        if flow.wl1 < number || (flow.wl1 == number && flow.wl2 <= ack) {
            flow.window = u64::from(segment.window) << flow.options.send_shift;
            (flow.wl1, flow.wl2) = (number, ack);
        }
        self.fin_acknowledged(index);
        if self.flows[index].state == State::Closed {
            return false;
        }
        self.judge_silence(index, segment, advanced);
        if self.protocol == Protocol::Plain && self.flows[index].kind == Kind::Initial {
            self.plain_acknowledgement(index);
        }
        true
    }

    /// RFC 8684, section 3.7, with a single subflow: an acknowledgement of data without a DSS means plain TCP, unless
    /// data was acknowledged with one before. So does data without a DSS, unless the peer sent one before.
    fn judge_silence(&mut self, index: usize, segment: &Segment, advanced: bool) {
        let options = &segment.options;
        let speaks = options.dss.is_some() || !options.mptcp.is_empty();
        if speaks || self.protocol != Protocol::Multipath || self.has_added_subflow() {
            return;
        }
        let data = advanced && self.flows[index].una > 1 && self.data.una == 0;
        let text = !segment.payload.is_empty() && segment.seq == self.flows[index].irs + self.flows[index].rcv_nxt;
        if data || (!self.heard_dss && (text || segment.flags.contains(Flags::FIN))) {
            self.fall_back(None);
        }
    }

    /// Whether a subflow was ever added to the first.
    pub(super) fn has_added_subflow(&self) -> bool {
        self.flows.iter().any(|flow| flow.kind != Kind::Initial && flow.usable)
    }

    /// The offsets that plain TCP has acknowledged and allows.
    fn plain_acknowledgement(&mut self, index: usize) {
        let flow = &self.flows[index];
        let una = u64::from(flow.una.saturating_sub(1)).min(self.data.length());
        self.data.una = self.data.una.max(una);
        self.data.edge = self.data.edge.max(u64::from(flow.una.saturating_sub(1)) + flow.window);
    }

    /// MPTCP options, before the data that they may map.
    fn options_arrive(&mut self, index: usize, segment: &Segment) {
        if self.protocol == Protocol::Plain
            && self.infinite.is_some()
            && let Some(dss) = &segment.options.dss
            && let Some(mapping) = &dss.mapping
        {
            return self.late_mapping_arrives(index, mapping, dss.data_fin);
        }
        if self.protocol != Protocol::Multipath {
            return;
        }
        if let Some(dss) = &segment.options.dss {
            self.dss_arrives(index, segment, dss);
        }
        for option in &segment.options.mptcp {
            if self.protocol != Protocol::Multipath || self.flows[index].state == State::Closed {
                return;
            }
            match option {
                MptcpOption::Capable { keys: CapableKeys::BothWithData { length, checksum, .. }, .. }
                    if self.flows[index].kind == Kind::Initial && !self.client =>
                {
                    self.hear_first(*length, *checksum);
                }
                other => self.option_arrives(index, other),
            }
        }
    }

    /// The seventh and eighth step: data and FIN.
    fn text_arrives(&mut self, index: usize, segment: &Segment, start: i64) {
        let fin = segment.flags.contains(Flags::FIN);
        if segment.payload.is_empty() && !fin {
            return;
        }
        let delay = u64::from(self.choice(Choice::AckDelay)) * super::MILLI;
        let flow = &mut self.flows[index];
        let end = start + segment.payload.len() as i64;
        if fin {
            flow.fin_at = Some(end as u32);
        }
        flow.due.unacknowledged += 1;
        if delay == 0 || flow.due.unacknowledged >= 2 || start != i64::from(flow.rcv_nxt) || fin {
            flow.due.ack_now = true;
        } else {
            flow.due.ack_at = flow.due.ack_at.min(self.now + delay);
        }
        let mut payload = segment.payload.clone();
        let mut from = start;
        let next = i64::from(flow.rcv_nxt);
        if from < next {
            let _ = payload.split_to(((next - from) as usize).min(payload.len()));
            from = next;
        }
        if from == next || self.choice(Choice::KeepEarly) == 1 {
            self.flows[index].keep(from as u32, payload);
        }
        self.take_in_order(index);
        self.fin_arrives(index);
    }
}
