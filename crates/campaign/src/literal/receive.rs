//! Receiving at data level: DATA_ACKs, mappings and their checksums, octets in the order of their subflow, windows (RFC
//! 8684, sections 3.3.1, 3.3.2, 3.3.4).

use super::choices::Choice;
use super::tcp::{Heard, Kind, Signal, State};
use super::{Peer, Protocol};
use anabranch_wire::mptcp::{DataAck, DataSequence, Dss, Mapping, MptcpOption, dss_checksum};
use anabranch_wire::{Flags, Segment};
use bytes::Bytes;

const REASON_MIDDLEBOX: u8 = 6;

/// The number nearest to `near` with the lower half `short`.
fn widen(short: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(short.wrapping_sub(near as u32) as i32))
}

impl Peer {
    pub(super) fn dss_arrives(&mut self, index: usize, segment: &Segment, dss: &Dss) {
        if self.flows[index].kind == Kind::Initial || self.flows[index].usable {
            self.heard_dss = true;
            self.secrets.confirmed = true;
        }
        if let Some(ack) = dss.data_ack {
            self.data_ack_arrives(index, segment, ack);
        }
        if let Some(mapping) = &dss.mapping {
            self.mapping_arrives(index, mapping, dss.data_fin);
        }
    }

    fn data_ack_arrives(&mut self, index: usize, segment: &Segment, ack: DataAck) {
        let first = self.secrets.first;
        let number = match ack {
            DataAck::Long(number) => number,
            DataAck::Short(number) => widen(number, first.wrapping_add(self.data.una)),
        };
        let offset = number.wrapping_sub(first);
        if offset < self.data.una || offset > self.data.nxt {
            return; // old, or of what was never sent
        }
        let window = u64::from(segment.window) << self.flows[index].options.send_shift;
        self.data.edge = self.data.edge.max(offset + window);
        if offset > self.data.una {
            self.data.una = offset;
            self.data.tries = 0;
            self.data.resend_at = super::NEVER;
            self.data.again.retain(|(_, to)| *to > offset);
        }
        if self.data.fin_sent && self.data.una == self.data.length() + 1 {
            self.data.fin_acknowledged();
        }
    }

    /// The data sequence number of a mapping; 4 octets mean the number nearest to the expected one (RFC 8684, section
    /// 3.3.1).
    fn number_of(&self, mapping: &Mapping) -> u64 {
        match mapping.data_seq {
            DataSequence::Long(number) => number,
            DataSequence::Short(number) => widen(number, self.secrets.peer_first.wrapping_add(self.data.rcv_nxt)),
        }
    }

    fn mapping_arrives(&mut self, index: usize, mapping: &Mapping, data_fin: bool) {
        let number = self.number_of(mapping);
        let offset = number.wrapping_sub(self.secrets.peer_first);
        if mapping.length == 0 {
            return self.fall_back(Some((mapping.subflow_seq, offset)));
        }
        if self.checksum != mapping.checksum.is_some() {
            return self.reset(index, REASON_MIDDLEBOX);
        }
        let length = u32::from(mapping.length) - u32::from(data_fin);
        if data_fin && length == 0 {
            let right = mapping.checksum.is_none_or(|sum| {
                let expected = dss_checksum(number, mapping.subflow_seq, mapping.length, []);
                sum == expected || (sum == 0xffff && expected == 0)
            });
            if right {
                self.record_fin(index, offset);
            }
            return;
        }
        if data_fin {
            self.record_fin(index, offset + u64::from(length));
        }
        let heard = Heard {
            start: mapping.subflow_seq,
            length,
            offset,
            length_field: mapping.length,
            checksum: mapping.checksum,
        };
        self.flows[index].hear(heard);
    }

    /// A mapping of a peer that does not know of our fallback yet; its infinite mapping defines how its numbers
    /// continue.
    pub(super) fn late_mapping_arrives(&mut self, index: usize, mapping: &Mapping, data_fin: bool) {
        let number = self.number_of(mapping);
        let offset = number.wrapping_sub(self.secrets.peer_first);
        if mapping.length == 0 {
            self.shift = offset as i64 - i64::from(mapping.subflow_seq);
        } else if u32::from(mapping.length) > u32::from(data_fin) {
            let length = u32::from(mapping.length) - u32::from(data_fin);
            let (start, length_field) = (mapping.subflow_seq, mapping.length);
            self.flows[index].hear(Heard { start, length, offset, length_field, checksum: None });
        }
    }

    fn record_fin(&mut self, index: usize, at: u64) {
        // Any DATA_FIN is acknowledged.
        self.flows[index].due.ack_now = true;
        if self.data.fin_at.is_none() && at >= self.data.rcv_nxt {
            self.data.fin_at = Some(at);
        }
    }

    /// Passes in-order data of the subflow to the data level.
    pub(super) fn take_in_order(&mut self, index: usize) {
        while let Some((start, mut bytes)) = self.flows[index].early.pop_first() {
            let flow = &mut self.flows[index];
            if start > flow.rcv_nxt {
                flow.early.insert(start, bytes);
                return;
            }
            let known = ((flow.rcv_nxt - start) as usize).min(bytes.len());
            let _ = bytes.split_to(known);
            if bytes.is_empty() {
                continue;
            }
            if !self.take(index, bytes) {
                return;
            }
        }
    }

    /// Takes the next octets of a subflow; returns whether to continue.
    fn take(&mut self, index: usize, mut bytes: Bytes) -> bool {
        let at = self.flows[index].rcv_nxt;
        let (heard, offset) = match self.protocol {
            // After our fallback we still use the peer's mappings until it has fallen back.
            Protocol::Plain => match self.flows[index].heard_at(at) {
                Some(heard) => (Some(heard), heard.offset + u64::from(at - heard.start)),
                None => (None, u64::from(at).wrapping_add_signed(self.shift)),
            },
            _ => match self.flows[index].heard_at(at) {
                Some(heard) => (Some(heard), heard.offset + u64::from(at - heard.start)),
                None => return self.unmapped(index),
            },
        };
        self.flows[index].mappings.unmapped = 0;
        let mut left = heard.map_or(bytes.len(), |heard| (heard.start + heard.length - at) as usize);
        // A partly received mapping with a checksum is received as a whole: it cannot be acknowledged otherwise.
        let begun = !self.flows[index].mappings.held.is_empty();
        let room = if begun { u64::MAX } else { self.data.offered.saturating_sub(offset) };
        let refused = room < bytes.len().min(left) as u64;
        if refused && (self.choice(Choice::Refused) == 0 || self.protocol == Protocol::Plain) {
            left = room as usize;
        }
        if left == 0 {
            return false; // beyond the window: neither taken nor acknowledged
        }
        let rest = bytes.split_off(left.min(bytes.len()));
        let flow = &mut self.flows[index];
        flow.rcv_nxt += bytes.len() as u32;
        if !rest.is_empty() {
            let next = flow.rcv_nxt;
            flow.keep(next, rest);
        }
        match heard.filter(|_| self.checksum && self.protocol == Protocol::Multipath) {
            Some(heard) => self.take_with_checksum(index, heard, &bytes),
            None => self.give(offset, bytes),
        }
        self.flows[index].state != State::Closed && !(refused && self.choice(Choice::Refused) == 0)
    }

    /// Passes octets to the data level, which drops those beyond the window.
    fn give(&mut self, offset: u64, mut bytes: Bytes) {
        let room = self.data.offered.saturating_sub(offset);
        if !self.checksum {
            bytes.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        self.data.receive(offset, bytes);
    }

    /// With checksums a mapping is delivered as a whole, once its checksum was verified.
    fn take_with_checksum(&mut self, index: usize, heard: Heard, bytes: &Bytes) {
        let flow = &mut self.flows[index];
        flow.mappings.held.extend_from_slice(bytes);
        if flow.rcv_nxt < heard.start + heard.length {
            return;
        }
        let held = std::mem::take(&mut flow.mappings.held);
        let number = self.secrets.peer_first.wrapping_add(heard.offset);
        let expected = dss_checksum(number, heard.start, heard.length_field, [held.as_slice()]);
        let told = heard.checksum.unwrap_or_default();
        let from = held.len().saturating_sub(heard.length as usize);
        if told == expected || (told ^ expected) == 0xffff && (told == 0 || expected == 0) {
            return self.give(heard.offset, Bytes::from(held).slice(from..));
        }
        self.checksum_failed(index, number, heard.offset, Bytes::from(held));
    }

    /// Data without a mapping is refused (section 3.3.1), and the subflow is reset after some.
    fn unmapped(&mut self, index: usize) -> bool {
        let flow = &mut self.flows[index];
        flow.early.clear();
        flow.mappings.unmapped += 1;
        flow.due.ack_now = true;
        if flow.mappings.unmapped > 40 {
            self.reset(index, REASON_MIDDLEBOX);
        }
        false
    }

    /// A wrong checksum (section 3.7).
    fn checksum_failed(&mut self, index: usize, number: u64, offset: u64, held: Bytes) {
        let alone = self.flows.len() == 1 && !self.crooked && self.data.early.is_empty() && offset == self.data.rcv_nxt;
        if !alone {
            let fail = MptcpOption::Fail { data_seq: number };
            return self.reset_with(index, Some(fail), REASON_MIDDLEBOX);
        }
        self.flows[index].due.signals.push_back(Signal::Alone(MptcpOption::Fail { data_seq: number }));
        self.fall_back(None);
        if self.protocol == Protocol::Plain {
            self.give(offset, held);
        }
    }

    /// The window field, and the right edge that it announces.
    pub(super) fn window_to_offer(&mut self, index: usize, flags: Flags) -> u16 {
        let buffer = u64::from(self.choice(Choice::Buffer));
        let mut free = buffer.saturating_sub(self.data.unread_length);
        let shrink = u64::from(self.choice(Choice::Shrink));
        if shrink > 0 && self.luck.one_in(shrink) {
            free = self.luck.below(free + 1);
        }
        let shift = if flags.contains(Flags::SYN) { 0 } else { self.flows[index].options.recv_shift };
        let field = (free >> shift).min(u64::from(u16::MAX));
        self.data.offered = if shrink > 0 {
            self.data.rcv_nxt + (field << shift)
        } else {
            self.data.offered.max(self.data.rcv_nxt + (field << shift))
        };
        field as u16
    }

    /// After a read: sends a window update if the window opened (RFC 9293, section 3.8.6.2.2).
    pub(super) fn tell_of_window(&mut self) {
        let buffer = u64::from(self.choice(Choice::Buffer));
        let shift = self.flows.iter().map(|flow| flow.options.recv_shift).max().unwrap_or(0);
        let free = buffer.saturating_sub(self.data.unread_length) >> shift;
        let window = free.min(65_535) << shift;
        let edge = self.data.rcv_nxt + window;
        if edge < self.data.offered + (buffer / 2).min(536) || self.data.fin_at.is_some() {
            return;
        }
        let all = self.choice(Choice::Updates) == 1;
        let open: Vec<usize> = (0..self.flows.len()).filter(|index| self.flows[*index].may_receive()).collect();
        if open.is_empty() {
            return;
        }
        let one = self.luck.pick(&open);
        for index in open.into_iter().filter(|index| all || *index == one) {
            self.flows[index].due.ack_now = true;
        }
    }
}
